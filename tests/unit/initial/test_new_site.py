"""`ironburst init` from nothing: every kind of site becomes a valid file; a person on a terminal is asked, and again."""

# ruff: noqa: E501

import fcntl
import itertools
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ironburst import cli
from ironburst.config import load, stack
from ironburst.document import of_stack

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 11, 21, tzinfo=UTC)
CA = ROOT / "stacks/Pulumi.mixed.yaml"
NODES = {
    "none": ["--nodes", "0"],
    "one": ["--nodes", "1", "--platform", "dgx-h100", "--addresses", "10.4.0.11"],
    "many": [
        "--nodes",
        "12",
        "--platform",
        "dgx-h200",
        "--addresses",
        "10.4.0.[250-254],10.4.1.[1-7]",
        "--names",
        "n[1-12]",
    ],
}
CLOUD = {
    "rents nothing": ["--region", "none"],
    "rents": ["--budget", "5000", "--mail", "ops@example.org, cfo@example.org", "--rent", "p5.48xlarge=4"],
    "without prices": [
        "--region",
        "eu-west-1",
        "--rent",
        "p5.48xlarge=4",
        "--price",
        "60",
        "--budget",
        "900",
        "--wait",
        "1h",
    ],
}
SYSTEMS = ("ubuntu2404", "debian13", "rhel9")


def scheduler(kind, managed, nodes, rents, tmp_path):
    flags = ["--scheduler", kind, "--managed", managed]
    if kind == "slurm":
        return [*flags, "--head", "10.4.0.10"] + (["--slurm", "24.11"] if managed == "no" else [])
    if managed == "no":
        pem = tmp_path / "ca.pem"
        text = CA.read_text()
        begin, end = text.index("-----BEGIN"), text.index("-----END CERTIFICATE-----") + 25
        pem.write_text("\n".join(line.strip() for line in text[begin:end].splitlines()) + "\n")
        return [*flags, "--api-server", "https://10.4.0.5:6443", "--ca", str(pem)]
    if nodes == "none":
        return [*flags, *(["--image", "ami-0123456789abcdef0"])]
    return [*flags, "--head", "10.4.0.10"]


def init(tmp_path, *flags):
    out = tmp_path / "Pulumi.site.yaml"
    where = [] if "--region" in flags else ["--region", "us-east-1"]
    return out, cli.main(["init", "--yes", "--name", "site", "--output", str(out), *where, *flags])


NOTHING = {
    *((kind, managed, "none", "rents nothing") for kind in ("slurm", "kubernetes") for managed in ("yes", "no")),
    *(("kubernetes", "no", "none", rents) for rents in CLOUD),
}
"""no nodes, and none rented; a cluster that is there without its nodes"""
KINDS = list(itertools.product(("slurm", "kubernetes"), ("yes", "no"), NODES, CLOUD))


@pytest.mark.parametrize(("kind", "managed", "nodes", "rents"), KINDS)
def test_every_kind_of_site_becomes_a_valid_file(kind, managed, nodes, rents, tmp_path, capsys):
    flags = [*scheduler(kind, managed, nodes, rents, tmp_path), *NODES[nodes], *CLOUD[rents]]
    system = SYSTEMS[(len(kind) + len(managed) + len(rents)) % 3]
    out, code = init(tmp_path, *flags, "--os", system)
    said = capsys.readouterr().err
    if (kind, managed, nodes, rents) in NOTHING:
        assert code == 2 and ("nothing to declare" in said or "has nodes" in said) and not out.exists()
        return
    assert code == 0, said
    declared = stack.load_valid(out, now=NOW).config
    of_stack.document(out)  # as Pulumi's program makes it
    assert (
        sum(len(each.names) for hall in declared.halls for each in hall.nodes if each.role == "gpu")
        == {"none": 0, "one": 1, "many": 12}[nodes]
    )
    assert (declared.budget is None) == (rents == "rents nothing")


def test_what_is_missing_is_told_in_one_sentence(tmp_path, capsys):
    for flags, words in (
        ([], ["--nodes (", "--head (", "--budget ("]),
        (["--nodes", "4"], ["--platform (", "--addresses (", "--head (", "--budget ("]),
        (["--nodes", "0", "--head", "10.0.0.1", "--budget", "5"], ["--rent ("]),
        (
            [*NODES["one"], "--scheduler", "kubernetes", "--managed", "no", "--region", "none"],
            ["--api-server (", "--ca ("],
        ),
    ):
        out, code = init(tmp_path, *flags)
        said = capsys.readouterr().err
        assert code == 2 and said.count("\n") == 1 and all(each in said for each in words), said
        assert not out.exists()


def test_no_region_is_guessed(tmp_path, capsys):
    out = tmp_path / "Pulumi.site.yaml"
    assert (
        cli.main(["init", "--yes", "--name", "site", "--output", str(out), *NODES["one"], "--head", "10.4.0.10"]) == 2
    )
    assert "give --region (region of a cloud to rent in (none: rent nothing))" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--nodes", "four"], "--nodes: 'four' is no number of nodes"),
        (["--nodes", "4", "--platform", "dgx-h10"], "did you mean 'dgx-h100'?"),
        (["--nodes", "4", "--platform", "h100=dgx-h100"], "belongs to --from-slurm"),
        (["--nodes", "4", "--platform", "dgx-h100", "--names", "dgx[01-03]"], "gives 3 for 4 nodes"),
        (["--nodes", "2", "--platform", "dgx-h100", "--addresses", "10.0.0.[1-300]"], "gives 300 for 2 nodes"),
        (["--nodes", "1", "--platform", "dgx-h100", "--addresses", "fd00::1"], "is not an IPv4 address"),
        (["--nodes", "0", "--platform", "dgx-h100"], "--platform belongs to another kind of site"),
        (["--nodes", "0", "--scheduler", "slrm"], "did you mean slurm?"),
        (["--nodes", "0", "--scheduler", "k8s"], "allowed: slurm, kubernetes"),
        (["--nodes", "0", "--managed", "maybe"], "allowed: yes, no"),
        (["--nodes", "0", "--head", "head"], "is not an IPv4 address"),
        (["--nodes", "0", "--head", "10.0.0.5", "--os", "ubuntu"], "did you mean ubuntu"),
        (["--nodes", "0", "--head", "10.0.0.5", "--region", "Frankfurt"], "did you mean 'eu-central-1', 'europe-west3' or 'germanywestcentral'?"),
        (["--nodes", "0", "--head", "10.0.0.5", "--rent", "p5.48xlarge"], "write TYPE=NODES"),
        (["--nodes", "0", "--head", "10.0.0.5", "--rent", "p5.48=2"], "Unknown instance type 'p5.48': did you mean 'p5.48xlarge'"),
        (["--nodes", "0", "--head", "10.0.0.5", "--rent", "p5.48xlarge=2", "--zones", "us-west-2a"], "is not a zone of us-east-1"),
        (["--nodes", "0", "--head", "10.0.0.5", "--rent", "p5.48xlarge=2", "--budget", "5k"], "--budget: '5k' is no number"),
        (["--nodes", "0", "--head", "10.0.0.5", "--rent", "p5.48xlarge=2", "--budget", "5000", "--wait", "20"], "is not a duration"),
        (["--nodes", "0", "--head", "10.0.0.5", "--rent", "p5.48xlarge=2", "--budget", "5000", "--mail", "ops"], "is no mail address"),
    ],
)  # fmt: skip
def test_a_wrong_answer_is_told_and_nothing_is_written(flags, words, tmp_path, capsys):
    out, code = init(tmp_path, *flags)
    assert code == 2 and words in capsys.readouterr().err and not out.exists()


SITE = ["--nodes", "1", "--platform", "dgx-h100", "--addresses", "10.4.0.11", "--head", "10.4.0.10", "--budget", "5000"]


def test_a_file_that_is_there_is_kept_without_force(tmp_path, capsys):
    out = tmp_path / "Pulumi.site.yaml"
    out.write_text("mine")
    assert init(tmp_path, *SITE)[1] == 2 and out.read_text() == "mine"
    assert "--force to replace it" in capsys.readouterr().err
    assert init(tmp_path, *SITE, "--force", "--network", "10.9.0.0/24")[1] == 2 and out.read_text() == "mine"
    assert init(tmp_path, *SITE, "--force")[1] == 0 and load.load(out).name == "site"


def test_a_person_on_a_terminal_is_asked_and_again_after_a_mistake(tmp_path):
    answers = [
        ("Name of the stack: ", "Hall 1"), ("is no name", None), ("Name of the stack: ", "hall1"),
        ("How many GPU nodes do you own (0: none): ", "4"),
        ("Platform (`ironburst catalog platforms` lists all): ", "dgx h100"), ("did you mean 'dgx-h100'?", None),
        ("lists all): ", "dgx-h100"),
        ("Their names [dgx[01-04]]: ", ""),
        ("Their addresses, as in 10.0.0.[11-14]: ", "10.0.0.[11-14]"),
        ("slurm or kubernetes [slurm]: ", ""), ("(no: it is there already) [yes]: ", ""),
        ("head node: ", "10.0.0.10"), ("Network of the nodes [10.0.0.0/24]: ", "10.0.0.0/22"),
        ("System of the nodes [ubuntu2404]: ", ""), ("(none: rent nothing): ", "us-east-1"),
        ("[p5.48xlarge=2]: ", ""), ("Zones [us-east-1a,us-east-1b]: ", ""),
        ("USD: ", "5k"), ("is no number above zero", None), ("USD: ", "5000"),
        ("should have [20m]: ", "30m"), ("nobody) [none]: ", "ops@example.org"),
        ("valid; next: `ironburst lock ", None),
    ]  # fmt: skip
    code, said = played(["init"], answers, tmp_path)
    assert code == 0, said
    declared = load.load(tmp_path / "Pulumi.hall1.yaml")
    assert declared.budget.notify == ["ops@example.org"] and declared.burst.wait_target.mean == 1800
    assert declared.halls[0].nodes[1].names == ["dgx01", "dgx02", "dgx03", "dgx04"]


@pytest.mark.parametrize("key", ["\x04", "\x03"], ids=["Ctrl-D", "Ctrl-C"])
def test_who_stops_answering_gets_no_file_and_no_traceback(key, tmp_path):
    code, said = played(["init"], [("Name of the stack: ", "hall1"), ("own (0: none): ", key)], tmp_path)
    assert code == (2 if key == "\x04" else 130) and "Traceback" not in said and list(tmp_path.iterdir()) == []


def _on_its_terminal():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # who starts the tests in the background has it ignored


def played(argv, answers, folder):
    """The exit code and the words of a verb that was played on a terminal: each answer behind its prompt."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ironburst.cli", *argv],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"},
        start_new_session=True,
        preexec_fn=_on_its_terminal,
    )
    os.close(slave)
    said, seen, limit = "", 0, time.monotonic() + 120

    def more():
        nonlocal said
        if not select.select([master], [], [], 60)[0]:
            raise AssertionError(f"nothing was said for a minute after {said!r}")
        try:
            said += os.read(master, 65536).decode()
        except OSError:
            return False
        return True

    try:
        for prompt, answer in answers:
            while prompt not in said[seen:]:
                assert more(), f"ended before {prompt!r}: {said}"
            seen = said.index(prompt, seen) + len(prompt)
            if answer is not None:
                os.write(master, answer.encode() + (b"" if answer in "\x03\x04" and answer else b"\n"))
        while process.poll() is None:
            assert time.monotonic() < limit, f"didn't end: {said}"
            if answers[-1][1] == "\x03" and not select.select([master], [], [], 1)[0]:
                os.write(master, b"\x03")  # input() misses one that comes right before it reads
            elif not more():
                break
        while more():
            pass
        return process.wait(60), said
    finally:
        process.kill()
        os.close(master)
