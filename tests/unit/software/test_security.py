"""Security bulletins of drivers: what a driver lacks, what a newer one closes, and what isn't known."""

import pytest

from ironburst import catalog
from ironburst.software import security
from ironburst.software.versions import branch_of, version

FACTS = catalog.software_facts()


def ids(bulletins):
    return [each.bulletin for each in bulletins]


@pytest.mark.parametrize(
    ("driver", "lacks"),
    [
        ("580.95.05", ["5747", "5821", "5861"]),
        ("580.126.09", ["5821", "5861"]),
        ("580.178.04", []),
        ("570.211.01", []),  # no later bulletin names its branch
        ("560.35.05", []),  # nor this one's at all
    ],
)
def test_what_a_driver_lacks(driver, lacks):
    assert ids(security.lacking(driver, FACTS.bulletins)) == lacks


@pytest.mark.parametrize(
    ("old", "new", "closes"),
    [
        ("580.95.05", "580.126.09", ["5747"]),
        ("580.95.05", "580.95.05", []),
        ("580.178.04", "580.95.05", []),  # back
        ("570.172.08", "580.95.05", ["5703"]),  # another branch, of which the bulletin speaks
        ("550.144.03", "595.112.07", []),  # which it doesn't: unknown
    ],
)
def test_what_a_newer_driver_closes(old, new, closes):
    assert ids(security.closed(old, new, FACTS.bulletins)) == closes


def test_a_branch_without_a_fixed_version_says_so():
    drivers = {"a": "580.95.05", "b": "580.95.05", "c": None, "d": "535.274.02"}
    short = catalog.software_facts().branches | {580: None}
    of_535, of_580 = security.warnings(drivers, _Facts(short))
    assert of_535.startswith("d: driver 535.274.02 lacks") and "535.309.01 has them" in of_535
    assert of_580.startswith("a, b: ") and of_580.endswith("has them all: choose another branch")


class _Facts:
    def __init__(self, branches):
        self.branches, self.bulletins = branches, FACTS.bulletins


def test_the_data_holds_together():
    for each in FACTS.bulletins:
        assert branch_of(each.fixed) == each.branch and each.cves, each
        assert all(cve.startswith("CVE-20") for cve in each.cves) and 0 < each.cvss_max <= 10, each
    newest = {}
    for each in FACTS.bulletins:  # in their order, a branch's fixes only move on
        assert version(each.fixed) >= newest.get(each.branch, (0,)), each
        newest[each.branch] = version(each.fixed)
