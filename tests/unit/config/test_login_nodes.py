"""Login nodes: what is declared of them, what follows, and what is refused."""

from ironburst.config import load
from ironburst.config.checks import metal, scheduler
from ironburst.document import build, variables
from tests.sites import login_node
from tests.unit.document.test_document import OBSERVED
from tests.unit.kubernetes_stack import on_both, on_kubernetes


def said(value):
    config = load.from_value(value)
    found = [*scheduler.scheduler(config), *metal.platforms(config), *metal.one_value_a_node(config)]
    return [(finding.path.removeprefix("config.ironburst:cluster."), finding.message) for finding in found]


def test_it_has_users_names_and_slurms_commands_and_nothing_for_jobs(declared):
    login_node(declared)
    people = [{"name": "anna", "uid": 5001}]
    declared |= {"names": "hosts", "users": {"people": people, "node_login": {}}, "metrics": True}
    assert said(declared) == []
    built = build.build(load.from_value(declared), OBSERVED)
    host = built.host("login01")
    assert host.roles == ["base", "host_names", "users", "metrics", "slurm_login"]
    assert (host.role, host.partition, host.gpu) == ("login", None, None)
    assert {role for role, names in host.software.packages.items() if names} == {"slurm_login"}
    assert built.scheduler.head == "head", "the head stays the only one"
    told = variables.of_others(built.model_dump(mode="json"))["login01"]
    assert told == {"node_head_slurm": "24.11"}


def test_of_two_schedulers_it_is_slurms(declared):
    on_both(declared)
    login_node(declared)
    assert said(declared) == []
    declared["halls"][0]["nodes"][-1]["scheduler"] = "kubernetes"
    ((path, message),) = said(declared)
    last = len(declared["halls"][0]["nodes"]) - 1
    assert path.endswith(f"nodes[{last}].scheduler") and "slurm" in message


def test_without_slurm_there_is_nothing_to_log_in_for(declared):
    on_kubernetes(declared)
    login_node(declared)
    assert any("this site has no Slurm" in message and path.endswith(".role") for path, message in said(declared))
