"""The benchmark of the instance mix: what it reads, what it bounds, and what it says."""

import itertools
import json
import lzma
import random
import shutil

import highspy
import numpy as np
import pytest

from benchmarks import mix, mix_bound
from ironburst import catalog
from ironburst.burst.mix import NodeToRent, NodeType, Pod

TYPES = (
    NodeType("small", 1.0, 4000, 16384, 1, "T4", 10, 80, 2048),
    NodeType("wide", 5.5, 48000, 196608, 4, "T4", 6, 190, 16384),
    NodeType("plain", 1.2, 16000, 65536, 0, None, 5, 110, 4096),
)
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time\n"


def drawn(seed: int, count: int) -> list[Pod]:
    rng = random.Random(seed)
    sizes = [(rng.randint(1000, 16000), rng.randint(2000, 60000), rng.choice([0, 1, 1])) for _ in range(4)]
    pods = [Pod(f"p{at}", *rng.choice(sizes), rng.choice([None, None, "T4"])) for at in range(count)]
    return [pod for pod in pods if any(holds(kind, [pod]) for kind in TYPES)]


def holds(kind: NodeType, pods: list[Pod]) -> bool:
    asked = [
        sum(values) for values in zip(*((pod.gpus, pod.cpu_milli, pod.memory_mib, 1) for pod in pods), strict=True)
    ]
    models = {pod.gpu_model for pod in pods} - {None, kind.gpu_model}
    return not models and all(wants <= has for wants, has in zip(asked, kind.room, strict=True))


def optimum(pods: list[Pod]) -> float:
    """The price of the best mix: an integer programme over every pattern that there is."""
    kinds = {(pod.gpus, pod.cpu_milli, pod.memory_mib, pod.gpu_model): [] for pod in pods}
    for pod in pods:
        kinds[pod.gpus, pod.cpu_milli, pod.memory_mib, pod.gpu_model].append(pod)
    columns = []
    for kind in TYPES:
        for pattern in itertools.product(*(range(min(len(alike), kind.pods) + 1) for alike in kinds.values())):
            on = [alike[0] for alike, times in zip(kinds.values(), pattern, strict=True) for _ in range(times)]
            if on and len(on) <= kind.pods and holds(kind, on):
                columns.append((kind.usd_per_hour, pattern))
    solver, numbers = highspy.Highs(), np.arange(len(columns), dtype=np.int32)
    solver.silent()
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.addVars(len(columns), np.zeros(len(columns)), np.full(len(columns), 99.0))
    solver.changeColsCost(len(columns), numbers, np.array([usd for usd, _ in columns]))
    solver.changeColsIntegrality(len(columns), numbers, np.full(len(columns), highspy.HighsVarType.kInteger))
    for row, alike in enumerate(kinds.values()):
        covers = np.array([pattern[row] for _, pattern in columns], float)
        solver.addRow(len(alike), highspy.kHighsInf, len(columns), numbers, covers)
    solver.run()
    return solver.getInfo().objective_function_value


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_below_the_optimum_and_near_it(seed):
    pods = drawn(seed, 14)
    best = optimum(pods)
    bound = mix_bound.of(pods, TYPES, 20.0)
    assert 0.75 * best < bound.usd_per_hour <= best * (1 + 1e-9)
    assert bound.usd_per_hour <= bound.programme * (1 + 1e-6)
    figures, placeable = mix.of_ours(pods, TYPES)
    assert best <= figures["usd_per_hour"] + 1e-4 and len(placeable) == len(pods)


def test_any_shadow_prices_certify_a_bound_that_holds():
    """Nonsense as well as good ones: that is what makes it certified."""
    pods = drawn(2, 14)
    best = optimum(pods)
    shapes = sorted({(pod.gpus, pod.cpu_milli, pod.memory_mib, pod.gpu_model or "") for pod in pods})
    count = np.array([sum((*vars_of(pod),) == shape for pod in pods) for shape in shapes], float)
    models = [[shape[3] in ("", kind.gpu_model) for shape in shapes] for kind in TYPES]
    need = np.array([(*shape[:3], 1) for shape in shapes], float)
    room = np.array([kind.room for kind in TYPES], float)
    problem = mix_bound.Problem(need, room, np.array([kind.usd_per_hour for kind in TYPES]), np.array(models, float))
    for seed in range(12):
        value = np.random.default_rng(seed).uniform(0, 3, len(shapes))
        bound, kinds, patterns = mix_bound.certify(problem, value, count)
        assert 0 < bound <= best
        assert (patterns @ need <= room[kinds]).all()


def vars_of(pod: Pod) -> tuple[int, int, int, str]:
    return pod.gpus, pod.cpu_milli, pod.memory_mib, pod.gpu_model or ""


def test_shapes_that_are_too_many_make_the_bound_only_lower(monkeypatch):
    rng = random.Random(1)
    pods = [Pod(f"p{at}", rng.randint(100, 15000), rng.randint(100, 60000), rng.randint(0, 1)) for at in range(40)]
    exact = mix_bound.of(pods, TYPES, 10.0)
    monkeypatch.setattr(mix_bound, "MOST_SHAPES", 15)
    assert 0 < mix_bound.of(pods, TYPES, 10.0).usd_per_hour <= exact.programme
    assert mix_bound.of([], TYPES, 1.0).usd_per_hour == 0


def test_a_trace_becomes_as_many_pods_as_asked_and_other_files_stay(tmp_path):
    lines = [f"p{at},{1000 * at},2048,1,{460 if at else 1000},,7" for at in range(7)]
    trace, plain = tmp_path / "trace.csv.xz", tmp_path / "plain.csv"
    trace.write_bytes(lzma.compress((PODS + "\n".join(lines)).encode()))
    plain.write_text("cpu_milli,memory_mib,num_gpu\n1,2,0\n1,2,0\n")
    pods = mix.pods_of(trace, 17, 1)
    names = [pod.name.split(".")[0] for pod in pods]
    assert len(pods) == 17 == len({pod.name for pod in pods}) and {names.count(name) for name in set(names)} == {2, 3}
    assert pods == mix.pods_of(trace, 17, 1) and pods != mix.pods_of(trace, 17, 2)
    assert len(mix.pods_of(trace, None, 1)) == mix.COUNT and len(mix.pods_of(plain, None, 1)) == 2
    assert {pod.gpus for pod in pods} == {1}, "a part of a GPU counts as one"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cpu_milli,num_gpu\n1,1\n", "has no column memory_mib"),
        ("cpu_milli,memory_mib,num_gpu\n1,1\n", "line 2 has 2 values, but the first line names 3"),
        ("cpu_milli,memory_mib,num_gpu\n1,1,-1\n", "line 2: num_gpu is '-1'; it must be a whole number, 0 or more"),
        ("cpu_milli,memory_mib,num_gpu,gpu_spec\n1,1,1,A|B\n", "it must be one GPU model"),
        ("name,cpu_milli,memory_mib,num_gpu\na,1,1,1\na,1,1,1\n", "two pods called 'a'"),
        ("cpu_milli,memory_mib,num_gpu\n", "has no pods"),
        ("", "has no column cpu_milli"),
    ],
)
def test_a_wrong_file_of_pods_is_refused(text, says, tmp_path, capsys):
    (tmp_path / "pods.csv").write_text(text)
    with pytest.raises(SystemExit) as ended:
        mix.main(["--pods", str(tmp_path / "pods.csv")])
    assert ended.value.code == 2 and says in capsys.readouterr().err


def test_the_catalogues_types_have_what_the_kubelet_leaves(tmp_path):
    types = {kind.name: kind for kind in mix.catalogue_types()}
    assert len(catalog.instance_types("aws")) == 84 and len(types) == 80 and "p5e.48xlarge" not in types
    assert types["g5.xlarge"].room == (1, 3920, 16384 - 1229 - 255 - 1210 - 100, 110)
    assert [types[name].gpus for name in ("g6f.large", "g4ad.xlarge", "p5.4xlarge")] == [0, 0, 1]
    # as karpenter's AWS provider has it, for the number of pods that it reckons with
    known = mix.node_type("g5.xlarge", 1.0, 4, 16384, 1, "A10G", 58)
    assert known.room[1:] == (3920, 14162, 58)
    assert mix.node_type("g5.48xlarge", 1.0, 192, 786432, 8, "A10G").room[1] == 191450


def test_a_file_of_types_may_say_what_is_left_and_an_empty_price_is_no_offer(tmp_path):
    path = tmp_path / "types.csv"
    columns = (
        "instance_type,vcpu,mem_mib,accel_vendor,accel,accel_count,gpu_fraction,allocatable_cpu,allocatable_mem,pods"
    )
    rows = (
        "a,4,16384,NVIDIA,T4,1,1.0,3920m,14162Mi,58,0.5",
        "b,4,16384,NVIDIA,T4,1,1.0,,,,",
        "c,4,16384,NVIDIA,L4,0,0.25,,,,0.2",
        "d,4,16384,AWS,Inferentia,1,,,,,0.1",
    )
    path.write_text("\n".join((f"# as_of: 2026\n{columns},od_usd_h_us_east_1", *rows)))
    a, c, d = mix.types_of(path)
    assert a.room == (1, 3920, 14162, 58) and a.gpu_model == "T4" and (c.gpus, d.gpus, d.gpu_model) == (0, 0, None)
    path.write_text(f"{columns},od_usd_h_us_east_1\na,4,16384,NVIDIA,T4,1,1.0,,,,free\n")
    with pytest.raises(mix.WrongFile, match="line 2: od_usd_h_us_east_1 and gpu_fraction must be numbers"):
        mix.types_of(path)


def test_it_prints_the_three_and_their_ratios(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))  # no Go there
    path = tmp_path / "pods.csv"
    path.write_text("name,cpu_milli,memory_mib,num_gpu\n" + "".join(f"p{at},4000,8192,{at % 2}\n" for at in range(20)))
    assert mix.main(["--pods", str(path), "--bound-seconds", "5", "--without", "g5g", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {"usd_per_hour", "seconds"} <= said["ours"].keys() & said["optimum_or_bound"].keys()
    assert said["karpenter"] == {"skipped": "there is no Go here to build it"}
    assert 1 <= said["ratios"][mix.COST] < 1.3 and said["pods"] == 20 and said["types"] == 74


def test_without_the_trace_it_is_skipped_with_the_reason(capsys):
    assert mix.main(["--pods", "none.csv", "--json"]) == 0
    assert "there is no none.csv" in json.loads(capsys.readouterr().out)["skipped"]


def test_a_placement_that_cannot_be_is_refused():
    pods = [Pod("a", 1000, 1000, 1), Pod("b", 1000, 1000, 1, "T4")]
    mix.check(pods, [NodeToRent(TYPES[1], ("a", "b"))], [])
    for nodes, says in (
        ([NodeToRent(TYPES[1], ("a",))], "exactly once"),
        ([NodeToRent(TYPES[0], ("a", "b"))], "a small holds"),
        ([NodeToRent(NodeType("other", 1.0, 9000, 9000, 2, "A100", 9), ("a", "b"))], "pod b insists on T4"),
    ):
        with pytest.raises(ValueError, match=says):
            mix.check(pods, nodes, [])


@pytest.mark.slow  # minutes to build
@pytest.mark.skipif(not shutil.which("go"), reason="there is no Go")
def test_karpenters_scheduler_places_the_same_pods():
    pods = [*drawn(4, 40), Pod("none", 10**6, 1, 1), Pod("picky", 1000, 1000, 1, "T4")]
    said = mix.of_karpenter(pods, TYPES)
    if "skipped" in said:
        pytest.skip(said["skipped"])
    ours, _ = mix.of_ours(pods, TYPES)
    assert said["unplaced"] == ours["unplaced"] == 1 and said["seconds"] > 0
    assert ours["usd_per_hour"] <= said["usd_per_hour"]
