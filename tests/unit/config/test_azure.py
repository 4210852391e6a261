"""A cloud of Azure's in a stack file: its models, its checks, its networks, its estimates."""

from datetime import UTC, datetime, timedelta

import pytest

from ironburst.config.azure.models import AzureCloud
from ironburst.config.checks import check
from ironburst.config.load import from_value
from tests import azure_stack

NOW = datetime(2026, 11, 28, tzinfo=UTC)
SOON = (NOW + timedelta(days=9)).isoformat()


@pytest.fixture(autouse=True)
def opened(monkeypatch):
    monkeypatch.setattr(AzureCloud, "closed", "")


@pytest.fixture
def declared():
    return azure_stack.value()


def said(value):
    """(path below cloud, message) of what is wrong with it as a whole, but for warnings."""
    found = [each for each in check(from_value(value), NOW) if each.severity == "error"]
    return [(each.path.partition(".cloud.")[2], each.message) for each in found]


def test_a_stack_in_azure_is_valid(declared):
    assert said(declared) == []
