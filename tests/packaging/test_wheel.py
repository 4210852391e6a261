"""`pip install .`: what is in the wheel, and what the installed command does in a folder without a checkout."""

import subprocess
import zipfile
from pathlib import Path

import pytest

import ironburst
from ironburst import cli
from ironburst.document import of_stack
from tests import wheels
from tests.fakes import document

ROOT = Path(__file__).parents[2]
# arguments, exit code, and what is said: the main path of every verb, as far as it goes without a cloud and a cluster
MAIN_PATHS = (
    ("--version", 0, ironburst.__version__),
    ("completion bash", 0, "_ARGCOMPLETE"),
    ("help status", 0, "usage: ironburst status"),
    ("catalog gpus h100", 0, "H100 SXM5 80GB"),
    (
        "init --yes --name made --nodes 1 --platform dgx-h100 --addresses 10.0.0.11 --head 10.0.0.10 --region none",
        0,
        "valid",
    ),
    ("validate stack.yaml --no-secrets", 0, "valid"),
    ("lock stack.yaml", 0, "stack.lock.yaml"),
    ("lock stack.yaml --check", 0, "stack.lock.yaml"),
    ("packages slurm slurm.tar.bz2 --sha256 0 --repository built --key 0", 2, "slurm.tar.bz2"),
    ("mirror stack.yaml --repositories none.yml", 2, "none.yml"),
    ("diff stack.yaml stack.yaml", 0, "0 differences"),
    ("plan stack.yaml --preview preview.json", 0, "no change of resources"),
    ("rights stack.yaml", 2, "no narrow policy for `up`"),
    ("hall plan stack.yaml", 0, "hall-a"),
    ("hall cap 40kW --inventory x", 2, "in a checkout of ironburst"),
    ("document stack.yaml", 2, "only Pulumi knows"),
    ("publish --to document.json", 2, "publish: "),
    ("converge --inventory x", 2, "in a checkout of ironburst"),
    ("fabric stress --inventory x", 2, "in a checkout of ironburst"),
    ("image p5 --inventory x --base-image ami-12345678", 2, "in a checkout of ironburst"),
    ("node show dgx01 stack.yaml", 3, "127.0.0."),
    ("discover 127.0.0.1/32 --port 9", 0, "no Redfish service answers"),
    ("health xid 79", 3, "Xid 79"),
    ("slurm snippet stack.yaml", 0, "##### /usr/local/sbin/ironburst-resume"),
    ("status --ledger ledger.sqlite", 2, "no ClusterDocument"),
    ("status --document cluster.json --ledger ledger.sqlite", 3, "squeue"),
    ("explain 1 --ledger ledger.sqlite", 2, "ledger.sqlite"),
    ("job 1 --ledger ledger.sqlite", 2, "ledger.sqlite"),
    ("logs dgx01 --document cluster.json --ledger ledger.sqlite", 2, "ledger.sqlite"),
    ("run --document document.json --ledger ledger.sqlite", 2, "document.json"),
    ("backup copy.sqlite --ledger ledger.sqlite", 2, "ledger.sqlite"),
    ("receive --document cluster.json --ledger ledger.sqlite", 2, "no monitoring.receiver"),
    ("serve --document document.json", 2, "document.json"),
    ("serve --document cluster.json --ledger ledger.sqlite --out page.html", 0, ""),
    ("tick --document cluster.json --ledger ledger.sqlite", 3, "credentials"),
    ("reap --document cluster.json --ledger ledger.sqlite", 3, "credentials"),
    ("pause --ledger ledger.sqlite", 5, "the order is written down"),
    ("stop --now --ledger ledger.sqlite", 2, "its work is done here"),
    ("resume --ledger ledger.sqlite", 5, "the order is written down"),
    ("close p5 --ledger ledger.sqlite", 5, "the order is written down"),
    ("open p5 --ledger ledger.sqlite", 5, "the order is written down"),
    ("budget set 100 --ledger ledger.sqlite", 5, "the order is written down"),
    ("limit alice --gpus 8 --ledger ledger.sqlite", 5, "the order is written down"),
    ("report --document cluster.json --ledger ledger.sqlite", 3, "head node"),
    ("replay ticks", 2, "there are no ticks"),
    ("simulate --config stack.yaml --bound-seconds 0 jobs.csv", 0, "rented"),
    ("fit jobs.csv --config stack.yaml", 2, "400 or more"),
    ("size --config stack.yaml --owned-usd-per-gpu-hour 1 jobs.csv", 0, "own"),
    ("shares --document cluster.json", 2, "declares no `shares`"),
    ("doctor stack.yaml", 3, "credentials"),
    ("monitoring stack.yaml --to watched", 0, "no alertmanager.yml"),
    ("lab status", 2, "it comes with a checkout"),
)
# what reaches a scheduler, of a site with a cluster
OF_A_CLUSTER = tuple(
    f"{verb} --document {site}.json --ledger ledger.sqlite"
    for verb in ("tick", "status", "reap")
    for site in ("lab-kubernetes", "mixed")
)


def folder_of(tmp_path_factory):
    """A folder to work in, with what the commands name."""
    folder = tmp_path_factory.mktemp("work")
    stack = (ROOT / "stacks" / "Pulumi.lab.yaml").read_text()
    (folder / "stack.yaml").write_text(stack.replace("10.78.8.", "127.0.0."))  # BMCs that refuse
    (folder / "lab").mkdir()
    (folder / "lab" / "bmc.password").write_text("x")
    (folder / "Pulumi.yaml").touch()
    (folder / "cluster.json").write_text(document().model_dump_json())
    for name in ("lab-kubernetes", "mixed"):
        declared = of_stack.document(ROOT / "stacks" / f"Pulumi.{name}.yaml")
        (folder / f"{name}.json").write_text(declared.model_dump_json())
    (folder / "preview.json").write_text('{"steps": [], "changeSummary": {}}')
    jobs = (f"{3600 * n},{1800 + 600 * (n % 5)},{1 + n % 8}" for n in range(40))
    (folder / "jobs.csv").write_text("\n".join(("submit_s,duration_s,num_gpus", *jobs)))
    return folder


def said(python, folder, commands):
    """What each of the commands says there, with no program on PATH and no way to a cloud."""
    (folder / "none").mkdir()
    environment = {
        "PATH": str(folder / "none"),
        "HOME": str(folder),
        "AWS_EC2_METADATA_DISABLED": "true",
        "COLUMNS": "200",
    }
    done = wheels.commands(python, folder, [each.split() for each in commands], environment)
    return dict(zip(commands, done, strict=True))


@pytest.fixture(scope="module")
def done(alone, tmp_path_factory):
    """What the installed command says: the main paths, and those of a cluster whose extra isn't there."""
    commands = [*(given[0] for given in MAIN_PATHS), *OF_A_CLUSTER, *(f"{verb} --help" for verb in ("", *cli.VERBS))]
    return said(alone, folder_of(tmp_path_factory), [each.strip() for each in commands])


@pytest.fixture(scope="module")
def done_with_kubernetes(with_kubernetes, tmp_path_factory):
    return said(with_kubernetes, folder_of(tmp_path_factory), OF_A_CLUSTER)


def test_every_module_and_data_file_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if name.startswith("ironburst/")}
    tracked = subprocess.run(["git", "ls-files", "ironburst"], cwd=ROOT, check=True, capture_output=True, text=True)
    assert inside == {name for name in tracked.stdout.splitlines() if (ROOT / name).exists()}
    assert ironburst.__version__ in wheel.name


def test_every_verb_has_a_main_path_here():
    assert {given[0].split()[0] for given in MAIN_PATHS} - {"--version"} == set(cli.VERBS)


@pytest.mark.parametrize(("command", "code", "words"), MAIN_PATHS, ids=[given[0] for given in MAIN_PATHS])
def test_a_main_path_needs_the_wheel_alone(done, command, code, words):
    said = done[command]
    assert (said.code, "Traceback" in said.stderr) == (code, False), said.stdout + said.stderr
    assert words in said.stdout + said.stderr


@pytest.mark.parametrize("verb", ["", *cli.VERBS])
def test_help_needs_the_wheel_alone(done, verb):
    said = done[f"{verb} --help".strip()]
    assert said.code == (2 if verb == "lab" else 0), said.stderr
    assert "usage: ironburst" in said.stdout or verb == "lab"


@pytest.mark.parametrize("command", OF_A_CLUSTER)
def test_a_site_with_a_cluster_names_the_extra(done, done_with_kubernetes, command):
    said = done[command]
    assert (said.code, said.stdout) == (2, "")
    assert "pip install 'ironburst[kubernetes]'" in said.stderr and len(said.stderr.splitlines()) == 1
    with_it = done_with_kubernetes[command]
    assert with_it.code == 3 and "pip install" not in with_it.stderr
    assert "kubeconfig" in with_it.stderr or "credentials" in with_it.stderr  # as far as it comes here
