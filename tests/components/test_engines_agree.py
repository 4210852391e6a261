"""The pulumi CLI, where it is on PATH, and lab/engine: the unmodified program on the lab's metal, and on the whole lab,
has the same plans, ends, words and states with both.
"""

import json
import re
import shutil
from contextlib import ExitStack

import pytest
import yaml

from lab.aws.testing import client
from lab.bmc import Bmc, Fault, write_fault
from lab.hosts.bmcs import machine_of
from tests.components.projects import ENGINE, ROOT, project
from tests.components.test_declare import cloud  # noqa: F401
from tests.contract.emulator import MemoryPower
from tests.lab_cloud import allow_spot

CLI = shutil.which("pulumi")
pytestmark = pytest.mark.skipif(not CLI, reason="the pulumi CLI isn't on PATH")
PASSWORD = "secret-of-the-test"
NODES = ("head", "dgx01", "dgx02")
DO = ("--yes", "--skip-preview", "--json")
SECRET = "4dabf18193072939515e22adb298388d"  # Pulumi's mark of special values
# What names a thing of this run alone, in any text
OF_A_RUN = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UUID"),
    (re.compile(r"(?<=[a-z0-9])-[0-9a-f]{7}(?![0-9a-f])"), "-RANDOM"),  # the plugin's own names
    (re.compile(r"\b([a-z]+)-[0-9a-f]{17}\b"), r"\1-ID"),
    (re.compile(r"\bA[0-9A-Z]{20}\b"), "IAM-ID"),
)
# Outputs that AWS makes up
MADE_UP = re.compile(
    r"createDate|uniqueId|privateDns|privateIp|publicIp|tunnel[12]\w*(Address|Cidr|Key)|customerGatewayConfiguration"
)
# What the CLI alone says: which plugins it took, and a last line; and what a program says if it still runs when a step
# has failed, with either engine
OF_THE_CLI = re.compile(
    r"(warning: )?using pulumi-resource-\w+ from \$PATH at .*|(error: )?\w+ failed|Resource monitor has .*"
)
OF_STATE = ("urn", "type", "custom", "parent", "protect", "external", "delete", "retainOnDelete", "deletedWith",
            "additionalSecretOutputs", "ignoreChanges", "initErrors", "customTimeouts", "aliases")  # fmt: skip


@pytest.fixture
def bmcs(tmp_path):
    """node -> its BMC's URL; `bmcs.fault(node, gpus=7)` makes it lie, `bmcs.fault(node)` ends that; `bmcs.on()`: each
    machine is.
    """
    file, powers = tmp_path / "faults.json", {name: MemoryPower() for name in NODES}

    class Urls(dict):
        @staticmethod
        def fault(name, **fault):
            write_fault(file, name, Fault(**fault))

        @staticmethod
        def on():
            for power in powers.values():
                power.on = True

    with ExitStack() as stack:
        running = {
            name: stack.enter_context(Bmc(machine_of(name), power, PASSWORD, port=0, faults=file))
            for name, power in powers.items()
        }
        yield Urls({name: bmc.url for name, bmc in running.items()})


class Engine:
    """One of the two on a project of its own; `told` holds what each command came to."""

    def __init__(self, folder, command, bmcs, endpoint=None):
        folder.mkdir()
        self.folder, self.told = folder, []
        self.run = project(folder, "lab", command, TEST_BMC_PASSWORD=PASSWORD, TEST_MUNGE_KEY="a2V5")
        self.stack = yaml.safe_load((ROOT / "stacks" / "Pulumi.lab.yaml").read_text())
        settings, self.cluster = self.stack["config"], self.stack["config"]["ironburst:cluster"]
        (hall,) = self.cluster["halls"]
        hall["bmc_cidr"] = "127.0.0.0/24"
        for nodes, names in zip(hall["nodes"], (["head"], ["dgx01", "dgx02"]), strict=True):
            nodes["bmc"] |= {"addresses": [bmcs[name] for name in names], "password": "env:TEST_BMC_PASSWORD"}
        if endpoint:
            settings["aws:endpoints"] = [dict.fromkeys(settings["aws:endpoints"][0], endpoint)]
        else:
            del self.cluster["cloud"], self.cluster["budget"], self.cluster["burst"]
            self.cluster["scheduler"]["munge_key"] = "env:TEST_MUNGE_KEY"
            for key in [key for key in settings if key.startswith("aws:")]:
                del settings[key]
        self.declare(lambda cluster: None)
        assert self.run("stack", "init").returncode == 0

    def declare(self, change):
        change(self.cluster)
        (self.folder / "project/stacks/Pulumi.lab.yaml").write_text(yaml.safe_dump(self.stack))

    def __call__(self, verb, *flags):
        """Runs it, and notes how it ended, what it planned or did, what it said, and the state after it."""
        done = self.run(verb, *flags)
        told = {"did": f"{verb} {' '.join(flags)}", "code": done.returncode}
        if verb == "preview" or "--preview-only" in flags:  # one object; else an event a line
            plan = json.loads(done.stdout)
            told["counts"] = {op: n for op, n in plan["changeSummary"].items() if n}
            told["steps"] = sorted(map(_step, plan["steps"]), key=lambda step: step["urn"])
            said = plan.get("diagnostics") or []
        else:
            events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            counts = [each["summaryEvent"]["resourceChanges"] for each in events if "summaryEvent" in each]
            told["counts"] = {op: n for op, n in counts[-1].items() if n} if counts else None
            if done.returncode and counts:  # how far the rest had come is another number in each run
                told["counts"].pop("same", None)
            said = [each["diagnosticEvent"] for each in events if "diagnosticEvent" in each]
        messages = {_plain(each["message"]) for each in said if each["severity"] in ("error", "warning")}
        told["said"] = sorted(message for message in messages if not OF_THE_CLI.fullmatch(message))
        self.told.append(told | ({} if verb == "preview" or "--preview-only" in flags else self.state()))
        return done

    def state(self):
        export = json.loads(self.run("stack", "export", "--show-secrets").stdout)["deployment"]
        resources = export.get("resources") or []
        return {"state": sorted(map(_resource, resources), key=lambda each: each["urn"])}


def _plain(message):
    """A message without colours and what only this run has."""
    return re.sub(r"<\{%.*?%\}>|\x1b\[[0-9;]*m", "", message).strip()


def _step(step):
    return {
        "op": step["op"],
        "urn": step["urn"],
        "diff": sorted(step.get("diffReasons") or []),
        "replace": sorted(step.get("replaceReasons") or []),
        "detailed": step.get("detailedDiff") or {},
        "new": _resource(step["newState"]) if step.get("newState") else None,
        "old": _resource(step["oldState"]) if step.get("oldState") else None,
    }


def _resource(given):
    kept = {key: given[key] for key in OF_STATE if given.get(key)}
    kept |= {"inputs": _value(given.get("inputs") or {}), "outputs": _value(given.get("outputs") or {})}
    kept["id"] = given.get("id", "")
    kept["provider"] = given.get("provider", "")
    kept["dependencies"] = sorted(given.get("dependencies") or [])
    kept["of_inputs"] = {key: sorted(its) for key, its in (given.get("propertyDependencies") or {}).items() if its}
    return kept


def _value(given):
    """Without Pulumi's `__internal`, and a secret as what it holds."""
    if isinstance(given, dict):
        if given.get(SECRET) and "plaintext" in given:
            return {"secret": _value(json.loads(given["plaintext"]))}
        return {key: _value(each) for key, each in given.items() if key != "__internal"}
    return [_value(each) for each in given] if isinstance(given, list) else given


def common(told, names):
    """What one engine told, in words that both have: `names` are replaced in their order, then what is random."""
    text = json.dumps(told, sort_keys=True)
    for old, new in (names | _of_aws(told)).items():
        text = text.replace(json.dumps(old)[1:-1], new)
    for pattern, new in OF_A_RUN:
        text = pattern.sub(new, text)
    return json.loads(text)


def _of_aws(told):
    """What AWS made up -> whose it is, so that each still has to stand in its place; the longest first."""
    known = {}
    for each in (each for event in told for each in event.get("state", ())):
        name = each["urn"].rpartition("::")[2]
        if re.search(r"-[0-9a-f]{17}$", each["id"]):
            known[each["id"]] = f"ID of {name}"
        for key, value in each["outputs"].items():
            if value and MADE_UP.fullmatch(key):
                known[value["secret"] if isinstance(value, dict) else value] = f"{key} of {name}"
    return dict(sorted(known.items(), key=lambda pair: -len(pair[0])))


def differences(one, other, at=""):
    """Where two values differ, in lines."""
    if type(one) is not type(other):
        return [f"{at}: {one!r} and {other!r}"]
    if isinstance(one, dict):
        keys = sorted({*one, *other})
        return [line for key in keys for line in differences(one.get(key), other.get(key), f"{at}.{key}")]
    if isinstance(one, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [line for n, (a, b) in pairs for line in differences(a, b, f"{at}[{_called(a, n)}]")]
    return [] if one == other else [f"{at}: {one!r} and {other!r}"]


def _called(given, n):
    known = given.get("did") or given.get("urn", "").rpartition("::")[2] if isinstance(given, dict) else ""
    return known or n


@pytest.fixture
def compared(tmp_path, bmcs):
    """`compared(story, endpoint)` plays a story with both engines: what the CLI's commands came to, and where the two
    differ.
    """

    def play(story, endpoint=None):
        told = []
        for name, command in (("cli", [CLI]), ("lab", ENGINE)):
            bmcs.on()
            engine = Engine(tmp_path / name, command, bmcs, endpoint)
            story(engine)
            told.append(common(engine.told, {str(engine.folder): "FOLDER"}))
        return [each["code"] for each in told[0]], differences(*told)

    return play


def owned(cluster):
    return cluster["halls"][0]["nodes"][1]


def test_the_labs_metal(compared, bmcs):
    def story(engine):
        engine("preview", "--json")
        bmcs.fault("dgx02", hardware={"gpus": 7})
        engine("up", *DO)  # refused, the other is accepted
        bmcs.fault("dgx02")
        engine("up", *DO)
        bmcs.fault("dgx01", hardware={"gpus": 7})  # one fell off the bus
        engine("refresh", "--preview-only", "--json", "--expect-no-changes")
        engine("refresh", *DO)
        engine("preview", "--json")
        bmcs.fault("dgx01", answer="reset")
        engine("refresh", *DO)  # what was known is kept
        bmcs.fault("dgx01")
        engine("destroy", *DO)

    codes, wrong = compared(story)
    assert not wrong, "\n".join(wrong)
    assert [code == 0 for code in codes] == [True, False, True, False, True, True, True, True]


@pytest.mark.slow
def test_the_whole_lab(compared, cloud):  # noqa: F811
    allow_spot(client(cloud.url, "iam"))

    def story(engine):
        engine("preview", "--json")
        engine("up", *DO)
        engine("preview", "--json", "--expect-no-changes")
        engine("refresh", *DO)
        engine.declare(lambda cluster: cluster["cloud"]["pools"][0].update(max_nodes=2))
        engine.declare(lambda cluster: owned(cluster).update(power_off_on_delete=True))
        engine("preview", "--json")
        engine("up", *DO)
        engine.declare(lambda cluster: owned(cluster).update(serials=["LAB-DGX01", "LAB-DGX09"]))
        engine("up", *DO)  # refused
        engine("destroy", *DO)

    codes, wrong = compared(story, cloud.url)
    assert not wrong, "\n".join(wrong)
    assert [code == 0 for code in codes] == [True, True, True, True, True, True, False, True]
