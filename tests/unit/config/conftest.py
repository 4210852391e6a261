"""What the tests of a stack's value share."""

from pathlib import Path

import pytest

from ironburst.config import load

LAB = Path(__file__).parents[3] / "stacks/Pulumi.lab.yaml"


@pytest.fixture
def declared():
    """The value of the lab's stack, for a test to change; its BMCs by https, so that nothing is to be warned of."""
    value = load.read_value(LAB)
    for nodes in value["halls"][0]["nodes"]:
        nodes["bmc"]["addresses"] = nodes["bmc"]["addresses"].replace("http://", "https://")
    return value
