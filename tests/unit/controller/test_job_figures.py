"""What a job made of its GPUs, asked of a real Prometheus, against the arithmetic of the load (tests/dcgm.py)."""

import random
import re
from pathlib import Path

import pytest

from ironburst.adapters.prometheus import Prometheus
from ironburst.controller import job_figures
from ironburst.controller.job_figures import Figures, GpuFigures, measure, packed, unpacked
from ironburst.ports.measured import MeasuredError, QueryRefused
from tests import dcgm, prometheus
from tests.dcgm import Gpu, Load

T0 = 1_795_000_000
HOUR = 3600
WITHIN = 0.02

# two nodes, four ranks each; rank 3 of the second never works, and each works less than the one before
GANG = 1000
START, END = T0 + 1000, T0 + 1000 + 2 * HOUR
RANKS = [
    Gpu(
        node,
        index,
        [
            Load(
                START,
                START + HOUR,
                (GANG,),
                0.96 - rank / 10,
                0.7 - rank / 20,
                0.4,
                20_000 + rank,
                650 - 50 * rank,
                3e10,
            ),
            Load(START + HOUR, END, (GANG,), 0.4, 0.2, 0.1, 60_000, 300.0, 1e10),
        ]
        if rank < 7
        else [Load(START, END, (GANG,), 0.0, 0.0, 0.0, 500, 80.0)],
        phase_s=7 + 11 * (node == "gpu-002"),
        reset_s=START + 4000 if rank == 2 else float("inf"),  # its counter begins again, as after a reset of the GPU
    )
    for rank, (node, index) in enumerate((node, index) for node in ("gpu-001", "gpu-002") for index in range(4))
]
# two runs under one number, on other GPUs and with another load; then somebody else's job at once
REQUEUED, NEXT = 1001, 1002
FIRST, SECOND = (T0 + 500, T0 + 500 + 1800), (T0 + 500 + 1800 + 131, T0 + 500 + 1800 + 131 + HOUR)
AGAIN = [
    Gpu(
        "gpu-003",
        0,
        [Load(*FIRST, (REQUEUED,), 0.5, 0.3, 0.2, 1000, 400.0), Load(SECOND[1] + 1, SECOND[1] + HOUR, (NEXT,), 1.0)],
    ),
    Gpu("gpu-003", 1, [Load(*SECOND, (REQUEUED,), 0.9, 0.8, 0.6, 70_000, 680.0)], phase_s=0),
]
# one GPU of its own, and one that a foreign prolog also gave another job's number; one without any number
MIXED, OTHER = 1003, 1004
SHARED = [
    Gpu("gpu-004", 0, [Load(START, END, (MIXED,), 0.8, 0.5, 0.3, 9000, 500.0)]),
    Gpu("gpu-004", 1, [Load(START, END, (MIXED, OTHER), 0.2, 0.1, 0.1, 4000, 200.0)]),
    Gpu("gpu-004", 2, [Load(START, END, (), 0.9, 0.6, 0.3, 4000, 600.0)]),
]
# another cluster in the same Prometheus, whose Slurm counts its jobs, too; its hosts call themselves by whole names
ELSEWHERE = [Gpu("gpu-001.other.example.org", 0, [Load(START, END, (4711,), 0.3, 0.2, 0.1, 800, 250.0)])]
ELSEWHERE += [Gpu("other-1", 0, [Load(START, END, (GANG,), 1.0, 1.0, 1.0, 70_000, 700.0)])]
# a rented node that ended at once; a job too short to say much
LOST, SHORT = 1005, 1006
GONE_S = END - 900
ENDED = [
    Gpu("p5-1", 0, [Load(START, END, (LOST,), 0.7, 0.5, 0.3, 9000, 450.0)], seen_to_s=GONE_S, phase_s=3),
    Gpu("p5-2", 0, [Load(START, END, (LOST,), 0.9, 0.5, 0.3, 9000, 550.0)], phase_s=5),
    Gpu("gpu-005", 0, [Load(START, START + 120, (SHORT,), 0.9, 0.5, 0.3, 9000, 550.0)], phase_s=9),
]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prometheus")
    samples = dcgm.openmetrics([*RANKS, *AGAIN, *SHARED, *ELSEWHERE, *ENDED], T0, T0 + 4 * HOUR)
    with prometheus.serving(folder, samples) as url:
        yield Prometheus(url)


def nodes(gpus):
    return sorted({gpu.node for gpu in gpus})


def near(value):
    return pytest.approx(value, rel=WITHIN)


def kwh(gpus, from_s, to_s):
    return sum(gpu.joules(from_s, to_s) for gpu in gpus) / 3.6e6


def mean(gpus, name, from_s, to_s):
    seconds = range(int(from_s), int(to_s), 10)
    return sum(getattr(gpu.at(second), name) for gpu in gpus for second in seconds) / len(gpus) / len(seconds)


def test_a_gang(asked):
    found = measure(asked, GANG, nodes(RANKS), START, END)
    assert (found.gpus, found.shared, found.unused) == (8, 0, 1)
    for name in ("busy", "sm", "tensor"):
        assert getattr(found, name) == near(mean(RANKS, name, START, END)), name
    assert found.kwh == near(kwh(RANKS, START, END))
    assert found.watts == near(8 * mean(RANKS, "watts", START, END))
    assert found.nvlink_bytes == near(2 * mean(RANKS, "nvlink", START, END))
    assert (found.memory_mib, found.memory_total_mib) == (60_000, dcgm.TOTAL_MIB)
    assert found.idle == near(1 / 8)
    assert found.samples == pytest.approx(240, abs=2) and found.to_s == pytest.approx(END, abs=dcgm.EVERY_S)


def test_its_ranks_side_by_side(asked):
    each = measure(asked, GANG, nodes(RANKS), START, END).each
    assert [(gpu.node, gpu.gpu) for gpu in each] == [(gpu.node, str(gpu.index)) for gpu in RANKS]
    for found, gpu in zip(each, RANKS, strict=True):
        assert found.busy == near(mean([gpu], "busy", START, END)), gpu
        assert found.kwh == near(kwh([gpu], START, END)), gpu  # that of the reset counter, too
        assert found.unused == (gpu is RANKS[-1])


@pytest.mark.parametrize(("span", "gpu"), [(FIRST, AGAIN[0]), (SECOND, AGAIN[1])])
def test_each_run_of_a_requeued_job_has_its_own(asked, span, gpu):
    found = measure(asked, REQUEUED, ["gpu-003"], *span)
    assert [(each.node, each.gpu) for each in found.each] == [(gpu.node, str(gpu.index))]
    assert found.busy == near(mean([gpu], "busy", *span)) and found.kwh == near(kwh([gpu], *span))
    assert found.unused == 0


def test_an_end_that_is_told_late_adds_nothing_of_the_next_job(asked):
    """A controller that was away sees the end when it is back; the series say when it was."""
    found = measure(asked, REQUEUED, ["gpu-003"], SECOND[0], SECOND[1] + 1800)
    assert found.kwh == near(kwh([AGAIN[1]], *SECOND)) and found.busy == near(0.9)


def test_a_gpu_with_two_jobs_is_nobodys(asked):
    found = measure(asked, MIXED, ["gpu-004"], START, END)
    assert (found.gpus, found.shared) == (1, 1)
    assert found.kwh == near(kwh(SHARED[:1], START, END)) and found.busy == near(0.8)
    alone = measure(asked, OTHER, ["gpu-004"], START, END)
    assert (alone.gpus, alone.shared, alone.kwh, alone.busy, alone.each) == (0, 1, None, None, ())


def test_a_node_that_ended_at_once_counts_up_to_its_last_sample(asked):
    found = measure(asked, LOST, ["p5-1", "p5-2"], START, END)
    lost, lasting = found.each
    assert lost.kwh == near(kwh(ENDED[:1], START, GONE_S)) and lasting.kwh == near(kwh(ENDED[1:2], START, END))
    seen = GONE_S - START, END - START
    assert found.busy == near((0.7 * seen[0] + 0.9 * seen[1]) / sum(seen))
    whole = measure(asked, LOST, ["p5-1", "p5-2"], START, END + 600)  # Slurm gives a node up minutes later
    assert whole.to_s == pytest.approx(END, abs=dcgm.EVERY_S) and whole.kwh == near(found.kwh)


def test_without_the_profiling_fields_the_rest_is_told(asked):
    """Where a profiler holds the counters, or on a GPU that DCGM can't profile."""
    query = asked.query

    class Unprofiled:
        def query(self, expression, at_s):
            return query(expression.replace("DCGM_FI_PROF_", "DCGM_FI_NOT_THERE_"), at_s)

    found = measure(Unprofiled(), GANG, nodes(RANKS), START, END)
    assert found.busy == near(mean(RANKS, "busy", START, END)) and found.kwh == near(kwh(RANKS, START, END))
    assert (found.sm, found.tensor, found.dram, found.nvlink_bytes, found.idle) == (None,) * 5


def test_a_short_job_says_how_little_was_seen(asked):
    found = measure(asked, SHORT, ["gpu-005"], START, START + 120)
    assert 3 <= found.samples <= 4 and found.kwh == near(kwh(ENDED[2:], START, START + 120))


def test_nobodys_number_and_a_hosts_whole_name(asked):
    assert measure(asked, 4712, ["gpu-001"], START, END) is None
    assert measure(asked, 4711, ["gpu-0"], START, END) is None
    assert measure(asked, 4711, ["gpu-001"], START, END).busy == near(0.3)


def test_a_query_that_is_refused_is_told_from_a_prometheus_that_is_away(asked):
    with pytest.raises(QueryRefused, match="parse error"):
        asked.query("avg(", START)
    with pytest.raises(MeasuredError, match="no answer") as away:
        Prometheus("http://127.0.0.1:9", timeout_s=2).query("up", START)
    assert not isinstance(away.value, QueryRefused)


@pytest.mark.parametrize("gpus", [1, 8, 64, 512])
def test_a_run_takes_less_than_a_kilobyte(gpus):
    dice = random.Random(gpus)

    def shares():
        return [dice.random() for _ in range(4)]

    each = tuple(
        GpuFigures(
            f"gpu-{n // 8:03d}",
            str(n % 8),
            *shares(),
            dice.random() * 8e4,
            dice.random() * 700,
            dice.random() * 3e11,
            9.87,
            0.1,
        )
        for n in range(gpus)
    )
    whole = Figures(
        gpus, 0, 20_000, START + 0.4, END + 0.2, 81559.0, *shares(), 79_999.0, 700.0 * gpus, 3e11, 1234.5, 0.1, 0, each
    )
    data = packed(whole)
    assert len(data) <= 1000
    back = unpacked(data)
    assert (back.gpus, back.from_s, back.kwh) == (gpus, START, pytest.approx(1234.5, rel=1e-3))
    kept = {(gpu.node, gpu.gpu): gpu for gpu in back.each}
    assert len(kept) >= min(gpus, 16)
    busy = sorted(gpu.busy for gpu in each)[: len(kept)]
    assert sorted(gpu.busy for gpu in back.each) == pytest.approx(
        busy, rel=1e-3
    )  # who worked least is what one looks for


@pytest.mark.parametrize("data", [b"", b"{}", packed(Figures(1, 0, 1, 0.0, 1.0))[:-9]])
def test_what_can_not_be_read_is_one_error(data):
    with pytest.raises(ValueError, match="can't be read"):
        unpacked(data)


def test_what_is_asked_for_is_what_the_load_has():
    """Or a series that the load lacks would be a figure that is never compared."""
    asked_for = set(re.findall(r"DCGM_(?:FI|EXP)_[A-Z0-9_]+[A-Z0-9]", Path(job_figures.__file__).read_text()))
    assert asked_for == set(next(RANKS[0].samples(T0, T0 + 60))[0])
