"""Which GPUs do nothing, asked of a real Prometheus with the exporters' series: and what is no evidence."""

import re
from dataclasses import replace

import pytest

from ironburst.adapters.prometheus import Prometheus
from ironburst.controller import idle_evidence
from ironburst.controller.idle_evidence import gather
from tests import dcgm, prometheus
from tests.dcgm import Gpu, Load
from tests.unit.controller.test_idle_gpus import AFTER, END, NEAR, RULE, TEAM
from tests.unit.controller.test_job_report import RUN

T0 = 1_795_000_000
NOW = T0 + 6 * 3600
BEGAN = NOW - 5 * 3600
WATTS = RULE.watts


def at(number, *parts, **more):
    """Loads of one GPU: (seconds before NOW from which on, busy, watts)."""
    starts = [NOW - before for before, _, _ in parts] + [NOW]
    loads = zip(parts, starts, starts[1:], strict=False)
    return [
        Load(begin, end, (number,), busy, watts=watts, memory_mib=900) for (_, busy, watts), begin, end in loads
    ] + list(more.get("loads", ()))


IDLE = (5 * 3600, 0.0, 90.0)
JOBS = {
    "idle": [Gpu("n01", index, at(1, IDLE)) for index in range(2)],
    "one works": [Gpu("n02", 0, at(2, IDLE)), Gpu("n02", 1, at(2, (5 * 3600, 0.7, 500.0)))],
    "since 90 minutes": [Gpu("n03", 0, at(3, (5 * 3600, 0.9, 600.0), (5400, 0.0, 90.0)))],
    "a short burst": [Gpu("n04", 0, at(4, IDLE, (9000, 0.8, 500.0), (8940, 0.0, 90.0)))],
    "old samples": [Gpu("n05", 0, at(5, IDLE), seen_to_s=NOW - 400)],
    "a gap": [Gpu("n06", 0, at(6, IDLE))],
    "half is seen": [Gpu("n07", 0, at(7, IDLE))],
    "shared": [Gpu("n08", 0, [replace(load, jobs=(8, 99)) for load in at(8, IDLE)])],
    "young": [Gpu("n09", 0, at(9, (3700, 0.0, 90.0)))],
    "engines": [Gpu("n10", 0, at(10, IDLE))],
    "power": [Gpu("n11", 0, at(11, IDLE, (900, 0.0, 180.0)))],
    "CPUs": [Gpu("n12", 0, at(12, IDLE))],
    "CPUs, once": [Gpu("n13", 0, at(13, IDLE))],
    "CPUs, unknown": [Gpu("n14", 0, at(14, IDLE))],
    "CPUs, a gap": [Gpu("n15", 0, at(15, IDLE))],
    "two nodes": [Gpu("n16", 0, at(16, IDLE)), Gpu("n17.example.org", 0, at(16, IDLE))],
    "no longer": [Gpu("n18", 0, at(18, (5 * 3600, 0.0, 90.0), (60, 0.9, 500.0)))],
}
NUMBERS = {name: n for n, name in enumerate(JOBS, start=1)} | {"two nodes": 16, "no longer": 18}
GPUS_ASKED = {"half is seen": 2}


def run(name):
    nodes = sorted({gpu.node.split(".")[0] for gpu in JOBS[name]})
    began = NOW - 3700 if name == "young" else BEGAN
    gpus = GPUS_ASKED.get(name, len(JOBS[name]))
    number = NUMBERS[name]
    return replace(RUN, job=number, number=number, start_s=began, nodes=",".join(nodes), gpus=gpus, end_s=None)


def cpus():
    """Busy for part of the time: seconds of idle of two CPUs a node, each minute."""
    yield "# TYPE node_cpu_seconds counter"
    for n in range(1, 19):
        node, idle = f"n{n:02d}", 0.0
        for at_s in range(T0, NOW + 60, 60):
            busy = 0.01
            if node == "n12":
                busy = 0.5
            if node == "n13" and NOW - 2400 <= at_s < NOW - 1800:
                busy = 0.9
            idle += 60 * (1 - busy)
            if node == "n14" or (node == "n15" and NOW - 6000 <= at_s < NOW - 4000):
                continue
            for cpu in (0, 1):
                yield f'node_cpu_seconds_total{{node="{node}",cpu="{cpu}",mode="idle"}} {idle:.2f} {at_s}'


def changed(text):
    """A gap of ten minutes for n06; engines of n10 that work between two looks at its utilisation."""
    for line in text.splitlines():
        if 'Hostname="n06"' in line and NOW - 3000 <= int(line.rsplit(" ", 1)[1]) < NOW - 2400:
            continue
        if line.startswith("DCGM_FI_PROF_GR_ENGINE_ACTIVE") and 'Hostname="n10"' in line:
            line = re.sub(r"} \S+ ", "} 0.04 ", line)
        yield line


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    gpus = [gpu for its in JOBS.values() for gpu in its]
    text = dcgm.openmetrics(gpus, T0, NOW + 60).removesuffix("# EOF\n")
    folder = tmp_path_factory.mktemp("prometheus")
    with prometheus.serving(folder, "\n".join([*changed(text), *cpus(), "# EOF", ""])) as url:
        yield Prometheus(url)


@pytest.fixture(scope="module")
def found(asked):
    return gather(asked, [run(name) for name in JOBS], RULE, NOW)


ALL = {AFTER: 1, TEAM: 1, NEAR: 1, END: 1}


@pytest.mark.parametrize(
    ("name", "idle", "low"),
    [
        ("idle", dict.fromkeys(ALL, 2), {*ALL}),
        ("one works", ALL, set()),  # 1 of 2
        ("since 90 minutes", {AFTER: 1, TEAM: 0, NEAR: 0, END: 0}, {AFTER}),
        ("a short burst", {AFTER: 1, TEAM: 1, NEAR: 0, END: 0}, {AFTER, TEAM}),
        ("old samples", {}, set()),
        ("a gap", {}, set()),
        ("half is seen", {}, set()),
        ("shared", {}, set()),
        ("young", {}, set()),
        ("engines", dict.fromkeys(ALL, 0), {*ALL}),
        ("power", ALL, set()),
        ("CPUs", ALL, set()),
        ("CPUs, once", ALL, set()),
        ("CPUs, unknown", ALL, set()),
        ("CPUs, a gap", ALL, {AFTER}),
        ("two nodes", dict.fromkeys(ALL, 2), {*ALL}),
        ("no longer", dict.fromkeys(ALL, 0), set()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_known_of_a_job(found, name, idle, low):
    seen = found[NUMBERS[name]]
    assert (dict(seen.idle), set(seen.low)) == (idle, low)


def test_where_nothing_may_end_power_and_cpus_are_not_asked_for(asked):
    queries = []

    class Counting:
        def query(self, expression, at_s):
            queries.append(expression)
            return asked.query(expression, at_s)

    found = gather(Counting(), [run("idle")], RULE.model_copy(update={"end": None}), NOW)
    assert dict(found[1].idle) == {AFTER: 2, TEAM: 2} and not found[1].low
    assert not any("node_cpu" in query or "POWER" in query for query in queries) and len(queries) <= 8
    assert gather(Counting(), [], RULE, NOW) == {}


def test_a_prometheus_without_any_of_it_is_no_evidence(asked):
    class Empty:
        def query(self, expression, at_s):
            return []

    (seen,) = gather(Empty(), [run("idle")], RULE, NOW).values()
    assert not seen.idle and not seen.low and not seen.all_idle(AFTER)
    assert idle_evidence.spans(RULE) == (AFTER, TEAM, NEAR, END)
