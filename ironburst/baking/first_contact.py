"""The first ssh to a machine that nobody has talked to: who may log in there, and how it is known to be the one meant.

A build instance is given one public key, made for this build, in its user data. Its host keys are read where only the
machine itself can write: in its console output, to which cloud-init prints them at the first boot. Pure.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from pathlib import Path

LONGEST_S = 3 * 3600
"""a build instance ends itself after this, whatever became of whoever started it"""
BEGIN, END = "-----BEGIN SSH HOST KEY KEYS-----", "-----END SSH HOST KEY KEYS-----"
KEY = re.compile(r"(ssh-ed25519|ecdsa-sha2-nistp(?:256|384|521)|ssh-rsa) (AAAA[A-Za-z0-9+/]+={0,2})")


@dataclass(frozen=True)
class Login:
    """Who logs in at the build instance: the public half of a key, and the file that its host keys are written to."""

    public_key: str
    known_hosts: Path


def user_data(public_key: str) -> str:
    """What cloud-init does: let this key in as the image's own login user, and power the machine off (which
    terminates it) after LONGEST_S. No secret: anyone who may describe the instance can read it.
    """
    end = ["systemd-run", "--unit=ironburst-build-ends", f"--on-active={LONGEST_S}", "systemctl", "poweroff"]
    return "#cloud-config\n" + json.dumps({"ssh_authorized_keys": [public_key.strip()], "runcmd": [end]}) + "\n"


def host_keys(console: str) -> list[str]:
    """The host keys (`ssh-ed25519 AAAA...`) that cloud-init printed last; [] before it has.

    A line that the kernel wrote into is left out: it is no key any more.
    """
    begun = console.rfind(BEGIN, 0, console.rfind(END) if END in console else 0)
    if begun < 0:
        return []
    lines = console[begun : console.index(END, begun)].splitlines()
    found = (KEY.search(line) for line in lines)
    return [f"{match[1]} {match[2]}" for match in found if match and _is_key(match[1], match[2])]


def _is_key(kind: str, encoded: str) -> bool:
    """A public key is a row of fields, each with its length before it; the first one is the name of its kind."""
    try:
        content = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return False
    fields = []
    while content:
        end = 4 + int.from_bytes(content[:4])
        fields.append(content[4:end])
        if len(content) < end:
            return False
        content = content[end:]
    return len(fields) > 1 and fields[0] == kind.encode()


def known_hosts(address: str, keys: list[str]) -> str:
    """The lines of ssh's known_hosts file for a host."""
    return "".join(f"{address} {key}\n" for key in keys)
