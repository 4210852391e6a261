"""The unattended files of an installation: Ubuntu's autoinstall, RHEL's kickstart, Debian's preseed. Pure.

Each asks install_scripts.guard before it writes, and writes nothing but the disk that the guard names.
"""

from __future__ import annotations

import ipaddress
import json
from dataclasses import dataclass
from typing import Any

from ironburst.baremetal.install_scripts import Target, finish, guard, guarded, note

END = "IRONBURST_END"
DISK = "IRONBURST_DISK"
MEDIUM = "/cdrom/ironburst"
"""where debian-installer has the medium's folder"""


@dataclass(frozen=True)
class Network:
    """The node's network: `address` with its length, as in 10.0.1.11/24; without a gateway DHCP gives everything."""

    address: str
    mac: str | None = None
    gateway: str | None = None
    dns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seed:
    """Everything that an installation needs. `os` as in the stack file; `user` is who Ansible logs in as, with one of
    `authorized_keys`; `host_key` and `host_key_public` are the host's own, so that it is known at the first login.
    `mirror`: URL of packages; None: the medium has them.
    """

    target: Target
    os: str
    user: str
    authorized_keys: tuple[str, ...]
    host_key: str
    host_key_public: str
    network: Network
    mirror: str | None = None


def files(seed: Seed) -> dict[str, str]:
    """{path on the medium: text}. Some hold the host's private key: they are only for the medium."""
    family = seed.os.rstrip("0123456789")
    own = {"ubuntu": _autoinstall, "rhel": _kickstart, "debian": _preseed}[family](seed)
    return own | {
        "ironburst/guard.sh": guard(seed.target),
        "ironburst/finish.sh": finish(seed.target),
        "ironburst/install.json": note(seed.target) + "\n",
        "ironburst/authorized_keys": _lines(seed.authorized_keys),
        "ironburst/ssh_host_ed25519_key": seed.host_key,
        "ironburst/ssh_host_ed25519_key.pub": seed.host_key_public.strip() + "\n",
    }


def _lines(texts: tuple[str, ...]) -> str:
    return "".join(f"{text.strip()}\n" for text in texts)


def _here(path: str, text: str) -> str:
    """Shell lines that write a file."""
    return f"cat > {path} <<'{END}'\n{text.rstrip()}\n{END}\n"


# ---- Ubuntu


def _autoinstall(seed: Seed) -> dict[str, str]:
    """For NoCloud; JSON is YAML."""
    network: dict[str, Any] = {"match": {"macaddress": seed.network.mac}} if seed.network.mac else {}
    network |= {"match": {"name": "en*"}} if not seed.network.mac else {}
    if seed.network.gateway:
        network |= {
            "addresses": [seed.network.address],
            "routes": [{"to": "default", "via": seed.network.gateway}],
            "nameservers": {"addresses": list(seed.network.dns)},
        }
    else:
        network |= {"dhcp4": True}
    keys = list(map(str.strip, seed.authorized_keys))
    user: dict[str, Any] = {"name": seed.user, "ssh_authorized_keys": keys}
    if seed.user != "root":
        user |= {"sudo": "ALL=(ALL) NOPASSWD:ALL", "shell": "/bin/bash", "lock_passwd": True}
    host = {
        "hostname": seed.target.node,
        "disable_root": seed.user != "root",
        "users": [user],
        "ssh_keys": {"ed25519_private": seed.host_key, "ed25519_public": seed.host_key_public.strip()},
    }
    allowed = f'sed -i "s|{DISK}|$disk|" /autoinstall.yaml'
    wanted: dict[str, Any] = {
        "version": 1,
        "early-commands": [
            _here("/tmp/guard.sh", guard(seed.target)) + guarded("/tmp/guard.sh", allowed),
        ],
        "locale": "en_US.UTF-8",
        "keyboard": {"layout": "us"},
        "timezone": "Etc/UTC",
        "network": {"version": 2, "ethernets": {"hall": network}},
        "storage": {"layout": {"name": "direct", "match": {"path": DISK}}},
        "ssh": {"install-server": True, "allow-pw": False},
        "user-data": host,
        "late-commands": [_here("/tmp/finish.sh", finish(seed.target)) + "sh /tmp/finish.sh /target"],
        "shutdown": "reboot",
    }
    if seed.mirror:
        wanted["apt"] = {"primary": [{"arches": ["default"], "uri": seed.mirror}]}
    text = "#cloud-config\n" + json.dumps({"autoinstall": wanted}, indent=1) + "\n"
    return {"user-data": text, "meta-data": f"instance-id: {seed.target.node}-{seed.target.mark}\n"}


# ---- RHEL, Rocky


def _kickstart(seed: Seed) -> dict[str, str]:
    # zerombr: else Anaconda gives a blank disk no label; it sees no disk but the one of ignoredisk
    only = "ignoredisk --only-use=$disk\\nzerombr\\nclearpart --all --initlabel --drives=$disk\\n"
    allowed = f'printf "{only}autopart --type=lvm --nohome\\nbootloader --boot-drive=$disk\\n" > /tmp/disk.ks'
    keys = "".join(f'sshkey --username={seed.user} "{key.strip()}"\n' for key in seed.authorized_keys)
    user = "" if seed.user == "root" else f"user --name={seed.user} --groups=wheel --lock\n"
    sudo = "" if seed.user == "root" else f"echo '{seed.user} ALL=(ALL) NOPASSWD:ALL' > /etc/sudoers.d/{seed.user}\n"
    install_key = (
        f"umask 077\n{_here('/etc/ssh/ssh_host_ed25519_key', seed.host_key)}"
        f"umask 022\n{_here('/etc/ssh/ssh_host_ed25519_key.pub', seed.host_key_public)}"
        "chgrp ssh_keys /etc/ssh/ssh_host_ed25519_key 2>/dev/null || true\n"
    )
    text = f"""# {seed.target.node}, {seed.target.mark}: written by ironburst
text
{f'url --url="{seed.mirror}"' if seed.mirror else "cdrom"}
lang en_US.UTF-8
keyboard us
timezone Etc/UTC --utc
{_kickstart_network(seed)}
rootpw --lock
{user}{keys}%include /tmp/disk.ks
reboot

%pre --interpreter=/bin/sh
{_here("/tmp/guard.sh", guard(seed.target))}{guarded("/tmp/guard.sh", allowed)}%end

%packages
@^minimal-environment
openssh-server
python3
%end

%post
{install_key}{sudo}{_here("/tmp/finish.sh", finish(seed.target))}sh /tmp/finish.sh ""
%end
"""
    return {"ks.cfg": text}


def _kickstart_network(seed: Seed) -> str:
    network = seed.network
    words = ["network", f"--device={network.mac or 'link'}", f"--hostname={seed.target.node}", "--activate"]
    if not network.gateway:
        return " ".join([*words, "--bootproto=dhcp"])
    interface = ipaddress.IPv4Interface(network.address)
    words += ["--bootproto=static", f"--ip={interface.ip}", f"--netmask={interface.netmask}"]
    words += [f"--gateway={network.gateway}", *([f"--nameserver={','.join(network.dns)}"] if network.dns else [])]
    return " ".join(words)


# ---- Debian


Settings = list[tuple[str, str, str]]
"""(question, type, answer) of debconf"""


_MIRROR_ALONE = (
    "wget -q -t 1 -T 20 -O /dev/null http://$(debconf-get apt-setup/security_host)/debian-security/ "
    "|| debconf-set apt-setup/services-select ''"
)
"""A hall may reach its mirror alone; for a service that it doesn't reach the installer would stand and wait."""


def _preseed(seed: Seed) -> dict[str, str]:
    allowed = "debconf-set partman-auto/disk $disk; debconf-set grub-installer/bootdev $disk"
    if seed.mirror:
        allowed += f"; {_MIRROR_ALONE}"
    early = guarded(f"{MEDIUM}/guard.sh", allowed)
    settings: Settings = [
        ("debian-installer/locale", "string", "en_US.UTF-8"),
        ("keyboard-configuration/xkb-keymap", "select", "us"),
        *_preseed_network(seed),
        *_preseed_mirror(seed.mirror),
        ("clock-setup/utc", "boolean", "true"),
        ("time/zone", "string", "Etc/UTC"),
        *_preseed_users(seed.user),
        ("partman/early_command", "string", " ".join(early.split())),
        ("partman-auto/method", "string", "regular"),
        ("partman-auto/choose_recipe", "select", "atomic"),
        # else swap grows with the memory, to 5 % of the disk: 200 GB of 3.84 TB (partman-auto 177)
        ("partman-auto/cap-ram", "string", "1024"),
        ("partman-efi/non_efi_system", "boolean", "true"),
        ("partman-partitioning/confirm_write_new_label", "boolean", "true"),
        ("partman-partitioning/choose_label", "select", "gpt"),
        ("partman-partitioning/default_label", "string", "gpt"),
        ("partman/choose_partition", "select", "finish"),
        ("partman/confirm", "boolean", "true"),
        ("partman/confirm_nooverwrite", "boolean", "true"),
        ("tasksel/first", "multiselect", "standard"),
        ("pkgsel/include", "string", "openssh-server python3 sudo"),
        ("popularity-contest/participate", "boolean", "false"),
        ("cdrom-detect/eject", "boolean", "false"),
        ("finish-install/reboot_in_progress", "note", ""),
        ("preseed/late_command", "string", " && ".join(_preseed_last(seed.user))),
    ]
    owners = {"tasksel/first": "tasksel", "popularity-contest/participate": "popularity-contest"}
    lines = "".join(f"{owners.get(key, 'd-i')} {key} {kind} {value}".rstrip() + "\n" for key, kind, value in settings)
    return {"preseed.cfg": f"# {seed.target.node}, {seed.target.mark}: written by ironburst\n{lines}"}


def _preseed_last(user: str) -> list[str]:
    """Commands for the installed system, which is mounted at /target. The mark is written only after all others have
    done their work; else the installer stands still and shows which failed.
    """
    home = "/root" if user == "root" else f"/home/{user}"
    sudo = f"echo '{user} ALL=(ALL) NOPASSWD:ALL' > /target/etc/sudoers.d/{user}"
    return [
        f"install -D -m 600 {MEDIUM}/authorized_keys /target{home}/.ssh/authorized_keys",
        *([] if user == "root" else [f"in-target chown -R {user}: {home}/.ssh", sudo]),
        f"install -m 600 {MEDIUM}/ssh_host_ed25519_key /target/etc/ssh/ssh_host_ed25519_key",
        f"install -m 644 {MEDIUM}/ssh_host_ed25519_key.pub /target/etc/ssh/ssh_host_ed25519_key.pub",
        f"sh {MEDIUM}/finish.sh /target",
    ]


def _preseed_network(seed: Seed) -> Settings:
    """The first interface with a link is taken: the installer does not know them by MAC address."""
    network, interface = seed.network, ipaddress.IPv4Interface(seed.network.address)
    settings = [
        ("netcfg/hostname", "string", seed.target.node),
        ("netcfg/get_hostname", "string", seed.target.node),
        ("netcfg/get_domain", "string", ""),
        ("netcfg/choose_interface", "select", "auto"),
    ]
    if not network.gateway:
        # a hall of its own may have neither a gateway nor a name server, and then the installer stands and asks
        unasked = [("netcfg/no_default_route", "boolean", "true"), ("netcfg/get_nameservers", "string", "")]
        return settings + unasked
    return [
        *settings,
        ("netcfg/disable_autoconfig", "boolean", "true"),
        ("netcfg/get_ipaddress", "string", str(interface.ip)),
        ("netcfg/get_netmask", "string", str(interface.netmask)),
        ("netcfg/get_gateway", "string", network.gateway),
        ("netcfg/get_nameservers", "string", " ".join(network.dns)),
        ("netcfg/confirm_static", "boolean", "true"),
    ]


def _preseed_users(user: str) -> Settings:
    """Nobody has a password that can be used: `*`, for at `!` Debian 13's installer asks (user-setup 1.107)."""
    settings = [
        ("passwd/root-login", "boolean", "true" if user == "root" else "false"),
        ("passwd/root-password-crypted", "password", "*"),
        ("passwd/make-user", "boolean", "false" if user == "root" else "true"),
    ]
    if user == "root":
        return settings
    return [
        *settings,
        ("passwd/user-fullname", "string", user),
        ("passwd/username", "string", user),
        ("passwd/user-password-crypted", "password", "*"),
    ]


def _preseed_mirror(mirror: str | None) -> Settings:
    if not mirror:
        return [("apt-setup/use_mirror", "boolean", "false"), ("apt-setup/services-select", "multiselect", "")]
    scheme, _, place = mirror.partition("://")
    host, _, path = place.partition("/")
    return [
        ("mirror/country", "string", "manual"),
        ("mirror/protocol", "select", scheme),
        (f"mirror/{scheme}/hostname", "string", host),
        (f"mirror/{scheme}/directory", "string", f"/{path}".rstrip("/") or "/"),
        (f"mirror/{scheme}/proxy", "string", ""),
    ]
