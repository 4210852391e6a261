"""Which kernel boots next, in what order modules go, and what Secure Boot refuses: from copies of hosts' files."""

import pytest
from programs import load
from test_roles_sentences import KERNEL, value

node_state = load("plugins/modules/node_state.py")
grub = load("plugins/module_utils/grub.py")

# As Debian's grub-mkconfig writes it, shortened
MENU = """\
if [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
   set next_entry=
else
   set default="{default}"
fi
function load_video {{
  if [ x$feature_all_video_module = xy ]; then
    insmod all_video
  fi
}}
menuentry 'Debian GNU/Linux' --class debian --class os $menuentry_id_option 'gnulinux-simple-3f' {{
\tload_video
\tlinux\t/boot/vmlinuz-6.12.63+deb13-amd64 root=UUID=3f ro quiet
\tinitrd\t/boot/initrd.img-6.12.63+deb13-amd64
}}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-3f' {{
\tmenuentry 'Debian GNU/Linux, with Linux 6.12.63+deb13-amd64' --class os $menuentry_id_option 'gnulinux-6.12.63-advanced-3f' {{
\t\tlinux\t/boot/vmlinuz-6.12.63+deb13-amd64 root=UUID=3f ro
\t}}
\tmenuentry 'Debian GNU/Linux, with Linux 6.12.63 (recovery mode)' $menuentry_id_option 'gnulinux-6.12.63-recovery-3f' {{
\t\tlinux\t/boot/vmlinuz-6.12.63+deb13-amd64 root=UUID=3f ro single
\t}}
\tmenuentry 'Debian GNU/Linux, with Linux 6.12.57+deb13-amd64' --class os $menuentry_id_option 'gnulinux-6.12.57-advanced-3f' {{
\t\tlinuxefi /vmlinuz-6.12.57+deb13-amd64 root=UUID=3f ro
\t}}
}}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {{
\tfwsetup
}}
"""  # noqa: E501
OLDER, NEWER = KERNEL, "6.12.63+deb13-amd64"
ENTRY = "gnulinux-advanced-3f>gnulinux-6.12.57-advanced-3f"


@pytest.mark.parametrize(
    ("default", "environment", "kernel"),
    [
        ("0", "", NEWER),
        (ENTRY, "", OLDER),
        ("1>2", "", OLDER),
        ("1", "", NEWER),  # a submenu boots its first entry
        ("Advanced options for Debian GNU/Linux>Debian GNU/Linux, with Linux 6.12.57+deb13-amd64", "", OLDER),
        ("${saved_entry}", f"# GRUB Environment Block\nsaved_entry={ENTRY}\n####", OLDER),
        ("${saved_entry}", "# GRUB Environment Block\n####", NEWER),
        ("0", f"next_entry={ENTRY}\n", OLDER),  # grub-reboot: once
        ("2", "", None),  # the firmware
        ("gnulinux-advanced-3f>gone", "", None),
    ],
)
def test_what_grub_boots_next(default, environment, kernel):
    assert grub.default(MENU.format(default=default), environment) == kernel


def test_an_older_kernel_is_named_as_grub_takes_it():
    entries = grub.entries(MENU.format(default="0"))
    assert entries == {NEWER: "gnulinux-advanced-3f>gnulinux-6.12.63-advanced-3f", OLDER: ENTRY}
    assert all(grub.default(MENU.format(default=name)) == kernel for kernel, name in entries.items())
    assert grub.entries("") == {} and grub.default("") is None


def look(tmp_path, **answers):
    seen = node_state.Look(root=str(tmp_path))
    seen.run = lambda *argv: answers.get(argv[0], (None, f"{argv[0]} can't be run"))
    return seen


def put(tmp_path, path, text=""):
    target = tmp_path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text if isinstance(text, bytes) else text.encode())


def test_a_host_knows_its_kernels_and_their_entries(tmp_path):
    for kernel in (OLDER, NEWER, "0-rescue-9a"):
        put(tmp_path, f"boot/vmlinuz-{kernel}")
    put(tmp_path, "boot/grub/grub.cfg", MENU.format(default=ENTRY))
    seen = look(tmp_path)
    assert seen.boot_entries()[OLDER] == ENTRY and set(seen.boot_entries()) == {OLDER, NEWER}
    assert seen.boot_kernel("1") == OLDER
    grubby = look(tmp_path, grubby=(0, "/boot/vmlinuz-5.14.0-1.el9.x86_64\n"))
    assert grubby.boot_kernel("1") == "5.14.0-1.el9.x86_64"


ENTRIES = {OLDER: ENTRY, NEWER: "gnulinux-advanced-3f>gnulinux-6.12.63-advanced-3f"}


@pytest.mark.parametrize(
    ("declared", "kernels", "wanted", "entry"),
    [
        (None, ENTRIES, "", ""),
        ("6.12.57", ENTRIES, OLDER, ENTRY),
        ("6.12.5", ENTRIES, "", ""),
        ("6.8.0-1025", {"6.8.0-1025-nvidia": "a>b", "6.8.0-60-generic": "a>c"}, "6.8.0-1025-nvidia", "a>b"),  # DGX OS
        ("5.14.0-503", {"5.14.0-503.el9.x86_64": ""}, "5.14.0-503.el9.x86_64", ""),
    ],
)
def test_the_declared_kernel_is_made_the_default(declared, kernels, wanted, entry):
    seen, software = {"boot_entries": kernels}, {"kernel": declared}
    assert value("base", "base_boot_wanted", seen, software) == wanted
    assert value("base", "base_boot_entry", seen, software) == entry


def test_a_reboot_into_another_kernel_is_none():
    assert value("base", "base_boot_next", {"boot_kernel": NEWER}, {"kernel": "6.12.57"}).startswith(
        "would boot kernel"
    )
    assert value("base", "base_boot_next", {"boot_kernel": NEWER}) == ""
    assert value("base", "base_boot_next", {}, {"kernel": "6.12.57"}) == ""


def test_headers_of_the_next_kernel_are_there_before_it_boots():
    assert value("base", "base_kernel_packages", {"boot_kernel": NEWER}) == [
        f"linux-headers-{OLDER}",
        f"linux-headers-{NEWER}",
    ]


# ---- modules

LOADED = """\
nvidia_uvm 1540096 4 - Live 0x0
nvidia_drm 126976 1 - Live 0x0
nvidia_modeset 1572864 2 nvidia_drm, Live 0x0
gdrdrv 28672 0 - Live 0x0
site_made 16384 0 - Live 0x0
nvidia 60000000 51 nvidia_uvm,nvidia_modeset,gdrdrv,site_made, Live 0x0
mlx5_core 2000000 1 mlx5_ib, Live 0x0
"""


def test_only_what_is_loaded_goes_users_before_what_they_use():
    order = node_state.unload_order(LOADED)
    assert order == ["gdrdrv", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "site_made", "nvidia"]
    assert node_state.unload_order("ext4 1 0 - Live 0x0\n") == []


@pytest.mark.parametrize(
    ("loaded", "commands"),
    [
        ([], [["modprobe", "nvidia"], ["modprobe", "nvidia_uvm"]]),
        (
            ["gdrdrv", "nvidia_uvm", "nvidia"],
            [["rmmod", "gdrdrv", "nvidia_uvm", "nvidia"], ["modprobe", "nvidia"], ["modprobe", "nvidia_uvm"]],
        ),
    ],
)
def test_the_reload_takes_what_is_there_and_brings_it_back(loaded, commands):
    *first, last = value("nvidia_driver", "nvidia_driver_reload", {"nvidia_modules": loaded})
    assert first == commands
    assert last[:2] == ["sh", "-c"] and last[4:] == [name for name in loaded if name == "gdrdrv"]


# ---- Secure Boot

EFI = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


@pytest.mark.parametrize(("data", "on"), [(b"\6\0\0\0\1", True), (b"\6\0\0\0\0", False), (None, None)])
def test_secure_boot_is_asked_of_the_firmware(tmp_path, data, on):
    assert look(tmp_path).secure_boot() is False  # no EFI
    put(tmp_path, EFI if data else "sys/firmware/efi/runtime", data or b"")
    assert look(tmp_path).secure_boot() is on


@pytest.mark.parametrize(
    ("said", "enrolled"),
    [("/var/lib/dkms/mok.pub is already enrolled", True), ("/var/lib/dkms/mok.pub is not enrolled", False)],
)
def test_a_key_of_dkms_is_enrolled_or_not(tmp_path, said, enrolled):
    assert look(tmp_path, mokutil=(0, said)).own_key() is False
    put(tmp_path, "var/lib/dkms/mok.pub")
    assert look(tmp_path, mokutil=(1 if enrolled else 0, said)).own_key() is enrolled


OTHER = {"gpus": []}


@pytest.mark.parametrize(
    ("seen", "refused"),
    [
        ({}, False),
        (OTHER | {"secure_boot": True}, True),
        (OTHER | {"secure_boot": True, "own_key": True}, False),
        ({"secure_boot": True}, False),  # it runs: whoever signed it
        (OTHER | {"secure_boot": None}, False),
    ],
)
def test_unsigned_modules_are_refused_before_they_are_built(seen, refused):
    text = value("nvidia_driver", "nvidia_driver_unsigned", seen)
    assert bool(text) is refused and (not refused or "has Secure Boot on" in text)


# ---- the network's modules


@pytest.mark.parametrize(
    ("files", "modinfo", "versions"),
    [
        ({}, "", {}),
        ({"sys/module/mlx5_core/version": "25.01\n"}, "25.01\n", {"mlx5_core": ["25.01", "25.01"]}),
        ({"sys/module/mlx5_core/srcversion": "AB12\n"}, "25.01\n", {"mlx5_core": ["", "25.01"]}),  # the kernel's own
    ],
)
def test_what_is_loaded_is_compared_with_what_is_installed(tmp_path, files, modinfo, versions):
    for path, text in files.items():
        put(tmp_path, path, text)
    assert look(tmp_path, modinfo=(0, modinfo)).module_versions() == versions


@pytest.mark.parametrize(
    ("stack", "pair", "stale"),
    [
        ("doca-ofed", ["25.01", "25.01"], []),
        ("doca-ofed", ["", "25.01"], ["mlx5_core is loaded in version of the kernel, installed is 25.01"]),
        ("doca-ofed", ["24.10", "25.01"], ["mlx5_core is loaded in version 24.10, installed is 25.01"]),
        ("doca-ofed", ["24.10", ""], []),
        ("inbox", ["24.10", "25.01"], []),
    ],
)
def test_another_loaded_version_of_doca_is_told(stack, pair, stale):
    software = {"rdma": stack, "packages": {"rdma": []}}
    seen = {"module_versions": {"mlx5_core": pair}}
    assert value("rdma", "rdma_stale", seen, software, rdma_own_kernel=True) == stale
