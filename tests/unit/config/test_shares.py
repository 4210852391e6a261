"""Shares in the stack file: what is refused, in one sentence each, and what becomes of them in the document."""

import pytest

from ironburst import document
from ironburst.config import load
from ironburst.config.checks import shares
from ironburst.document import build
from tests.unit.config.test_checks import findings, put
from tests.unit.document.test_document import OBSERVED
from tests.unit.kubernetes_stack import on_kubernetes

VISION = {"team": "vision", "guaranteed_gpus": 8}
NLP = {"team": "nlp"}
OWN = {"team": "vision", "nodes": "dgx[01-02]"}


def test_shares_that_fit_are_valid_and_reach_the_document(declared):
    declared["shares"] = [VISION | {"account": "cv", "weight": 3, "nodes": "dgx02"}, NLP | {"max_gpus": 4}]
    assert findings(declared) == []
    built = build.build(load.from_value(declared), OBSERVED)
    assert [share.model_dump() for share in built.shares] == [
        {
            "account": "cv",
            "guaranteed_gpus": 8,
            "over_quota": True,
            "weight": 3,
            "max_gpus": None,
            "nodes": ["dgx02"],
        },
        {"account": "nlp", "guaranteed_gpus": 0, "over_quota": True, "weight": 1, "max_gpus": 4, "nodes": []},
    ]
    assert [built.host(name).partition for name in ("dgx01", "dgx02")] == ["home", "own-cv"]
    older = built.model_dump(mode="json")
    del older["shares"]
    assert document.parse(older).shares == []


# case: (shares, path of the finding, words of it)
BAD = {
    "more guaranteed than there is": (
        [VISION, {"team": "nlp", "guaranteed_gpus": 9}],
        "shares",
        "the guarantees are 17 GPUs together, and the shared nodes have 16: lower them by 1",
    ),
    "what is a team's alone isn't there to be guaranteed": (
        [VISION | {"nodes": "dgx01"}, {"team": "nlp", "guaranteed_gpus": 1}],
        "shares",
        "lower them by 1, or share some of the 1 nodes that are a team's alone",
    ),
    "a team twice": (
        [VISION, NLP, VISION],
        "shares[2].team",
        "'vision' has a share already at",
    ),
    "an account twice": (
        [VISION, NLP | {"account": "vision"}],
        "shares[1].account",
        "account 'vision' is that of the share at config.ironburst:cluster.shares[0].team, too",
    ),
    "a node that isn't owned": ([VISION | {"nodes": "p5-1"}], "shares[0].nodes[0]", "owned are dgx01, dgx02"),
    "the head": ([VISION | {"nodes": "head"}], "shares[0].nodes[0]", "'head' is not an owned GPU node"),
    "a node of two teams": (
        [OWN, NLP | {"nodes": "dgx02"}],
        "shares[1].nodes[0]",
        "'dgx02' is team 'vision''s alone already",
    ),
    "a team that gets nothing": ([NLP | {"over_quota": False}], "shares[0]", "gets nothing"),
    "less at most than guaranteed": ([VISION | {"max_gpus": 4}], "shares[0]", "less than guaranteed_gpus, 8"),
    "a bound that bounds nothing": ([NLP | {"max_gpus": 17}], "shares[0].max_gpus", "it bounds nothing"),
    "no such weight": ([NLP | {"weight": 0}], "shares[0].weight", "must be at least 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_does_not_fit(declared, case):
    declared["shares"], path, words = BAD[case]
    said = [found for found in findings(declared) if found.path == f"{load.path_of()}.{path}"]
    assert len(said) == 1 and words in said[0].message, findings(declared)


@pytest.mark.parametrize("kind", ["slurm", "kubernetes"])
def test_more_guaranteed_than_there_is_reads_the_same_for_both_schedulers(declared, kind):
    if kind == "kubernetes":
        on_kubernetes(declared)
    declared["shares"] = [VISION, NLP | {"guaranteed_gpus": 8}]
    assert load.from_value(declared).scheduler.kind == kind
    assert [found for found in findings(declared) if found.rule.startswith("share")] == []
    declared["shares"] = [VISION, NLP | {"guaranteed_gpus": 9}]
    (said,) = [found for found in findings(declared) if found.rule.startswith("share")]
    assert (said.path, said.rule) == (load.path_of("shares"), "share-sum")
    assert said.message == ("the guarantees are 17 GPUs together, and the shared nodes have 16: lower them by 1")


def test_two_models_are_not_one_number(declared):
    put(declared, "halls[0].nodes[1].names", "dgx01")
    for key, value in (("units", [1]), ("addresses", "10.78.0.11"), ("macs", None), ("serials", None)):
        put(declared, f"halls[0].nodes[1].{key}", value)
    put(declared, "halls[0].nodes[1].bmc.addresses", "http://10.78.8.11")
    second = {key: value for key, value in declared["halls"][0]["nodes"][1].items() if value is not None}
    second |= {"names": "a100", "platform": "generic-hgx-a100-8-gpu", "units": [9], "addresses": "10.78.0.12"}
    second |= {"bmc": second["bmc"] | {"addresses": "http://10.78.8.12"}, "height": 6}
    declared["halls"][0]["nodes"].append(second)
    declared["shares"] = [VISION]
    (said,) = [found for found in findings(declared) if found.rule == "share-models"]
    assert "a share counts GPUs of one model" in said.message
    declared["shares"] = [VISION, NLP | {"nodes": "a100"}]
    assert [found for found in findings(declared) if found.rule.startswith("share")] == []


def test_an_older_slurm_tries_a_job_in_one_qos_only(declared):
    declared["shares"] = [VISION]
    declared["software"]["slurm"] = "23.11"
    assert any("shares need Slurm 24.11" in found.message for found in findings(declared))


def test_a_partition_is_a_teams_or_somebody_elses(declared):
    declared["shares"] = [OWN]
    declared["cloud"]["groups"][0]["name"] = "own-vision"
    assert any("rename one" in found.message for found in findings(declared))


def test_a_namespace_is_made_where_pulumi_is_let_in(declared):
    def told(value):
        return list(shares.shares(load.from_value(value)))

    declared["shares"] = [VISION | {"namespace": {}}]
    (found,) = told(declared)
    assert found.path.endswith("shares[0].namespace") and found.rule == "namespace-nowhere"
    on_kubernetes(declared)
    declared["scheduler"]["admin_kubeconfig"] = "file:/etc/ironburst/admin.kubeconfig"
    assert "namespace-nowhere" not in {each.rule for each in told(declared)}
    assert build.build(load.from_value(declared), OBSERVED).shares[0].account == "vision"
    quota = {"requests.cpu": "1000", "requests.memory": "8Ti", "pods": "500"}
    declared["shares"][0]["namespace"] = {"quota": quota, "limit_range": {"default_request": {"cpu": "1"}}}
    (found,) = [each for each in told(declared) if each.rule == "quota-without-default"]
    assert found.severity == "warning" and "has a quota of memory, so" in found.message
