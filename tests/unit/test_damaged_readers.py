"""What the gate doesn't read: each reader's sample cut after each line, each line doubled, each number N/A, and as four
locales write it: never a traceback but the reader's own refusal, and never something ill (or dear) that a damage
makes sound (or cheap). Those of the gate are in tests/unit/health/test_damage.py.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from ironburst.adapters.slurm import accounting as slurm_accounting
from ironburst.adapters.slurm import answers as slurm_json
from ironburst.baremetal import documents, inventory
from ironburst.baremetal.verify import Declaration, examine
from ironburst.catalog.hardware import gpus
from ironburst.cost import bill
from ironburst.hall import seen
from ironburst.hall.model import Violation
from ironburst.ports import WrongShape
from ironburst.replay import traces
from ironburst.replay.formats import TraceError
from tests.playbooks.programs import load
from tests.unit.baremetal import redfish
from tests.unit.hall import test_seen as halls
from tests.unit.hall.halls import NODE, SWITCH, cable, sound
from tests.unit.health.damage import LOCALES, spoiled
from tests.unit.replay import test_foreign

TESTS = Path(__file__).parents[1]
SLURM = TESTS / "adapters/slurm_fixtures"
fabric = load("roles/infiniband_fabric/files/ironburst-fabric.py")


class Reader(NamedTuple):
    """`read` gives what it makes of a text; `refuses`: its own way to say no; `worse`: whether what came of a damaged
    text may pass where what came of the sample may not.
    """

    text: str
    read: Callable[[str], object]
    refuses: tuple[type[Exception], ...]
    worse: Callable[[object, object], object]


def told_no_more(was, now):
    return was and not now


# --- networks: a cable that is elsewhere stays so
ETHERNET = replace(
    sound(),
    devices=(replace(NODE, name="dgx01"), replace(SWITCH, name="eth-leaf1", kind="ethernet")),
    cables=(cable("dgx01/eth0", "eth-leaf1/7", speed="100GbE"), cable("dgx01/eth1", "eth-leaf1/9", speed="100GbE")),
)


def lldp(text) -> list[Violation]:
    return seen.compared(ETHERNET, seen.lldp("dgx01", text), "ethernet", ["dgx01"])


def ibnetdiscover(text) -> list[Violation]:
    return seen.compared(halls.RAILS, seen.ibnetdiscover(text, halls.RAILS), "infiniband")


# --- the fabric's program: a link that is down, counters that rose, two masters
def captured(name):
    return (TESTS / "playbooks/captured" / name).read_text()


SETTINGS = {
    "limits": {"LinkDownedCounter": 0, "SymbolErrorCounter": 10},
    "min_width": 4,
    "min_lane_gbps": 0,
    "subnet_managers": 1,
}
LINKS = fabric.parse_links(captured("iblinkinfo.txt"))
MANAGERS = fabric.parse_managers(captured("saquery-smir.txt"))
BEFORE = {"links": {key: link for key, link in LINKS.items() if link["width"]}, "errors": {}}
COUNTERS = """Errors for "LEAF1"
   GUID 0x200000 port ALL: [SymbolErrorCounter == 4] [LinkDownedCounter == 3]
   GUID 0x200000 port 2: [SymbolErrorCounter == 4] [LinkDownedCounter == 3]

## Summary: 6 nodes checked, 1 bad nodes found
##          15 ports checked, 1 ports have errors beyond threshold
## Thresholds:
## Suppressed:
"""


def judged(links=LINKS, errors=None, managers=MANAGERS):
    return fabric.judge(links, errors or {}, managers, SETTINGS, BEFORE)[0]


# --- Slurm: jobs and nodes hold no fewer GPUs than before, unless they are said to be unreadable, or are not there
def slurm(read):
    def answer(text):
        try:
            answered = json.loads(text)
        except ValueError as error:  # as adapters/slurm/scheduler.py and ironburst init say it
            raise WrongShape(str(error)) from None
        found = read(answered)
        held = {
            getattr(each, "id", None) or each.name: each.each.gpus * each.nodes
            if hasattr(each, "each")
            else each.total.gpus
            for each in found.items
        }
        return held, len(found.unreadable), text.count('"job_id"') + text.count('"architecture"')

    return answer


def fewer_gpus(was, now):
    (held, _, count), (holds, unreadable, there) = was, now
    lost = [name for name, number in held.items() if number and holds.get(name, number) < number]
    return lost and not unreadable and count == there


SACCT = "JobID|JobIDRaw|Submit|Start|End|ElapsedRaw|AllocTRES|User|Account|NodeList|State\n" + "\n".join(
    (
        "1|1|1795561837|1795561837|1795562037|200|billing=1,cpu=1,gres/gpu=8,mem=50M,node=1|alice|physics|dgx01|COMPLETED",
        "2|2|1795561837|1795561897|1795561902|5|billing=1,cpu=1,gres/gpu:h100=8,gres/gpu=8|alice|physics|p5-1|COMPLETED",
        "8_3|12|1795561837|1795561897|1795561997|100|billing=1,gres/gpu=1|bob|nlp|gpu[01-02]|FAILED",
    )
)


def runs(text):
    return Counter(
        (run.gpus, run.start_s, run.elapsed_s) for run in slurm_accounting.runs(text.splitlines(), Path("sacct"))
    )


def trace(tmp_path):
    def read(text):
        path = tmp_path / "trace"
        path.write_text(text)
        got = traces.read(path)
        return Counter(zip(got.submit_s, got.duration_s, got.gpus, strict=True))

    return read


def other_work(was, now):
    """Work that is in no line: of fewer GPUs, of another length, or counted twice."""
    return now - was


def money(text):
    return Counter((line.kind, line.from_s, line.units) for line in bill.read(text.splitlines(), "bill.csv"))


FOCUS = (TESTS / "unit/cost/samples/focus-1.0.csv").read_text()
READERS: dict[str, Reader] = {
    "lldp": Reader(halls.sample("lldp-dgx01.json"), lldp, (seen.NotUnderstood,), told_no_more),
    "ibnetdiscover": Reader(halls.sample("rails-crossed.txt"), ibnetdiscover, (seen.NotUnderstood,), told_no_more),
    "iblinkinfo": Reader(
        captured("iblinkinfo-link-down.txt"),
        lambda text: judged(fabric.parse_links(text)),
        (fabric.FabricError,),
        told_no_more,
    ),
    "ibqueryerrors": Reader(
        COUNTERS, lambda text: judged(errors=fabric.parse_errors(text)), (fabric.FabricError,), told_no_more
    ),
    "saquery": Reader(
        captured("saquery-smir.txt").replace("SMState.................2", "SMState.................3"),
        lambda text: judged(managers=fabric.parse_managers(text)),
        (fabric.FabricError,),
        told_no_more,
    ),
    "sacct": Reader(SACCT, runs, (TraceError,), other_work),
    "bill": Reader(FOCUS, money, (bill.BillError,), lambda was, now: now.keys() - was.keys()),
    **{
        f"{kind} {release}": Reader(
            (SLURM / release / f"{kind}.json").read_text(),
            slurm(slurm_json.read_nodes if kind == "nodes" else slurm_json.read_jobs),
            (WrongShape,),
            fewer_gpus,
        )
        for release in ("23.02", "23.11", "24.11", "25.05", "26.05")
        for kind in ("nodes", "squeue", "unusual", *(["allocated"] if release == "24.11" else []))
    },
}


def damage(reader):
    """(texts that were tried, what went wrong)."""
    was, tried, wrong = reader.read(reader.text), 0, []
    for what, text in [*spoiled(reader.text), *((locale, change(reader.text)) for locale, change in LOCALES.items())]:
        tried += 1
        try:
            now = reader.read(text)
        except reader.refuses as refusal:
            assert str(refusal).strip() and "\n" not in str(refusal).strip()
            continue
        except Exception as error:
            wrong.append((what, repr(error)))
            continue
        if reader.worse(was, now):
            wrong.append((what, "passes"))
    return tried, wrong


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_output_is_refused_or_as_ill_as_before(name):
    tried, wrong = damage(READERS[name])
    assert wrong == [] and tried > 15


TRACES = {
    # without its slice, whose name is damaged into that of a GPU
    "sacct -P": "".join(line for line in test_foreign.SACCT.splitlines(keepends=True) if not line.startswith("8_1")),
    "helios": test_foreign.HELIOS,
    "swf": test_foreign.SWF,
    "philly": json.dumps(test_foreign.PHILLY, indent=1),
    "sacct --json": json.dumps({"jobs": [test_foreign.slurm_job()]}, indent=1),
}


@pytest.mark.parametrize("name", TRACES)
def test_a_damaged_trace_has_no_work_that_nobody_did(name, tmp_path):
    tried, wrong = damage(Reader(TRACES[name], trace(tmp_path), (TraceError,), other_work))
    assert wrong == [] and tried > 15


@cache
def ill_tree():
    docs = redfish.served(redfish.machine("lab"))
    path = next(path for path, each in sorted(docs.items()) if each.get("ProcessorType") == "GPU")
    return docs | {path: docs[path] | {"Status": {"State": "Enabled", "Health": "Critical"}}}, path


def mismatches(docs):
    hardware = inventory.hardware(documents.read(docs.get))
    return examine(Declaration("n1", gpu_model="H100 SXM5 80GB", gpu_count=8), hardware, gpus().values()).mismatches


def test_a_damaged_tree_of_a_bmc_makes_no_gpu_well():
    docs, sick = ill_tree()
    assert mismatches(docs)
    kinds = {each.get("@odata.type"): path for path, each in sorted(docs.items())}
    tried, wrong = 0, []
    for path in sorted({*kinds.values(), sick}):
        for what, text in list(spoiled(json.dumps(docs[path], indent=1)))[:: 1 if path == sick else 5]:
            try:
                document = json.loads(text)
            except ValueError:
                continue  # no JSON: the client says so before anybody reads it
            tried += 1
            try:
                if not mismatches(docs | {path: document}):
                    wrong.append((path, what))
            except documents.Incomplete:
                continue
    assert wrong == [] and tried > 50
