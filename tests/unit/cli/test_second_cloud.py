"""Each verb finds a pool in the second cloud of a stack as it finds it in the first: with the two exchanged it prints
the same, but for the place in the file and the order of lines.
"""

import re
from dataclasses import replace

import pytest
import yaml

from ironburst import cli
from ironburst.adapters.slurm.accounting import COLUMNS
from ironburst.cli import reap, run, status, tick
from ironburst.config.load import KEY, read_value
from ironburst.config.valid import valid
from ironburst.doctor.checks import CheckResult
from ironburst.document import of_stack, variables
from ironburst.page import source
from ironburst.system import secrets
from ironburst.wiring import clouds, convergence, owned_nodes, site_doctor
from playbooks.plugins.lookup.secret import LookupModule
from tests import google_stack
from tests.fakes import T0, FakeClock, FakeCloud, FakeSlurm, connect_to
from tests.fakes.several import Second

BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
OF_A_STACK = {
    "validate": "STACK",
    "lock": "STACK",
    "simulate": "TRACE --config STACK --bound-seconds 0.1 --json",
    "fit": "TRACE --config STACK --json",
    "size": "TRACE --config STACK --owned-usd-per-gpu-hour 2 --nodes 1,2 --json",
    "monitoring": "STACK --to DIR/rules",
    "rights": "STACK --account 123456789012",
    "init": "--from STACK --name other --output DIR/Pulumi.other.yaml",
    "diff": "STACK stacks/Pulumi.prod.yaml --json",
    "hall": "plan STACK",
    "document": "STACK",
    "doctor": "STACK --cloud --json",
}
CODES = {"document": 2, "doctor": 3, "close": 5, "open": 5}
OF_A_SITE = {
    "status": "--json",
    "explain": "2",
    "report": "--jobs JOBS --by cloud --json",
    "serve": "--out DIR/page.html",
    "reap": "",
    "close": "p5",
    "open": "p5",
    "backup": "DIR/copies",
    "replay": "DIR/ticks --json",
    "logs": "p5-1",
}
ELSEWHERE = {
    "tests/components/test_declare_several.py": "plan",
    "tests/unit/wiring/test_clouds.py": "image run",
    "this module, below": "tick",
    "no cloud is asked and no pool is looked for": "catalog discover lab publish mirror converge node health "
    "fabric packages slurm shares job receive pause stop resume budget limit help completion",
}


WRITTEN = (".html", ".yml", "lock.yaml")
OF_THE_RUN = (
    r'"bound": {[^}]*}|"(bytes|mb_a_day|wall_s)": [\d.e-]+|[0-9a-f]{12}(?=/p5-)|(?<=yaml):\d+(?=: )|(?<=line )\d+(?=:)'
)
"""what was reached in its seconds, sizes, random ids and numbers of lines"""


def stack(first):
    """A file with the only pool in AWS, which is the first cloud or the second; the other one is Google's."""
    value = read_value(google_stack.STACK)
    aws, google = value["cloud"], google_stack.cloud()
    for key in ("groups", "pools", "price"):
        del google[key]
    google |= {"region": "europe-west4", "network": {"cidr": "10.91.0.0/16", "zones": ["europe-west4-a"]}}
    google["secrets"] = {value["scheduler"]["munge_key"]: google_stack.value()["scheduler"]["munge_key"]}
    aws |= {"data": {"imagenet": {"s3": "data-of-lab/imagenet"}}, "iam": {"permissions_boundary": BOUNDARY}}
    aws["pools"][0] |= {"data": ["imagenet"], "boot": "2m"}
    value["halls"][0]["nodes"][0]["bmc"]["password"] = "aws-secretsmanager:ironburst/lab/bmc"
    value["monitoring"] = value.get("monitoring", {}) | {"carbon": {}, "pue": 1.3}
    value["burst"] |= {"carbon_usd_per_tonne": 100}
    clouds = [aws, google] if first else [google, aws]
    value |= {"cloud": clouds[0], "other_clouds": clouds[1:]}
    return {"config": {"aws:region": "us-east-1", "gcp:project": "lab-project", KEY: value}}


@pytest.fixture
def ask(tmp_path, monkeypatch, capsys):
    """`ask(words)` -> what a verb answers with the pool in the first cloud, and with it in the second."""

    def asked(site):
        pools = ", ".join(pool.name for pool in site.config.pools) or "none"
        yield CheckResult("pools", pools, "warn", f"cloud.region is {site.config.cloud.region}", "look at cloud.pools")

    for name in ("aws", "google"):  # what each asks of its own cloud: tests/adapters/test_*_doctor.py
        monkeypatch.setitem(clouds.PROVIDERS, name, replace(clouds.PROVIDERS[name], doctor=asked))
    folders = {first: tmp_path / ("first" if first else "second") for first in (True, False)}
    for first, folder in folders.items():
        folder.mkdir()
        (folder / "Pulumi.lab.yaml").write_text(yaml.safe_dump(stack(first)))
    rows = [f"{n * 1200},{600 + 60 * (n % 40)},8" for n in range(400)]
    (tmp_path / "jobs.csv").write_text("\n".join(["submit_s,duration_s,num_gpus", *rows]) + "\n")
    ran = f"2|2|{T0:.0f}|{T0 + 150:.0f}|{T0 + 190:.0f}|40|billing=8,gres/gpu=8,node=1|alice|nlp|p5-1|COMPLETED"
    (tmp_path / "jobs.txt").write_text("\n".join(["|".join(COLUMNS), ran]) + "\n")

    def answer(words, first):
        folder = folders[first]
        named = {
            "JOBS": tmp_path / "jobs.txt",
            "STACK": folder / "Pulumi.lab.yaml",
            "DIR": folder,
            "TRACE": tmp_path / "jobs.csv",
        }
        for name, path in named.items():
            words = words.replace(name, str(path))
        before = set(folder.rglob("*"))
        code, (out, err) = cli.main(words.split()), capsys.readouterr()
        texts = [path for path in sorted({*folder.rglob("*")} - before) if path.name.endswith(WRITTEN)]
        said = "\n".join([out, err, *(path.read_text() for path in texts)]).replace(str(folder), "DIR")
        said = re.sub(OF_THE_RUN, "", re.sub(r"other_clouds(\[0\]|(?=:))", "cloud", said))
        return code, sorted(re.split(r"\n|(?<=[}\],]) ", said))

    both = lambda words: [answer(words, first) for first in (True, False)]  # noqa: E731
    both.folders, both.answer = folders, answer
    return both


def test_every_verb_is_asked_or_says_where():
    named = [*OF_A_STACK, *OF_A_SITE, *" ".join(ELSEWHERE.values()).split()]
    assert sorted(named) == sorted(cli.VERBS)


@pytest.mark.parametrize("verb", OF_A_STACK)
def test_of_a_stack(ask, verb):
    (code, first), (_, second) = ask(f"{verb} {OF_A_STACK[verb]}")
    assert code == CODES.get(verb, 0), "\n".join(first)
    assert first == second


@pytest.fixture
def live(ask, monkeypatch):
    """The same of a site: `live(words)` asks where one job runs at home, one is rented for, and one waits."""

    def at(first):
        clock, folder = FakeClock(), ask.folders[first]
        slurm = FakeSlurm(clock, burst={"burst-p5": ["p5-1", "p5-2", "p5-3"]})
        google, aws = Second(clock, slurm), FakeCloud(clock, slurm)
        aws.images = {"/ironburst/lab/p5/image": "ami-1"}
        connect_to(aws, monkeypatch)
        monkeypatch.setitem(clouds.PROVIDERS, "google", replace(clouds.PROVIDERS["google"], api=lambda _: google))
        for module in (tick, run, reap):
            monkeypatch.setattr(module, "SystemClock", lambda: clock)
        monkeypatch.setattr(status.schedulers, "Slurm", lambda prefix, jobs=0: slurm)
        monkeypatch.setattr("time.time", clock.now)
        monkeypatch.setattr(source.Source.__init__, "__defaults__", (clock.now,))  # it is bound before that
        document = folder / "lab.json"
        document.write_text(of_stack.document(folder / "Pulumi.lab.yaml").model_dump_json())
        monkeypatch.setenv("IRONBURST_DOCUMENT", str(document))
        monkeypatch.setenv("IRONBURST_LEDGER", str(folder / "ledger.sqlite"))
        for nodes, limit_s in ((2, 7200), (1, 600), (1, None)):
            slurm.submit(nodes=nodes, limit_s=limit_s, runs_s=limit_s or 60)
        for _ in range(40):
            assert ask.answer("tick", first)[0] == 0
            clock.at += 5
        assert slurm.state(2) == "RUNNING" and len(aws.alive()) == 1 and not google.alive()

    def asked(words):
        answers = []
        for first in (True, False):
            at(first)
            answers.append(ask.answer(words, first))
        return answers

    return asked


@pytest.mark.parametrize("verb", OF_A_SITE)
def test_of_a_site(live, verb):
    (code, first), (_, second) = live(f"{verb} {OF_A_SITE[verb]}")
    assert code == CODES.get(verb, 0), "\n".join(first)
    assert first == second
    print("\n".join(first))


def test_a_secret_is_asked_for_in_the_region_of_its_own_cloud(ask, monkeypatch):
    asked = []
    store = replace(
        secrets.STORES["aws-secretsmanager"], get=lambda *name_and_region: asked.append(name_and_region) or "s"
    )
    monkeypatch.setitem(secrets.STORES, store.scheme, store)
    for folder in ask.folders.values():
        path = folder / "Pulumi.lab.yaml"
        config, document = valid(path), of_stack.document(path)
        assert convergence.secrets_of(document)(document.scheduler.munge_key) == "s"
        site_doctor.accesses(config)
        owned_nodes.access(owned_nodes.declared(config)["head"].inputs)
        regions = variables.of_all(document.model_dump(mode="json"))["cluster_regions"]
        assert regions == {"aws": "us-east-1", "google": "europe-west4"}
        lookup = LookupModule()
        lookup.set_options(direct={})
        monkeypatch.setattr(lookup, "set_options", lambda **_: None)
        monkeypatch.setattr(lookup, "get_option", {"regions": regions}.get)
        assert lookup.run([document.scheduler.munge_key, "env:HOME"])[0] == "s"
    assert {region for _, region in asked} == {"us-east-1"} and len(asked) == 8
