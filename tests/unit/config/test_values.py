"""Ranges, durations, subnets, secret references."""

import ipaddress

import pytest

from ironburst import secrets
from ironburst.config import subnets
from ironburst.config.ranges import RangeError, compact, expand
from ironburst.config.types import duration_text, seconds


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("dgx", ["dgx"]),
        ("dgx[01-03]", ["dgx01", "dgx02", "dgx03"]),
        ("dgx[9-11]", ["dgx9", "dgx10", "dgx11"]),
        ("r[1,3-4]n[1-2]", ["r1n1", "r1n2", "r3n1", "r3n2", "r4n1", "r4n2"]),
        ("http://10.0.0.[11-12]:80", ["http://10.0.0.11:80", "http://10.0.0.12:80"]),
    ],
)
def test_expand(text, names):
    assert expand(text) == names


@pytest.mark.parametrize(
    "text", ["a[2-1]", "a[", "a]", "a[x]", "a[1-]", "a[]", "a[01-100]", "a[1-99999]", "a[1-100]b[1-101]", "a[[1-2]]"]
)
def test_ranges_that_do_not_expand(text):
    with pytest.raises(RangeError, match=r".*\[?"):
        expand(text)


def test_durations_there_and_back():
    assert [seconds(text) for text in ("90s", "2h", "7d", "15m")] == [90, 7200, 604800, 900]
    assert all(seconds(duration_text(n)) == n for n in (1, 59, 60, 3600, 86400, 90061))
    for bad in ("0s", "5", "-3m", "1w", "", None, True):
        with pytest.raises(ValueError, match="not a duration"):
            seconds(bad)


@pytest.mark.parametrize("zones", range(1, 7))
@pytest.mark.parametrize("prefix", [16, 20, 22])
def test_subnets_lie_inside_and_never_overlap(zones, prefix):
    cidr = f"10.0.0.0/{prefix}"
    plan = subnets.plan(cidr, [f"z{n}" for n in range(zones)])
    nets = [ipaddress.IPv4Network(n) for zone in plan.values() for n in (zone.public, zone.private)]
    assert len(nets) == 2 * zones
    assert all(net.subnet_of(ipaddress.IPv4Network(cidr)) for net in nets)
    assert not any(a.overlaps(b) for i, a in enumerate(nets) for b in nets[:i])


def test_adding_a_zone_within_the_power_of_two_moves_nothing():
    two, three = (subnets.plan("10.0.0.0/16", list(zones)) for zones in ("ab", "abc"))
    assert {zone: three[zone] for zone in two} == two


def test_a_network_that_is_too_small():
    with pytest.raises(ValueError, match="too small"):
        subnets.plan("10.0.0.0/28", ["a", "b"])


def test_secret_references(tmp_path, monkeypatch):
    monkeypatch.setenv("IRONBURST_TEST_SECRET", "abc")
    (tmp_path / "s").write_text("def\n")
    assert secrets.resolve("env:IRONBURST_TEST_SECRET") == "abc"
    assert secrets.resolve(f"file:{tmp_path}/s") == "def"
    (tmp_path / "empty").write_text("")
    for reference in (
        "env:IRONBURST_TEST_NOT_SET",
        "file:/no/such",
        f"file:{tmp_path}/empty",
        "vault:x",
        "plain",
        "env:",
    ):
        with pytest.raises(secrets.SecretError):
            secrets.resolve(reference)


def test_a_secret_given_in_place_of_a_reference_is_not_repeated():
    with pytest.raises(secrets.SecretError) as raised:
        secrets.resolve("hunter2")
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize(
    ("names", "expression"),
    [
        (["dgx01", "dgx02", "dgx04"], "dgx[01-02,04]"),
        (["dgx01"], "dgx01"),
        (["p5-9", "p5-10"], "p5-[9,10]"),
        (["head", "dgx01", "dgx02"], "head,dgx[01-02]"),
        (["a1", "b1", "a2"], "a1,b1,a2"),
        (["head"], "head"),
    ],
)
def test_names_as_one_expression(names, expression):
    assert compact(names) == expression
