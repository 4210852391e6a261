"""What a console says of host keys, as the systems' cloud-init prints it."""

import base64
import json

import pytest

from ironburst.baking.first_contact import host_keys, known_hosts, user_data


def encoded(kind, content=b"k" * 32):
    parts = (kind.encode(), content)
    return base64.b64encode(b"".join(len(part).to_bytes(4) + part for part in parts)).decode()


ED, EC = (f"{kind} {encoded(kind)}" for kind in ("ssh-ed25519", "ecdsa-sha2-nistp256"))
UBUNTU = f"""\
<14>Jun  3 17:07:52 ec2: -----BEGIN SSH HOST KEY FINGERPRINTS-----\r
<14>Jun  3 17:07:52 ec2: 256 SHA256:KX5cHC4YL9dXpvhnP6eSfS+J/zmKgg9zdlEzaEb+RTA root@ip-10-0-0-1 (ED25519)\r
<14>Jun  3 17:07:52 ec2: -----END SSH HOST KEY FINGERPRINTS-----\r
-----BEGIN SSH HOST KEY KEYS-----\r
{EC} root@ip-10-0-0-1\r
{ED} root@ip-10-0-0-1\r
-----END SSH HOST KEY KEYS-----\r
[   20.1] cloud-init[900]: Cloud-init v. 24.4 finished\r
"""
REDHAT = f"""\
[   11.52] cloud-init[1102]: -----BEGIN SSH HOST KEY KEYS-----
[   11.52] cloud-init[1102]: {ED}
[   11.53] cloud-init[1102]: -----END SSH HOST KEY KEYS-----
"""


@pytest.mark.parametrize(("console", "keys"), [(UBUNTU, [EC, ED]), (REDHAT, [ED])], ids=["ubuntu", "redhat"])
def test_the_keys_of_a_console(console, keys):
    assert host_keys(console) == keys


@pytest.mark.parametrize("console", ["", "login:", UBUNTU[: UBUNTU.index("-----END SSH HOST KEY KEYS")]])
def test_no_keys_before_all_are_printed(console):
    assert host_keys(console) == []


def test_the_last_boot_counts():
    newer = f"ssh-ed25519 {encoded('ssh-ed25519', b'n' * 32)}"
    assert host_keys(REDHAT + REDHAT.replace(ED, newer)) == [newer]


def test_a_line_that_the_kernel_wrote_into_is_no_key():
    broken = f"{EC[:60]}[   12.0] random: crng init done"
    assert host_keys(UBUNTU.replace(EC, broken)) == [ED]
    other_kind = f"ssh-rsa {encoded('ssh-ed25519')}"
    assert host_keys(UBUNTU.replace(EC, other_kind)) == [ED]


def test_the_file_that_ssh_reads():
    assert known_hosts("10.0.0.1", [EC, ED]) == f"10.0.0.1 {EC}\n10.0.0.1 {ED}\n"


def test_user_data_is_cloud_config_without_a_secret():
    first, text = user_data(f"{ED} me\n").split("\n", 1)
    told = json.loads(text)
    assert first == "#cloud-config" and told["ssh_authorized_keys"] == [f"{ED} me"]
    assert len(user_data(f"{ED} me")) < 16384 and set(told) == {"ssh_authorized_keys", "runcmd"}
