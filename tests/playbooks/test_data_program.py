"""The program that brings a node's data sets: from the lab's S3, which judges every call by IAM, with a node's rights;
what it asks of mount.
"""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from programs import PLAYBOOKS, copied_files, load

from ironburst.config.aws import policies
from ironburst.config.aws.data_models import DataSet
from lab.aws.testing import REGION
from tests.lab_cloud import assumed, clients, server

__all__ = ["clients", "server"]

PROGRAM = PLAYBOOKS / "roles/data_sets/files/ironburst-data.py"
WHERE = policies.Scope("aws", REGION, "123456789012")
OBJECTS = {
    "imagenet/train/1.tar": b"0123456789" * 3,
    "imagenet/train/2.tar": b"x" * 16,
    "imagenet/empty": b"",
    "imagenet/labels.csv": b"a,b",
    "imagenet/val/": b"",
    "imagenet-21k/secret": b"not ours",
    "secret": b"not ours",
}
FILES = copied_files(OBJECTS, "imagenet/")


@pytest.fixture(scope="module")
def bucket(server, clients):
    """A bucket, and the credentials of a role that reads one prefix of it."""
    s3, iam = clients("s3"), clients("iam")
    s3.create_bucket(Bucket="training")
    s3.create_bucket(Bucket="none")
    for key, data in OBJECTS.items():
        s3.put_object(Bucket="training", Key=key, Body=data)
    s3.put_object(Bucket="training", Key="bad/../passwd", Body=b"x")
    trust = json.dumps(policies.assumed_within(WHERE))
    arn = iam.create_role(RoleName="node", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    readable = [DataSet(s3="training/imagenet"), DataSet(s3="training/bad"), DataSet(s3="none")]
    rights = json.dumps(policies.node(WHERE, None, readable))
    iam.put_role_policy(RoleName="node", PolicyName="p", PolicyDocument=rights)
    return s3, assumed(clients, arn).get_credentials()


@pytest.fixture
def node(server, bucket, monkeypatch, tmp_path):
    """`node(sets)` -> exit status; `node.mounts`: what was asked of mount; `node.program`."""
    _, keys = bucket
    for name, value in {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_ACCESS_KEY_ID": keys.access_key,
        "AWS_SECRET_ACCESS_KEY": keys.secret_key,
        "AWS_SESSION_TOKEN": keys.token,
        "IRONBURST_DATA_ROOT": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    program = load("roles/data_sets/files/ironburst-data.py")
    monkeypatch.setitem(sys.modules, program.__name__, program)  # by this name its workers find their work
    mounts = []
    monkeypatch.setattr(program, "run", lambda *argv: mounts.append(argv))
    monkeypatch.setattr(program, "ROLE_S", 0)
    monkeypatch.setattr(program, "PART", 8)

    def bring(sets, seconds=60):
        settings = tmp_path / "etc/ironburst/data.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps({"region": REGION, "seconds": seconds, "sets": sets}))
        monkeypatch.setattr(sys, "argv", ["ironburst-data", "--settings", str(settings)])
        mounts.clear()
        return program.main()

    bring.program, bring.mounts, bring.root = program, mounts, tmp_path
    return bring


def s3(source, path):
    return {"imagenet": {"kind": "s3", "source": source, "path": str(path)}}


def copies(node):
    return sorted((node.root / "var/lib/ironburst/.ironburst-data").iterdir())


def content(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_objects_below_the_prefix_are_copied_and_mounted_read_only(node):
    path = node.root / "data/imagenet"
    assert node(s3("training/imagenet", path)) == 0
    (folder,) = copies(node)
    assert content(folder) == FILES
    assert {oct(each.stat().st_mode & 0o777) for each in folder.rglob("*")} == {"0o755", "0o644"}
    assert path.is_dir()
    remount = ("mount", "-o", "remount,bind,ro,nosuid,nodev", str(path))
    assert node.mounts == [("mount", "--bind", str(folder), str(path)), remount]


def test_a_copy_that_is_whole_is_kept_and_asks_nothing(node, monkeypatch):
    path = node.root / "data"
    assert node(s3("training/imagenet", path)) == 0
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert node(s3("training/imagenet", path)) == 0
    assert content(copies(node)[0]) == FILES and len(node.mounts) == 2


def test_one_that_broke_off_or_has_another_source_goes(node):
    home = node.root / "var/lib/ironburst/.ironburst-data"
    for name in ("imagenet-0123456789ab", "imagenet-0123456789ac.part", "imagenet-21k-0123456789ab"):
        (home / name / "folder").mkdir(parents=True)
    assert node(s3("training/imagenet", node.root / "data")) == 0
    assert len(copies(node)) == 2 and copies(node)[0].name == "imagenet-21k-0123456789ab"
    assert content(copies(node)[1]) == FILES


def test_its_scratch_holds_the_copies_if_it_has_one(node, monkeypatch, capsys):
    (node.root / "etc/ironburst").mkdir(parents=True)
    (node.root / "etc/ironburst/scratch.json").write_text(json.dumps({"path": "/scratch"}))
    (node.root / "scratch").mkdir()
    assert node(s3("training/imagenet", node.root / "data")) == 1
    assert "there is no scratch at" in capsys.readouterr().err
    monkeypatch.setattr(os.path, "ismount", lambda path: path == f"{node.root}/scratch")
    assert node(s3("training/imagenet", node.root / "data")) == 0
    (folder,) = (node.root / "scratch/.ironburst-data").iterdir()
    assert content(folder) == FILES


def test_a_folder_that_somebody_else_made_in_scratch_is_not_used(node, capsys):
    home = node.root / "var/lib/ironburst"
    home.mkdir(parents=True)
    (home / ".ironburst-data").symlink_to(node.root)
    assert node(s3("training/imagenet", node.root / "data")) == 1
    assert "is not root's: somebody else made it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("training/imagenet-21k", "s3://training/imagenet-21k/ can't be listed: "),
        ("training", "s3://training/ can't be listed: "),
        ("missing/imagenet", "s3://missing/imagenet/ can't be listed: "),
        ("none", "there is no object below s3://none/"),
        ("training/bad", "the object 'bad/../passwd' has a name that no file can have"),
    ],
)
def test_what_can_not_be_brought_is_one_sentence_and_leaves_nothing(node, capsys, source, words):
    path = node.root / "data"
    assert node(s3(source, path)) == 1
    said = capsys.readouterr().err
    assert said.startswith("data: " + words) and said.count("\n") == 1
    assert ("An error occurred (AccessDenied)" in said) == ("can't be listed" in said)
    assert not path.exists() and copies(node) == [] and not node.mounts


def test_an_object_that_changes_while_it_is_copied(node, bucket, monkeypatch, capsys):
    listed = node.program.listing

    def then_written(*asked):
        found = listed(*asked)
        return [(path, key, '"0"', size) for path, key, _, size in found]

    monkeypatch.setattr(node.program, "listing", then_written)
    assert node(s3("training/imagenet", node.root / "data")) == 1
    said = capsys.readouterr().err
    assert "An error occurred (PreconditionFailed)" in said and not node.mounts
    assert [each.suffix for each in copies(node)] == [".part"]


def test_no_room(node, monkeypatch, capsys):
    class Full:
        f_bavail, f_frsize = 1, 8

    monkeypatch.setattr(node.program.os, "statvfs", lambda _path: Full)
    assert node(s3("training/imagenet", node.root / "data")) == 1
    assert "imagenet is 0.0 GB, and " in capsys.readouterr().err and not node.mounts


def test_time_is_over(node, monkeypatch, capsys):
    made, parent = node.program.store_of.Bucket, os.getpid()
    monkeypatch.setattr(
        node.program.store_of, "Bucket", lambda *of: made(*of) if os.getpid() == parent else time.sleep(60)
    )
    began = time.monotonic()
    assert node(s3("training/imagenet", node.root / "data"), seconds=1) == 1
    said = capsys.readouterr().err
    assert "0.0 GB of 0.0 GB of imagenet were copied in" in said and "raise its pool's boot" in said
    assert time.monotonic() - began < 30 and not node.mounts


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
def test_on_real_mounts_even_root_only_reads_and_a_second_time_changes_nothing(node):
    path = node.root / "data"
    settings = node.root / "settings.json"
    settings.write_text(json.dumps({"region": REGION, "seconds": 60, "sets": s3("training/imagenet", path)}))
    bring = f"PYTHONPATH={PROGRAM.parent / 'aws'} {sys.executable} {PROGRAM} --settings {settings}"
    script = f"{bring} && cat {path}/labels.csv && touch {path}/x; {bring} && grep -c ' {path} ' /proc/self/mounts"
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script], capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "1" and "a,b" in done.stdout, done.stderr
    assert "Read-only file system" in done.stderr


# ---- what is to be copied
@pytest.fixture(scope="module")
def program():
    return load("roles/data_sets/files/ironburst-data.py")


@pytest.mark.parametrize("key", ["p/..", "p/../x", "p/./x", "p//x", "p/a//b", "p/a\0b", "p/" + "a" * 256, "p//"])
def test_names_that_no_file_can_have(program, key):
    if key.endswith("/"):
        assert program.relative(key, "p/") is None
    else:
        with pytest.raises(program.DataError):
            program.relative(key, "p/")


def test_large_objects_go_in_parts_and_small_ones_together(program):
    objects = [("big", "k", "e", 2 * program.PART + 5)] + [(str(n), "k", "e", 10) for n in range(600)]
    found = list(program.batches(objects))
    assert sum(part[-1] for batch in found for part in batch) == 2 * program.PART + 5 + 6000
    assert all(sum(part[-1] for part in batch) <= program.PART and len(batch) <= program.BATCH for batch in found)
    assert [part[3] for batch in found for part in batch if part[0] == "big"] == [0, program.PART, 2 * program.PART]
    assert len(found) == 5


# ---- FSx for Lustre
FSX = "127.0.0.1@tcp:/abcd"


@pytest.fixture
def fsx(node, monkeypatch):
    """A server that listens where a file system of FSx does, and a client of Lustre on the node."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(node.program, "LUSTRE_PORT", listener.getsockname()[1])
        tool = node.root / "bin/mount.lustre"
        tool.parent.mkdir()
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
        yield listener


def lustre(path):
    return {"genomes": {"kind": "lustre", "source": FSX, "path": str(path)}}


def test_a_file_system_is_mounted_as_aws_says_and_read_only(node, fsx):
    path = node.root / "data/genomes"
    assert node(lustre(path)) == 0
    options = "ro,relatime,flock,nosuid,nodev,_netdev"
    assert node.mounts == [("mount", "-t", "lustre", "-o", options, FSX, str(path))] and path.is_dir()


def test_one_that_is_mounted_stays_and_another_goes(node, fsx, monkeypatch):
    path = node.root / "data"
    monkeypatch.setattr(node.program, "mounted", lambda asked: FSX)
    assert node(lustre(path)) == 0 and node.mounts == []
    monkeypatch.setattr(node.program, "mounted", lambda asked: "other@tcp:/abcd")
    assert node(lustre(path)) == 0
    assert [each[0] for each in node.mounts] == ["umount", "mount"]


def test_a_closed_security_group_is_told_and_mounts_nothing(node, fsx, capsys):
    fsx.close()
    assert node(lustre(node.root / "data")) == 1
    assert "has to let in 988 and 1018-1023 of the nodes'" in capsys.readouterr().err and not node.mounts


def test_an_image_without_a_client(node, fsx, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/nowhere")
    assert node(lustre(node.root / "data")) == 1
    assert "no client of Lustre for genomes: bake the image anew" in capsys.readouterr().err


def test_settings_of_another_version(node, capsys):
    assert node({"x": {"kind": "nfs", "source": "a:/b", "path": "/x"}}) == 1
    assert "x is of kind nfs, which this image doesn't know" in capsys.readouterr().err
    assert node({}) == 0


def test_a_command_that_fails_says_what_it_said(program):
    with pytest.raises(program.DataError, match=r"sh -c echo no; exit 3 failed: no"):
        program.run("sh", "-c", "echo no; exit 3")
    with pytest.raises(program.DataError, match=r"no-such-tool can't be run"):
        program.run("no-such-tool")
    assert program.mounted("/proc") == "proc" and program.mounted(str(Path("/nowhere"))) is None
