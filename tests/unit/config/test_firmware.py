"""What may be written of firmware: minimums, their images, and who may be updated."""

import copy
from datetime import UTC, datetime

import pytest

from ironburst.baremetal import declared
from ironburst.config import load
from ironburst.config.checks import check
from ironburst.config.finding import ConfigError
from tests.unit.config.test_install import LAB

IMAGE = {"uri": "http://10.0.9.5/bios-1.2.bin", "sha256": "a" * 64}
LEAST = {"component": "BIOS", "at_least": "1.2", "source": "advisory 7", "as_of": "2026-10-01"}


def site(image=None, node=1, **nodes):
    value = copy.deepcopy(LAB)
    its = value["halls"][0]["nodes"][node]
    its |= {"firmware": [LEAST | ({"image": IMAGE | image} if image is not None else {})]} | nodes
    value["halls"][0]["nodes"][node] = {key: given for key, given in its.items() if given is not None}
    return value


def said(image=None, node=1, **nodes):
    try:
        config = load.from_value(site(image, node, **nodes))
    except ConfigError as error:
        return [(finding.path.split("nodes[")[-1][3:], finding.message) for finding in error.findings]
    findings = check(config, datetime(2026, 11, 25, tzinfo=UTC))
    return [(each.path.split("nodes[")[-1][3:], each.message) for each in findings if each.rule == "firmware"]


def test_good_ones():
    assert said() == said({}) == said({"version": "1.10"}) == said({}, allow_update="dgx[01-02]") == []
    assert said({}, allow_update=[]) == []


@pytest.mark.parametrize(
    ("image", "nodes", "path", "words"),
    [
        ({"version": "1.1"}, {}, "firmware[0]", "version '1.1', which is below at_least '1.2'"),
        ({"version": "U54 v1.3"}, {}, "firmware[0]", "which can't be compared with at_least '1.2'"),
        ({"sha256": "A" * 64}, {}, "firmware[0].image.sha256", ""),
        ({"uri": "nfs://10.0.9.5/bios.bin"}, {}, "firmware[0].image.uri", ""),
        ({"uri": "http://ops:secret@10.0.9.5/bios.bin"}, {}, "firmware[0].image.uri", ""),
        ({}, {"allow_update": ["dgx09"]}, "allow_update", "'dgx09' is none of these nodes: dgx01, dgx02"),
        ({}, {"allow_update": ["dgx01"], "bmc": None}, "bmc", "is needed to update these nodes"),
        ({}, {"node": 0, "allow_update": ["head"]}, "allow_update", "no drain makes a head node idle"),
    ],
)
def test_what_is_refused(image, nodes, path, words):
    found = said(image, **nodes)
    assert [where for where, _ in found] == [path] and words in found[0][1]


def test_an_image_is_nothing_that_pulumi_would_see_change():
    (first, _) = declared.node_inputs(load.from_value(site({})).halls[0].nodes[1])
    assert first["firmware"] == [{"component": "BIOS", "atLeast": "1.2", "source": "advisory 7", "asOf": "2026-10-01"}]
