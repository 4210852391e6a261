"""The authority that a controller's certificate comes from: what AWS would refuse is said before."""

from datetime import timedelta

import pytest

from ironburst.config import load
from ironburst.config.checks.aws import identity
from tests import pki

PATH = "config.ironburst:cluster.cloud.controller.ca"
AUTHORITY = pki.issue("authority of hall-a", ca=True, days=365)


@pytest.fixture
def found(declared):
    """`found(pem, days)`: (path, severity, message) of each finding, so many days from now."""

    def look(pem, days=0):
        declared["cloud"]["controller"] = {"ca": pem, "common_name": "head.hall-a"}
        now = pki.NOW + timedelta(days=days)
        found = identity.authorities(load.from_value(declared), now)
        return [(each.path, each.severity, each.message) for each in found]

    return look


def test_an_authority_is_taken_and_two_are(found):
    assert found(AUTHORITY.pem) == []
    assert found(AUTHORITY.pem + pki.issue("its successor", ca=True, days=3650).pem) == []


@pytest.mark.parametrize(
    ("pem", "words"),
    [
        (pki.issue("head.hall-a", AUTHORITY, days=365).pem, "not the controller's own"),
        (AUTHORITY.pem + pki.issue("head.hall-a", AUTHORITY, days=365).pem, "not the controller's own"),
        (AUTHORITY.pem.replace("MII", "MMI", 1), "can't be read as certificates"),
    ],
)
def test_what_aws_refuses_is_refused(found, pem, words):
    assert [(path, severity) for path, severity, _ in found(pem)] == [(PATH, "error")]
    assert words in found(pem)[0][2]


def test_an_authority_that_is_over_is_an_error_and_one_that_ends_soon_a_warning(found):
    ((path, severity, message),) = found(AUTHORITY.pem, days=366)
    assert (path, severity) == (PATH, "error") and "authority of hall-a ended on" in message
    ((_, severity, message),) = found(AUTHORITY.pem, days=320)
    assert severity == "warning" and "write its successor beside it" in message


def test_a_pasted_key_is_refused_and_not_repeated(declared):
    declared["cloud"]["controller"] = {"ca": AUTHORITY.pem + AUTHORITY.key_pem, "common_name": "head.hall-a"}
    with pytest.raises(load.ConfigError) as error:
        load.from_value(declared)
    (finding,) = error.value.findings
    assert finding.path == PATH and "PRIVATE KEY; write certificates alone" in finding.message
    assert AUTHORITY.key_pem.splitlines()[1] not in f"{finding}{finding.as_json()}"


@pytest.mark.parametrize("name", ["", "head*", "head?", "${aws:username}", "x" * 65])
def test_a_common_name_has_no_wildcard(declared, name):
    declared["cloud"]["controller"] = {"ca": AUTHORITY.pem, "common_name": name}
    with pytest.raises(load.ConfigError, match="common_name"):
        load.from_value(declared)
