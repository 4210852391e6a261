"""The parsers of the gate: every healthy sample passes, every damage to one is refused, and a sample is what
`samples` writes.
"""

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import pytest

from ironburst.catalog import gpus
from ironburst.health import tools
from ironburst.health.expectation import Expectation
from ironburst.health.findings import healthy
from ironburst.health.models import find_models
from tests.unit.health import damage
from tests.unit.health import samples as written
from tests.unit.health.catalogue import TABLES

REPOSITORY = Path(__file__).parents[3]
WHOLE = damage.samples()
EXPECTED = Expectation(models=TABLES.models, thresholds=TABLES.thresholds)


def parse(tool, text, **declared):
    return tools.parse(tool, text, EXPECTED._replace(**declared))


@pytest.mark.parametrize("name", WHOLE)
def test_a_healthy_sample_passes(name):
    findings = parse(damage.tool_of(name), WHOLE[name])
    assert [finding.text for finding in findings if not finding.passed] == []
    assert findings


@pytest.mark.parametrize("name", [name for name, text in WHOLE.items() if "\r" not in text])
def test_a_capture_with_windows_lines_or_without_its_last_newline_is_the_same(name):
    tool = damage.tool_of(name)
    assert healthy(parse(tool, WHOLE[name].replace("\n", "\r\n")))
    stripped = parse(tool, WHOLE[name].rstrip("\n"))
    # only a number at the very end can't be told from a cut one
    assert healthy(stripped) or "no newline at its end" in stripped[0].text, stripped


def test_lspci_in_words_is_as_healthy_as_by_number():
    assert healthy(parse("lspci", written.lspci(written.BY["h100-sxm5"], "words")))
    assert not healthy(
        parse("lspci", written.lspci(written.BY["h100-sxm5"], "words").replace("(rev a1)", "(rev ff)", 1))
    )


def test_the_samples_cover_every_tool_and_generation_and_are_as_written():
    assert {damage.tool_of(name) for name in WHOLE} == set(tools.TOOLS)
    assert {name: text for name, text in WHOLE.items() if not name.endswith("-captured")} == written.samples()
    served = {gpu.architecture for gpu in gpus().values()}
    shown = {
        gpus()[model.name].architecture for spec in written.SPECS for model in find_models(spec.name, EXPECTED.models)
    }
    assert served == shown
    assert len(WHOLE) >= 30


@functools.cache
def judged():
    """Every damage with its findings."""
    return [(damaged, parse(damaged.tool, damaged.text, **damaged.declared)) for damaged in damage.damages()]


def test_every_damage_is_refused(capsys):
    let_through = [f"{bad.tool} {bad.sample}: {bad.what}" for bad, findings in judged() if healthy(findings)]
    counts = Counter(damaged.tool for damaged, _ in judged())
    with capsys.disabled():
        tried = f"damaged outputs tried {len(judged())}, let through {len(let_through)} ({dict(counts)})"
        print(f"\ngate: {tried}; healthy tried {len(WHOLE)}")
    assert let_through == []
    assert len(judged()) >= 300
    assert min(counts.values()) >= 30


def test_no_parser_ever_crashes():
    broken = [
        (damaged.sample, damaged.what)
        for damaged, findings in judged()
        if any("parser itself failed" in finding.text for finding in findings)
    ]
    assert broken == []


def test_every_damage_fits_somewhere():
    """One that fits nowhere tests nothing."""
    for tool, changes in damage.CHANGES.items():
        texts = [text for name, text in WHOLE.items() if damage.tool_of(name) == tool]
        assert [what for form, _, what in changes if not any(re.search(form, text) for text in texts)] == [], tool


@pytest.mark.parametrize(
    ("tool", "name", "declared", "text"),
    [
        ("nvidia-smi", "nvidia-smi-h100-sxm5-table", {"gpus": 4}, "8 of 4 GPUs"),
        ("nvidia-smi", "nvidia-smi-h100-sxm5-table", {"gpu_model": "A100 SXM4 80GB"}, "declared is A100"),
        ("nvidia-smi", "nvidia-smi-h100-sxm5-q", {"driver": "575.57.08"}, "declared 575.57.08"),
        ("nvidia-smi", "nvidia-smi-a30-list", {"gpu_model": "L40S"}, "declared is L40S"),
        ("lspci", "lspci-h100-sxm5-vv", {"gpus": 7}, "8 of 7"),
        ("ibstat", "ibstat-h100", {"links": 9}, "8 of 9 ports"),
        ("ibstat", "ibstat-h100", {"rate_gb_s": 800.0}, "declared are 800"),
        ("dcgmi", "dcgmi-b200-diag-r2", {"level": 3}, "level 2 has run"),
        ("nccl-tests", "nccl-tests-h100-sxm5-all_reduce", {"message_size": "64G"}, "no row of 64G"),
        ("nccl-tests", "nccl-tests-a100-sxm4-80gb-all_reduce", {"threshold_id": "T04"}, "T04 asks for 460"),
        ("nccl-tests", "nccl-tests-a100-sxm4-40gb-all_reduce", {"threshold_id": "T04"}, "no row of 16G"),
        ("nccl-tests", "nccl-tests-b200-all_reduce", {"message_size": "16G"}, "no row for this GPU"),
        ("ib_write_bw", "ib_write_bw-a100-hdr-gbits", {"gpu_model": "H100 SXM5 80GB"}, "T27 asks for 380"),
        ("ib_write_bw", "ib_write_bw-v100-edr-megabytes", {"threshold_id": "T54"}, "no row of the acceptance table"),
    ],
)
def test_a_declaration_is_held(tool, name, declared, text):
    failed = [finding.text for finding in parse(tool, WHOLE[name], **declared) if not finding.passed]
    assert failed and text in " ".join(failed)


@pytest.mark.parametrize(
    ("tool", "name", "declared", "text"),
    [
        ("nccl-tests", "nccl-tests-h100-sxm5-all_reduce", {}, "T04 asks for 460"),
        ("nccl-tests", "nccl-tests-h200-sxm-all_reduce", {}, "T06 asks for 431"),
        ("nccl-tests", "nccl-tests-v100-sxm2-all_reduce", {"threshold_id": "T01"}, "T01 asks for 110"),
        ("ib_write_bw", "ib_write_bw-h100-ndr-gbits-gpu", {"gpu_model": "H100 SXM5 80GB"}, "T27 asks for 380"),
        ("ib_write_bw", "ib_write_bw-v100-edr-megabytes", {"threshold_id": "T29"}, "T29 asks for 78"),
        ("nccl-tests", "nccl-tests-l40s-all_reduce", {}, "not judged"),
    ],
)
def test_bandwidth_is_judged_at_one_size_of_one_row(tool, name, declared, text):
    findings = parse(tool, WHOLE[name], **declared)
    assert healthy(findings) and text in findings[-1].text


def test_a_low_bandwidth_of_a_known_board_fails_without_any_option():
    findings = parse("nccl-tests", written.nccl(written.BY["h100-sxm5"], 2**34, 300.0))
    assert [finding.check for finding in findings if not finding.passed] == ["bandwidth"]


def lanes(sample, number):
    changed = re.sub(r"(Link Width\n +Max +: 16x\n +Current +: )16x", rf"\g<1>{number}x", WHOLE[sample])
    assert changed != WHOLE[sample]
    return changed


def test_lanes_that_the_board_does_not_wire_must_be_declared():
    narrow = lanes("nvidia-smi-h100-sxm5-q", 8)
    assert not healthy(parse("nvidia-smi", narrow))
    assert healthy(parse("nvidia-smi", narrow, pcie_width=8))


def test_cards_that_clouds_wire_with_eight_lanes_need_eight():
    assert healthy(parse("nvidia-smi", lanes("nvidia-smi-a10g-q", 8)))
    assert not healthy(parse("nvidia-smi", lanes("nvidia-smi-a10g-q", 4)))
    assert not healthy(parse("nvidia-smi", lanes("nvidia-smi-a10g-q", 8), pcie_width=16))


def test_accepted_errors_must_be_declared():
    remapped = re.sub(r"(Uncorrectable Error +: )0", r"\g<1>1", WHOLE["nvidia-smi-h100-sxm5-q"])
    assert not healthy(parse("nvidia-smi", remapped))
    assert healthy(parse("nvidia-smi", remapped, accepted_uncorrectable=1))


@pytest.mark.parametrize("form", ["q", "q-x", "table"])
def test_a_gpu_may_draw_no_more_than_declared(form):
    whole = WHOLE[f"nvidia-smi-h100-sxm5-{form}"]
    assert healthy(parse("nvidia-smi", whole, power_limit_w=700)), "its own limit"
    assert not healthy(parse("nvidia-smi", whole, power_limit_w=500))
    assert healthy(parse("nvidia-smi", whole, power_limit_w=750)), "lower is as good"


@pytest.mark.parametrize("python", ["3.6", "3.8"])
def test_the_package_is_python_of_the_nodes(python):
    version = tuple(int(part) for part in python.split("."))
    for path in sorted((REPOSITORY / "ironburst/health").glob("*.py")):
        tree = ast.parse(path.read_text(), feature_version=version)
        if version < (3, 7):
            names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
            assert not {"__future__", "dataclasses"} & set(names), path.name
