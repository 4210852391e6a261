"""Two heads: what is declared of them, what follows, and what is refused."""

import copy
from pathlib import Path

import pytest

from ironburst.config import load
from ironburst.config.checks import scheduler
from ironburst.controller.launch_request import _joins
from ironburst.convergence import inputs
from ironburst.document import build, variables
from tests.unit.document.test_document import OBSERVED

ROOT = Path(__file__).parents[3]
SECOND = {"head": "head2", "state": "/srv/heads", "ledger": "postgresql://ironburst@db.example.org/ironburst"}


def second_head(declared, **changes):
    """A head more, as the first one is; its section with these changes."""
    nodes = declared["halls"][0]["nodes"]
    head = copy.deepcopy(next(each for each in nodes if each.get("role") == "head"))
    nodes.append(head | {"names": "head2", "addresses": "10.78.0.9"} | {"bmc": head["bmc"]})
    head["bmc"]["addresses"] = head["bmc"]["addresses"].rpartition(":")[0] + ":8999"
    declared["scheduler"]["second_head"] = SECOND | changes
    return declared


def said(value):
    found = scheduler.scheduler(load.from_value(value))
    return [(finding.path.removeprefix("config.ironburst:cluster."), finding.message) for finding in found]


def test_nodes_ask_both_heads_and_both_are_set_up_alike(declared):
    second_head(declared, ledger_password="file:/etc/ironburst/ledger.password")
    assert said(declared) == []
    built = build.build(load.from_value(declared), OBSERVED)
    first, second = built.host("head"), built.host("head2")
    assert {*first.roles} - {*second.roles} == {"prometheus"} and "slurm_head" in second.roles
    assert built.scheduler.conf_server == f"{first.address},10.78.0.9"
    assert built.scheduler.second_head.address == "10.78.0.9"
    asked = _joins(built, built.pools[0], built.pools[0].zones[0])
    assert asked["conf_server"] == built.scheduler.conf_server and asked["hosts"]["head2"] == "10.78.0.9"
    decoded = built.model_dump(mode="json")
    assert variables.keeper(decoded) == "head" and variables.keepers(decoded) == ["head", "head2"]


def test_two_heads_with_a_file_as_ledger_are_refused(declared):
    del second_head(declared)["scheduler"]["second_head"]
    ((path, message),) = said(declared)
    assert path == "scheduler.head"
    assert message == (
        "there are 2 head nodes, and the ledger is a file of one of them (SQLite): write `second_head` with a ledger "
        "in PostgreSQL for two; keep one"
    )


@pytest.mark.parametrize("name", ["head", "dgx01", "nobody"])
def test_the_second_one_is_another_node_with_role_head(declared, name):
    ((path, message),) = said(second_head(declared, head=name))
    assert path == "scheduler.second_head.head"
    assert message == f"'{name}' is not a second node with role head; nodes with it beside head: head2"


@pytest.mark.parametrize(
    "ledger",
    ["/var/lib/ironburst/ledger.sqlite", "postgresql://ironburst:secret@db/ironburst", "postgresql://db/ironburst", ""],
)
def test_a_ledger_that_is_no_database_or_names_its_password_is_refused(declared, ledger):
    with pytest.raises(load.ConfigError) as refused:
        load.from_value(second_head(declared, ledger=ledger))
    (finding,) = refused.value.findings
    assert finding.path.endswith("scheduler.second_head.ledger") and "secret" not in finding.message


@pytest.mark.parametrize(
    "accounting",
    [
        "postgresql://slurm@db/slurm_acct",
        "mysql://slurm:secret@db/slurm_acct",
        "mysql://slurm@db",
        "mysql://slurm@db/a-b",
    ],
)
def test_an_accounting_that_is_no_database_or_names_its_password_is_refused(declared, accounting):
    with pytest.raises(load.ConfigError) as refused:
        load.from_value(second_head(declared, accounting=accounting))
    (finding,) = refused.value.findings
    assert finding.path.endswith("scheduler.second_head.accounting") and "secret" not in finding.message


def test_the_ledgers_password_is_the_heads_own_and_the_accountings_is_whoever_converges_has(declared):
    """The one is resolved by the controllers; the other one is written into both heads' slurmdbd.conf."""
    second_head(
        declared,
        ledger_password="file:/etc/ironburst/ledger.password",
        accounting="mysql://slurm@db.example.org/slurm_acct",
        accounting_password="env:ACCOUNTING",
    )
    document = build.build(load.from_value(declared), OBSERVED).model_dump(mode="json")
    asked = []
    sources = inputs.Sources(
        ROOT, ROOT / "inventory/lab", document, "00", lambda reference: asked.append(reference) or "x", {}
    )
    for head in ("head", "head2"):
        sources.of(head)
    assert "env:ACCOUNTING" in asked and "file:/etc/ironburst/ledger.password" not in asked


def test_of_a_slurm_that_isnt_managed_nothing_is_written(declared):
    declared["scheduler"] |= {"managed": False, "head": "10.78.0.10", "second_head": SECOND}
    assert any(
        path == "scheduler.second_head" and "slurm.conf that isn't managed" in text for path, text in said(declared)
    )
