"""What the controller and `ironburst hall cap` learn of a hall."""

from pathlib import Path

import pytest

from ironburst.config import load
from ironburst.config.finding import ConfigError
from ironburst.document import build

PROD = Path(__file__).parents[3] / "stacks/Pulumi.prod.yaml"


def built(change):
    value = load.read_value(PROD)
    value.pop("cloud", None)
    change(value["halls"][0])
    return build.build(load.from_value(value), build.Observed())


def test_defaults_and_what_nobody_declares():
    document = built(lambda hall: None)
    hall = document.halls["hall-a"]
    assert (hall.breaker_share, hall.drain_after_s, hall.other_w) == (0.1, 4 * 3600, None)
    assert (document.host("dgx01").power_w, document.host("dgx01").gpu_w) == (10200.0, 700.0)
    assert document.host("head").power_w is None


def test_what_is_declared():
    def change(hall):
        hall["breaker"] = {"share": 0.5, "drain_after": "90m"}
        for nodes in hall["nodes"]:
            nodes |= {"chassis": {"power_w": 800}} if nodes.get("role") != "gpu" and "platform" not in nodes else {}
            nodes |= {"gpu_power_limit_w": 600} if "platform" in nodes else {}

    document = built(change)
    hall = document.halls["hall-a"]
    others = [host for host in document.hosts if host.role != "gpu"]
    assert (hall.breaker_share, hall.drain_after_s, hall.other_w) == (0.5, 5400, 800 * len(others))
    assert (document.host("dgx01").power_w, document.host("dgx01").gpu_w) == (10200 - 8 * 100, 600)


@pytest.mark.parametrize("breaker", [{"share": 0}, {"share": 1}, {"share": 10}, {"drain_after": "soon"}, {"cap": 1}])
def test_what_no_breaker_is(breaker):
    with pytest.raises(ConfigError, match=r"halls\S*breaker"):
        built(lambda hall: hall.update({"breaker": breaker}))
