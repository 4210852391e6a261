"""The mix of instances: what it guarantees, held by a verifier of its own, and how near the cheapest it comes."""

import random
from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ironburst.burst import mix as module
from ironburst.burst.mix import Mix, NodeType, Pod, mix

SMALL = NodeType("small", 1.0, 4000, 16384, 1, "T4", 10, 80, 2048)
WIDE = NodeType("wide", 5.5, 48000, 196608, 4, "T4", 110, 190, 16384)
BIG = NodeType("big", 16.0, 96000, 786432, 8, "A100", 110, 310, 32768)
PLAIN = NodeType("plain", 1.2, 16000, 65536, 0, None, 30, 110, 4096)
TYPES = (SMALL, WIDE, BIG, PLAIN)


def wrong(made: Mix, pods, types) -> list[str]:
    """Whatever the mix does that it mustn't; counted afresh, from the pods and types as they were given."""
    named, found = {pod.name: pod for pod in pods}, []
    places = Counter(name for node in made.nodes for name in node.pods)
    found += [f"{name} is on {times} nodes" for name, times in places.items() if times != 1]
    found += [f"{name} is nobody's" for name in places.keys() - named.keys()]
    found += [f"{name} is placed and unplaced" for name in places.keys() & made.unplaced.keys()]
    found += [f"{name} is forgotten" for name in named.keys() - places.keys() - made.unplaced.keys()]
    for node in made.nodes:
        on, kind = [named[name] for name in node.pods], node.type
        assert kind in types and on
        used_cpu, used_memory = sum(pod.cpu_milli for pod in on), sum(pod.memory_mib for pod in on)
        if sum(pod.gpus for pod in on) > kind.gpus or len(on) > kind.pods:
            found.append(f"{kind.name} has too many GPUs or pods in use")
        if used_cpu + kind.reserved_cpu_milli > kind.cpu_milli and used_cpu:
            found.append(f"{kind.name} has too much CPU in use")
        if used_memory + kind.reserved_memory_mib > kind.memory_mib and used_memory:
            found.append(f"{kind.name} has too much memory in use")
        found += [f"{pod.name} has another GPU" for pod in on if pod.gpu_model and pod.gpu_model != kind.gpu_model]
    for name in made.unplaced:
        alone = [kind for kind in types if fits([named[name]], kind)]
        found += [f"{name} is unplaced, but fits into {kind.name}" for kind in alone]
    return found


def fits(pods, kind) -> bool:
    asked = [sum(pod.gpus for pod in pods), sum(pod.cpu_milli for pod in pods), sum(pod.memory_mib for pod in pods)]
    has = [kind.gpus, kind.cpu_milli - kind.reserved_cpu_milli, kind.memory_mib - kind.reserved_memory_mib]
    models = {pod.gpu_model for pod in pods} - {None, kind.gpu_model}
    return all(a <= h for a, h in zip(asked, has, strict=True)) and len(pods) <= kind.pods and not models


def cheapest(pods, types) -> float:
    """The price of the best mix, by trying every way to share the pods out."""

    @cache
    def price(some: int) -> float:
        on = [pod for at, pod in enumerate(pods) if some >> at & 1]
        return min((kind.usd_per_hour for kind in types if fits(on, kind)), default=float("inf"))

    @cache
    def best(rest: int) -> float:
        if not rest:
            return 0.0
        first, found = rest & -rest, float("inf")
        others = rest ^ first
        some = others
        while True:
            found = min(found, price(some | first) + best(others ^ some))
            if not some:
                return found
            some = (some - 1) & others

    return best((1 << len(pods)) - 1)


def drawn(seed: int, count: int) -> list[Pod]:
    rng = random.Random(seed)
    sizes = [(rng.randint(500, 16000), rng.randint(1000, 60000), rng.choice([0, 1, 1, 2])) for _ in range(5)]
    return [Pod(f"p{at}", *rng.choice(sizes), rng.choice([None, None, None, "T4", "A100"])) for at in range(count)]


def test_on_small_cases_it_is_the_cheapest_or_near():
    ratios = []
    for seed in range(30):
        pods = [pod for pod in drawn(seed, 8) if not module.unplaceable(shape(pod), TYPES)]
        made = mix(pods, TYPES)
        assert wrong(made, pods, TYPES) == [] and made.unplaced == {}
        ratios.append(made.usd_per_hour / cheapest(pods, TYPES))
    assert min(ratios) >= 1 - 1e-9, "cheaper than the cheapest: the count is wrong"
    assert sum(ratio < 1 + 1e-9 for ratio in ratios) >= 24 and max(ratios) < 1.2, sorted(ratios)


def shape(pod):
    return pod.gpus, pod.cpu_milli, pod.memory_mib, pod.gpu_model


def test_what_is_scarce_decides():
    """A wide node is worth its price only to pods that need more than its GPUs."""
    alone = [Pod(f"g{at}", 3500, 12000, 1) for at in range(4)]
    assert mix(alone, TYPES).instances == {"small": 4}
    heavy = [Pod(f"g{at}", 8000, 30000, 1) for at in range(4)]
    together = mix([*heavy, Pod("c", 15000, 40000)], TYPES)
    assert together.instances == {"wide": 1} and together.usd_per_hour == 5.5


def test_equal_arguments_give_equal_results_and_names_order_does_not_matter_for_the_price():
    pods = drawn(3, 60)
    assert mix(pods, TYPES) == mix(list(pods), TYPES)
    shuffled = random.Random(1).sample(pods, len(pods))
    assert mix(shuffled, TYPES).usd_per_hour == mix(pods, TYPES).usd_per_hour


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (Pod("x", 1000, 1000, 9), "it asks for 9 GPUs, and the largest node has 8 for pods"),
        (Pod("x", 96000, 1000), "it asks for 96000 milli-CPUs, and the largest node has 95690 for pods"),
        (Pod("x", 1000, 1000, 5, "T4"), "it asks for 5 GPUs, and the largest node with GPU T4 has 4 for pods"),
        (Pod("x", 1000, 1000, 1, "H100"), "it insists on GPU H100, and no type that is offered has one"),
        (
            Pod("x", 60000, 1000, 1, "T4"),
            "it asks for 60000 milli-CPUs, and the largest node with GPU T4 has 47810 for pods",
        ),
    ],
)
def test_a_pod_that_fits_nowhere_is_named_with_the_reason(pod, reason):
    made = mix([pod, Pod("y", 1000, 1000)], TYPES)
    assert made.unplaced == {"x": reason} and [node.pods for node in made.nodes] == [("y",)]


def test_a_pod_that_no_single_node_has_enough_of_all_for_is_named():
    flat = NodeType("flat", 1.0, 64000, 4096, 8, "T4", 10)
    tall = NodeType("tall", 1.0, 4000, 262144, 1, "T4", 10)
    made = mix([Pod("x", 32000, 65536, 1)], (flat, tall))
    assert made.unplaced == {"x": "no type has 1 GPUs, 32000 milli-CPUs and 65536 MiB for pods in one node"}
    assert "no type that is offered" in mix([Pod("x", 1, 1, 1, "T4")], ()).unplaced["x"]
    assert mix([Pod("x", 1, 1)], ()).unplaced and mix([], TYPES) == Mix((), {})


def test_the_number_of_pods_on_a_node_is_kept():
    made = mix([Pod(f"p{at}", 1, 1) for at in range(95)], TYPES)
    assert wrong(made, [Pod(f"p{at}", 1, 1) for at in range(95)], TYPES) == []
    assert max(len(node.pods) for node in made.nodes) <= 30 and made.usd_per_hour == pytest.approx(3 * 1.2 + 1.0)


def test_what_is_wrong_is_refused_in_one_sentence():
    for pods, types, says in (
        ([Pod("a", 1, 1), Pod("a", 2, 2)], TYPES, "two pods are called 'a'"),
        ([Pod("a", 1, 1)], (SMALL, SMALL), "two types are called 'small'"),
        ([Pod("a", -1, 1)], TYPES, "asks for less than nothing"),
        ([Pod("a", 1, 1)], (NodeType("free", 0.0, 1000, 1000, 0, None, 10),), "leave out what has no price above 0"),
    ):
        with pytest.raises(ValueError, match=says):
            mix(pods, types)


def test_more_shapes_than_one_programme_has_rows_for(monkeypatch):
    rng = random.Random(5)
    pods = [Pod(f"p{at}", rng.randint(1, 9000), rng.randint(1, 30000), rng.randint(0, 2)) for at in range(90)]
    whole = mix(pods, TYPES)
    monkeypatch.setattr(module, "MOST_SHAPES", 40)
    parts = mix(pods, TYPES)
    assert wrong(whole, pods, TYPES) == [] == wrong(parts, pods, TYPES)
    assert parts.usd_per_hour < 1.15 * whole.usd_per_hour


sizes = st.tuples(st.integers(0, 100_000), st.integers(0, 900_000), st.integers(0, 9))
some_pods = st.lists(
    st.tuples(sizes, st.sampled_from([None, None, "T4", "A100", "H100"]), st.integers(1, 12)), max_size=6
)
some_types = st.lists(
    st.tuples(
        st.floats(0.01, 100), st.integers(0, 200_000), st.integers(0, 1_000_000), st.integers(0, 8),
        st.sampled_from([None, "T4", "A100"]), st.integers(0, 20), st.integers(0, 2000),
    ),
    max_size=5,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(some_pods, some_types)
def test_whatever_is_asked_and_offered_the_guarantees_hold(asked, offered):
    pods = [
        Pod(f"{at}.{copy}", *size, model) for at, (size, model, copies) in enumerate(asked) for copy in range(copies)
    ]
    types = [
        NodeType(f"t{at}", usd, cpu, memory, gpus, model, most, reserved, reserved)
        for at, (usd, cpu, memory, gpus, model, most, reserved) in enumerate(offered)
    ]
    made = mix(pods, types)
    assert wrong(made, pods, types) == []
    assert made.usd_per_hour == pytest.approx(sum(node.type.usd_per_hour for node in made.nodes))


def test_the_verifier_sees_what_is_wrong():
    pods = [Pod("a", 1000, 1000, 1), Pod("b", 1000, 1000, 1, "A100")]
    bad = Mix((module.NodeToRent(SMALL, ("a", "b")), module.NodeToRent(BIG, ("a",))), {})
    found = " ".join(wrong(bad, pods, TYPES))
    assert "a is on 2 nodes" in found and "too many GPUs" in found and "b has another GPU" in found
    assert wrong(Mix((), {"a": "why"}), pods, TYPES) != []
