"""Two clouds in one stack file: each is checked as if it were the only one, and what is over both once."""

import re
from datetime import UTC, datetime

import pytest

from ironburst.config import estimates
from ironburst.config.checks import check
from ironburst.config.load import ConfigError, from_value
from ironburst.plan.money import money
from tests import several_clouds

NOW = datetime(2026, 11, 28, tzinfo=UTC)
OTHER = "config.ironburst:cluster.other_clouds[0]"


@pytest.fixture
def declared():
    return several_clouds.value()


def wrong(value, severity="error"):
    return [(each.path, each.message) for each in check(from_value(value), NOW) if each.severity == severity]


def test_a_stack_in_two_clouds_is_valid(declared):
    assert wrong(declared) == []
    config = from_value(declared)
    assert [each.provider for each in config.clouds] == ["aws", "google"]
    assert [pool.name for pool in config.pools][-2:] == ["g-h100", "g-l4"]
    assert config.cloud_of(config.pools[-1]).provider == "google"


@pytest.mark.parametrize("provider", ["aws", "google"])
def test_each_is_as_if_it_were_the_only_one(declared, provider):
    """So what is checked, asked and written of one alone (rights, doctor, components) is so beside another."""
    config = from_value(declared)
    its = next(cloud for cloud in config.clouds if cloud.provider == provider)
    beside = config.in_cloud(its)
    alone = {key: value for key, value in declared.items() if key != "other_clouds"}
    if provider == "google":
        alone |= {"cloud": declared["other_clouds"][0], "scheduler": declared["scheduler"] | {"munge_key": MUNGE}}
    assert beside.model_dump() == from_value(alone).model_dump()


def test_each_sees_itself_alone_with_its_own_secrets(declared):
    config = from_value(declared)
    first, second = (config.in_cloud(each) for each in config.clouds)
    assert first.scheduler.munge_key == config.scheduler.munge_key and second.scheduler.munge_key == MUNGE
    assert second.cloud is config.other_clouds[0] and not second.other_clouds


MUNGE = several_clouds.MUNGE_KEY


def test_a_secret_without_a_copy_in_the_other_cloud_is_refused(declared):
    declared["other_clouds"][0]["secrets"] = {}
    ((path, message),) = wrong(declared)
    assert path == "config.ironburst:cluster.scheduler.munge_key"
    assert message.startswith("must be a reference to google-secretmanager") and "other_clouds[0].secrets" in message


CASES = {
    "a type of the other cloud": (["pools", 1, "instance_type"], "g6e.12xlarge", "pools[1].instance_type"),
    "a zone that isn't the network's": (["pools", 0, "zones"], ["us-central1-f"], "pools[0].zones[0]"),
    "a name of the first cloud's": (["pools", 1, "name"], "p5", "pools[1].name"),
    "a network of the first cloud's": (["network", "cidr"], "10.80.0.0/16", "network.cidr"),
    "a hall that isn't there": (["network", "hall_link", "hall"], "hall-z", "network.hall_link.hall"),
    "a price of nothing": (["price"], {"no-such-type": {"spot": 1.0}}, "price.no-such-type"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_in_the_second_cloud_has_its_place(declared, case):
    keys, value, path = CASES[case]
    at = declared["other_clouds"][0]
    for key in keys[:-1]:
        at = at[key]
    if case.endswith("first cloud's"):
        value = declared["cloud"]["pools"][0]["name"] if keys[-1] == "name" else declared["cloud"]["network"]["cidr"]
    at[keys[-1]] = value
    found = [each for each, _ in wrong(declared)]
    assert found and f"{OTHER}.{path}" in found and all(each.startswith(OTHER) for each in found)


def test_a_cloud_twice_and_a_second_one_alone_are_refused(declared):
    twice = declared | {"other_clouds": [declared["other_clouds"][0], declared["other_clouds"][0]]}
    assert f"{OTHER[:-3]}[1].provider" in [path for path, _ in wrong(twice)]
    assert next(path for path, _ in wrong(declared | {"cloud": None})) == OTHER[:-3]


def test_what_is_not_known_to_cost_is_no_0(declared, monkeypatch):
    monkeypatch.setattr("ironburst.config.google.estimates.network_price", lambda item: None)
    declared["budget"] |= {"usd_per_month": 20}
    del declared["budget"]["total_usd_per_month"]
    (said,) = [message for _, message in wrong(declared, "warning") if "is for rented nodes alone" in message]
    assert re.search(r"google network, [^;]*, unknown", said) and not re.search(r"network, [^;]*, 0\b", said)


def test_a_key_that_is_not_there_has_its_place(declared):
    declared["other_clouds"][0]["pools"][0]["zone"] = "a"
    with pytest.raises(ConfigError) as error:
        from_value(declared)
    (finding,) = error.value.findings
    assert finding.path == f"{OTHER}.pools[0].zone" and "did you mean 'zones'?" in finding.message


def test_the_worst_case_is_the_sum_over_both(declared):
    both = from_value(declared)
    parts = [both.in_cloud(each) for each in both.clouds]
    whole = [str(each) for each in estimates.fixed(both)]
    both_networks = [each for each in whole if "network" in each]
    assert [each.partition(",")[0] for each in both_networks] == ["aws network", "google network"]
    assert sorted(each.replace("aws n", "n").replace("google n", "n") for each in whole) == sorted(
        str(each) for part in parts for each in estimates.fixed(part)
    )
    sums = [money(part, None) for part in (both, *parts)]
    assert None not in (rented := [each.rented for each in sums]) and rented[0] == pytest.approx(sum(rented[1:]))
    assert None not in (rows := [sum(row.after for row in each.rows[:-1]) for each in sums])
    assert rows[0] == pytest.approx(sum(rows[1:]))
