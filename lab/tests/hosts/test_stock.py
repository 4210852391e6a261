"""The cloud's stock image: what it takes away from the hall's, and its stand-in for cloud-init."""

import json
import py_compile

import pytest

from lab.hosts import stock


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(stock.os, "chown", lambda *_: None)
    files = {
        "etc/passwd": "root:x:0:0::/root:/bin/bash\nalice:x:1500:1500::/home/alice:/bin/bash\n",
        "etc/shadow": "root:*:1::::::\nalice:!:1::::::\n",
        "etc/group": "root:x:0:\nalice:x:1500:\n",
        "etc/gshadow": "root:*::\nalice:!::\n",
        "etc/ssh/ssh_host_ed25519_key": "one for all hosts",
        "etc/ssh/sshd_config": "UseDNS no\n",
        "root/.ssh/authorized_keys": "the lab's key",
        "home/alice/.profile": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    stock.dress(tmp_path, "admin")
    return tmp_path


def test_no_root_login_no_shared_host_key_no_alice(root):
    assert not (root / "root/.ssh").exists() and not list(root.glob("etc/ssh/ssh_host_*"))
    assert not (root / "home/alice").exists() and (root / "etc/ssh/sshd_config").exists()
    accounts = [(root / f"etc/{name}").read_text() for name in ("passwd", "shadow", "group", "gshadow")]
    assert all("alice" not in text and text.count("admin") for text in accounts)


def test_the_login_user_has_sudo_and_no_key(root):
    sudo = root / "etc/sudoers.d/90-cloud-init-users"
    assert sudo.read_text() == "admin ALL=(ALL) NOPASSWD:ALL\n" and sudo.stat().st_mode & 0o777 == 0o440
    assert list((root / "home/admin").iterdir()) == []
    assert json.loads((root / stock.SETTINGS).read_text())["system_info"]["default_user"]["name"] == "admin"


def test_it_is_done_once(root):
    (root / "home/admin/here").write_text("")
    stock.dress(root, "admin")
    assert (root / "home/admin/here").exists() and (root / "etc/passwd").read_text().count("admin:x:") == 1


def test_cloud_init_is_a_program(root, tmp_path):
    program = root / "usr/bin/cloud-init"
    assert program.stat().st_mode & 0o111 and "STAND-IN" in program.read_text()
    py_compile.compile(str(program), cfile=str(tmp_path / "compiled"), doraise=True)


def test_its_console_is_the_serial_port_before_anything_of_the_first_boot(root):
    unit = (root / "etc/systemd/system/cloud-init.service").read_text()
    commands = [line for line in unit.splitlines() if line.startswith("ExecStart")]
    assert commands == [
        "ExecStartPre=/usr/bin/ln --symbolic --force ttyS0 /dev/console",
        "ExecStart=/usr/bin/cloud-init init",
    ]
