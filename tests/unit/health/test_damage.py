"""Every sample of every reader cut after each line, each line doubled, each number replaced by N/A, and as four locales
would write it: never a traceback, and nothing ill becomes healthy by it.
"""

import re

import pytest

from ironburst.health import tools, xid
from ironburst.health.expectation import Expectation
from ironburst.health.findings import healthy
from tests.unit.health import damage
from tests.unit.health.catalogue import TABLES
from tests.unit.health.damage import LOCALES, spoiled

WHOLE = damage.samples()
NEW = damage.new_kinds(WHOLE)
EXPECTED = Expectation(models=TABLES.models, thresholds=TABLES.thresholds)
GPUS = re.compile(
    r"(?m)^GPU \d+:|^\d+, |^\| +\d+ +(?:NVIDIA|Tesla)|^GPU \w+:\w+:|^[0-9a-f:.]+ (?:0302|3D|VGA)|^\s*Fabric$"
)


def declared(tool, text):
    """What is said of the node, so that a list without an end can't be taken for a smaller one."""
    if tool == "ibstat":
        return EXPECTED._replace(links=text.count("CA '"))
    count = len(GPUS.findall(text))
    return EXPECTED._replace(gpus=count) if tool in ("nvidia-smi", "lspci", "fabricmanager") and count else EXPECTED


def crashed(findings):
    return any("itself failed" in finding.text for finding in findings)


@pytest.mark.parametrize("name", WHOLE)
def test_no_sample_makes_a_parser_crash(name):
    """Each kind of line where it comes first."""
    tool = damage.tool_of(name)
    for what, text in spoiled(WHOLE[name], NEW[name]):
        assert not crashed(tools.parse(tool, text, EXPECTED)), what
    for locale, written in LOCALES.items():
        assert not crashed(tools.parse(tool, written(WHOLE[name]), EXPECTED)), locale


@pytest.mark.slow
@pytest.mark.parametrize("tool", tools.TOOLS)
def test_no_line_of_any_sample_makes_a_parser_crash(tool):
    for name, whole in WHOLE.items():
        for what, text in spoiled(whole) if damage.tool_of(name) == tool else ():
            assert not crashed(tools.parse(tool, text, EXPECTED)), (name, what)


def test_nothing_ill_becomes_healthy_by_it():
    """One sample of each illness."""
    tried, let_through, done = 0, [], set()
    for ill in damage.damages():
        if ill.sample == "-" or len(ill.text) > 4000 or (ill.tool, ill.what) in done or "it is of" in ill.what:
            continue
        done.add((ill.tool, ill.what))
        expected = declared(ill.tool, WHOLE[ill.sample])._replace(**ill.declared)
        spoils = [*spoiled(ill.text), *((locale, written(ill.text)) for locale, written in LOCALES.items())]
        for what, text in spoils:
            tried += 1
            sound = WHOLE[ill.sample].startswith(text.rstrip())  # the illness was cut off
            if healthy(tools.parse(ill.tool, text, expected)) and not sound:
                let_through.append((ill.sample, ill.what, what))
    assert let_through == []
    assert tried > 20000 and len(done) > 200


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:1b:00): 79, pid=12, name=x, GPU has fallen off the bus.",
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 24007, Fatal, Link 28",
    ],
)
def test_an_xid_stays_one(line):
    text = f"[   12.250000] node07 kernel: {line}\n"
    for what, spoilt in [*spoiled(text), *((locale, written(text)) for locale, written in LOCALES.items())]:
        assert not healthy(xid.judge(spoilt, TABLES.xids)), what
