"""`pip install .`: what is in the wheel, and what the installed command does in a folder without a checkout."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ironburst
from tests.fakes import document

ROOT = Path(__file__).parents[2]
# arguments, exit code, and what is said
NEEDS_NO_CHECKOUT = (
    ("--version", 0, ironburst.__version__),
    ("validate stack.yaml --no-secrets", 0, "valid"),
    ("lock stack.yaml", 0, "stack.lock.yaml"),
    ("lock stack.yaml --check", 0, "stack.lock.yaml"),
    ("document stack.yaml", 2, "only Pulumi knows"),
    ("publish --to document.json", 2, "publish: "),
    ("status --ledger ledger.sqlite", 2, "no ClusterDocument"),
    ("explain 1 --ledger ledger.sqlite", 2, "ledger.sqlite"),
    ("serve --document document.json", 2, "document.json"),
    ("serve --document cluster.json --ledger ledger.sqlite --out page.html", 0, ""),
    ("run --document document.json --ledger ledger.sqlite", 2, "document.json"),
    ("replay ticks", 2, "there are no ticks"),
    ("simulate --config stack.yaml --bound-seconds 0 jobs.csv", 0, "rented"),
    ("size --config stack.yaml --owned-usd-per-gpu-hour 1 jobs.csv", 0, "own"),
    ("health xid 79", 3, "Xid 79"),
    ("catalog gpus h100", 0, "H100 SXM5 80GB"),
    ("slurm snippet stack.yaml", 0, "##### /usr/local/sbin/ironburst-resume"),
)


@pytest.fixture(scope="module")
def run(installed, tmp_path_factory):
    """The installed command, in a folder of its own."""
    folder = tmp_path_factory.mktemp("work")
    shutil.copy(ROOT / "stacks" / "Pulumi.lab.yaml", folder / "stack.yaml")
    (folder / "cluster.json").write_text(document().model_dump_json())
    jobs = (f"{3600 * n},{1800 + 600 * (n % 5)},{1 + n % 8}" for n in range(40))
    (folder / "jobs.csv").write_text("\n".join(("submit_s,duration_s,num_gpus", *jobs)))
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(installed)}

    def command(*argv):
        program = "import sys, ironburst.cli; sys.exit(ironburst.cli.main())"
        argv = [sys.executable, "-P", "-c", program, *argv]
        return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)

    return command


def test_every_module_and_data_file_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("ironburst/")}
    tracked = subprocess.run(["git", "ls-files", "ironburst"], cwd=ROOT, check=True, capture_output=True, text=True)
    assert inside == {name for name in tracked.stdout.splitlines() if (ROOT / name).exists()}
    assert ironburst.__version__ in wheel.name


@pytest.mark.parametrize(("command", "code", "words"), NEEDS_NO_CHECKOUT, ids=[given[0] for given in NEEDS_NO_CHECKOUT])
def test_what_needs_no_checkout_works_without_one(run, command, code, words):
    done = run(*command.split())
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", ["converge", "image"])
def test_what_needs_a_checkout_says_so_in_one_sentence(run, verb):
    given = {"converge": ["--inventory", "x"], "image": ["p5", "--inventory", "x", "--base-image", "ami-12345678"]}
    done = run(verb, *given[verb])
    assert done.returncode == 2
    assert "checkout" in done.stderr and len(done.stderr.strip().splitlines()) == 1
