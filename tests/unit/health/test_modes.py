"""What is declared of a node, and the modes it may be in, against every form of output: MIG off and on, boards and
cards, lanes that the machine wires, collectives.
"""

import re

import pytest

from ironburst.health import accept, join, tools
from ironburst.health.expectation import Expectation
from ironburst.health.findings import healthy
from ironburst.health.join import Node, evaluate
from ironburst.health.settings import Settings
from ironburst.health.smi import MIG_LINKS
from ironburst.health.tools import Outcome
from tests.unit.health import damage
from tests.unit.health import samples as written
from tests.unit.health.catalogue import TABLES
from tests.unit.health.test_join import GOOD

WHOLE = damage.samples()
EXPECTED = Expectation(models=TABLES.models, thresholds=TABLES.thresholds)
MODELS = {
    "a100-sxm4-80gb": "A100 SXM4 80GB",
    "h100-sxm5": "H100 SXM5 80GB",
    "h200-sxm": "H200 SXM 141GB",
    "b200": "B200 180GB",
    "gb200": "GB200 186GB",
}


def parse(text, tool="nvidia-smi", **declared):
    return tools.parse(tool, text, EXPECTED._replace(**declared))


def failed(findings):
    return {finding.check: finding.text for finding in findings if not finding.passed}


def cut_up(spec, *gpus):
    """What a node says some of whose GPUs are in MIG mode: as captures of H100 and H200 of R590 show it."""
    parts = written.xml(spec).split("<gpu id=")
    for gpu in gpus:
        part = re.sub(r"(<(?:current|pending)_mig>)Disabled", r"\1Enabled", parts[gpu + 1])
        parts[gpu + 1] = re.sub(r"(<(?:gpu|memory)_util>)0 %", r"\1N/A", part)
    links = re.split(r"(?m)^(?=GPU )", written.nvlink(spec))
    for gpu in gpus:
        links[gpu + 1] = links[gpu + 1].splitlines()[0] + f"\n{MIG_LINKS}\n"
    return {"gpu_health": "<gpu id=".join(parts), "nvlink": "".join(links)}


def node(slug, mig, outputs):
    spec = written.BY[slug]
    smi = "".join(f"{n}, {spec.name}, {spec.driver}, {spec.mib}\n" for n in range(spec.count))
    lspci = "".join(f"0000:{0x18 + 16 * n:02x}:00.0 0302: 10de:{spec.device} (rev a1)\n" for n in range(spec.count))
    said = {"gpus": smi, "lspci": lspci, "gpu_health": written.xml(spec), "nvlink": written.nvlink(spec), **outputs}
    settings = Settings(
        spec.driver, MODELS[slug], spec.count, "infiniband", 8, ("/shared",), fabric_manager=True, mig=mig
    )
    outcomes = {**GOOD.outcomes, **{name: Outcome(0, text) for name, text in said.items()}}
    return Node(settings, TABLES, GOOD._replace(outcomes=outcomes))


@pytest.mark.parametrize("slug", MODELS)
def test_the_whole_gate_says_the_same_with_mig(slug):
    assert MODELS[slug] in {model.name for model in TABLES.models}
    spec = written.BY[slug]
    every = range(spec.count)
    whole = evaluate(node(slug, False, {}))
    for gpus in (every, (1,), ()):
        findings = evaluate(node(slug, True, cut_up(spec, *gpus)))
        assert failed(findings) == {} and [finding.check for finding in findings] == [one.check for one in whole]
    assert failed(whole) == {}


@pytest.mark.parametrize("slug", MODELS)
def test_mig_that_is_not_declared_is_why_it_is_refused(slug):
    wrong = failed(evaluate(node(slug, False, cut_up(written.BY[slug], 0))))
    assert list(wrong) == ["nvlink"] and "MIG is not declared" in wrong["nvlink"]


def test_mig_hides_nothing_else():
    spec = written.BY["h100-sxm5"]
    said = cut_up(spec, 0)
    down = said["nvlink"].replace("Link 3: 26.562 GB/s", "Link 3: <inactive>", 1)
    assert "nvlink" in failed(evaluate(node("h100-sxm5", True, {**said, "nvlink": down})))
    gone = said["nvlink"].replace(MIG_LINKS, "NVML: Unable to retrieve Nvlink information as all links are inActive")
    assert "nvlink" in failed(evaluate(node("h100-sxm5", True, {**said, "nvlink": gone})))
    no_row = said["gpu_health"].replace("<remapped_row_failure>No", "<remapped_row_failure>Yes", 1)
    assert "gpu_health" in failed(evaluate(node("h100-sxm5", True, {**said, "gpu_health": no_row})))
    fatal = "[ 9.5] n1 kernel: NVRM: Xid (PCI:0000:18:00 GPU-I:05): 95, Uncontained\n"
    assert "xid" in failed(evaluate(node("h100-sxm5", True, {**said, "xid": fatal})))


def test_gpus_that_are_cut_up_need_no_collective():
    settings = node("h100-sxm5", True, {}).settings
    measured = accept.Measured(None, (), {})
    findings, _ = accept.evaluate(settings, TABLES, measured, "accept", None)
    assert "nccl" not in failed(findings)
    assert "nccl" in failed(accept.evaluate(settings._replace(mig=False), TABLES, measured, "accept", None)[0])


@pytest.mark.parametrize("slug", ["l40s", "rtx4090"])
def test_a_card_without_nvlink_says_so_and_is_sound(slug):
    none = re.sub(r"(?m)$\n", "\nDevice does not have or support Nvlink\n", written.listing(written.BY[slug]))
    assert healthy(parse(none))
    board = none.replace(written.BY[slug].name, "NVIDIA H100 80GB HBM3")
    assert "Device does not have" in failed(parse(board))["nvlink"]
    unknown = none.replace(written.BY[slug].name, "NVIDIA X9000")
    assert "is not known" in failed(parse(unknown))["nvlink"]


def topo(*links):
    """topo -m of 4 or 8 GPUs; links: how any two of them reach each other."""
    text = written.topo(written.BY["h100-sxm5"])
    return re.sub("NV18", links[0], text)


def mesh(count, way):
    names = [f"GPU{n}" for n in range(count)] + ["mlx4_0", "ibp12s0"]
    rows = ["\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity"])]
    for a in names:
        cells = [" X " if a == b else way if a[:3] == b[:3] == "GPU" else "SYS" for b in names]
        rows.append(a + "\t" + "\t".join(cells) + ("\t0-31\t0" if a.startswith("GPU") else ""))
    legend = topo("NV18").split("\n\nNIC Legend")[0].split("\n\n", 1)[1]
    return "\n".join(rows) + "\n\n" + legend + "\n"


@pytest.mark.parametrize(
    ("text", "model", "sound"),
    [
        (topo("NV18"), "H100 SXM5 80GB", True),
        (topo("SYS"), "H100 SXM5 80GB", False),
        (topo("NV12"), "H100 SXM5 80GB", False),
        (topo("SYS"), None, True),  # may be cards
        (topo("SYS"), "L40S", True),
        (mesh(4, "NV6"), "H100 SXM5 80GB", True),  # a board of four: 3 x 6
        (mesh(4, "NV18"), "H100 SXM5 80GB", True),  # a part of a board with switches
        (mesh(4, "NV4"), "A100 SXM4 80GB", True),
        (mesh(4, "NV4"), "H100 SXM5 80GB", False),
        (mesh(4, "PIX"), "A100 SXM4 80GB", False),
        (mesh(2, "NODE"), "H200 SXM 141GB", False),
        (mesh(1, ""), "H200 SXM 141GB", True),
    ],
)
def test_a_declared_board_has_its_links_in_the_matrix(text, model, sound):
    assert healthy(parse(text, gpu_model=model)) == sound
    assert healthy(parse(text, gpu_model=model, mig=True)), "cut up: none has a link"


def test_a_head_of_the_matrix_that_is_cut_is_refused():
    assert "head" in parse(mesh(4, "NV6").replace("CPU Affinity", "CPU", 1))[0].text


OPTIONS = {"gpu_model": "H100 SXM5 80GB", "gpus": 8, "driver": "580.95.05", "pcie_width": 0, "links": 8, "level": 3}


@pytest.mark.parametrize("name", [name for name in WHOLE if "-h100-sxm5-" in name or name == "ibstat-h100"])
def test_a_declaration_is_held_against_or_said_not_to_be(name):
    """For each form and option: either another value fails, or the option is said not to be judged."""
    tool = damage.tool_of(name)
    other = {"gpu_model": "A100 SXM4 80GB", "gpus": 7, "driver": "575.57.08", "pcie_width": 32, "links": 9, "level": 4}
    for option, value in OPTIONS.items():
        right, wrong = parse(WHOLE[name], tool, **{option: value}), parse(WHOLE[name], tool, **{option: other[option]})
        said = [finding for finding in right if finding.check == "not judged"]
        assert bool(said) == healthy(wrong), (option, right, wrong)


@pytest.mark.parametrize(("slug", "narrow"), [("t4", True), ("a10g", True), ("l40s", True), ("l4", False)])
def test_lanes_are_the_machines(slug, narrow):
    spec = written.BY[slug]
    text = f"index, name, pcie.link.width.current, pcie.link.width.max\n0, {spec.name}, 8, 16\n"
    assert healthy(parse(text)) == narrow, "nobody says what machine it is"
    assert healthy(parse(text, pcie_width=8))
    assert not healthy(parse(text, pcie_width=0)), "a server of the hall"


def test_unified_memory_is_not_told_and_a_sleeping_clock_is_zero():
    table = WHOLE["nvidia-smi-gh200-table"].replace("NVIDIA GH200 480GB", "NVIDIA GB10       ")
    table = re.sub(r"\d+MiB / \d+MiB", lambda match: "Not Supported".ljust(len(match.group())), table)
    table = re.sub(r"/ +\d+W \|", lambda match: "/" + "N/A |".rjust(len(match.group()) - 1), table)
    assert "Not Supported" in table and healthy(parse(table)), parse(table)
    assert not healthy(parse(table.replace("NVIDIA GB10 ", "NVIDIA H200 ")))
    assert healthy(parse(re.sub(r"(<(?:sm|graphics)_clock>)\d+", r"\g<1>0", WHOLE["nvidia-smi-b200-q-x"])))


def test_what_nobody_judges_refuses_only_for_a_lost_gpu():
    text = WHOLE["nvidia-smi-gb200-q-x"]
    assert "<power_smoothing>Insufficient Permissions<" in text and healthy(parse(text))
    assert not healthy(parse(text.replace("Insufficient Permissions", "Unknown Error", 1)))
    judged = re.sub(r"<remapped_row_failure>No", "<remapped_row_failure>Insufficient Permissions", text, count=1)
    assert "remapped_rows.failure" in failed(parse(judged))["gpu_health"]


def test_fdr10_is_a_rate():
    text = re.sub(r"Rate: \d+", "Rate: 40 (FDR10)", WHOLE["ibstat-v100"]).replace("MT4119", "MT4099")
    assert healthy(parse(text, "ibstat", rate_gb_s=40.0)) and not healthy(parse(text, "ibstat", rate_gb_s=56.0))
    assert not healthy(parse(text.replace("40 (FDR10)", "56 (FDR10)"), "ibstat"))


def test_a_link_below_the_declared_speed_is_a_finding():
    slow = WHOLE["ibstat-h100"].replace("Rate: 400", "Rate: 200")
    assert "runs at 200 Gb/s, declared are 400" in failed(parse(slow, "ibstat", rate_gb_s=400.0))["links"]
    ports = tuple(port._replace(rate="200 Gb/sec (4X HDR)") for port in GOOD.ports)
    whole = node("h100-sxm5", False, {})
    declared = whole._replace(
        settings=whole.settings._replace(fabric_rate_gb_s=400), observed=whole.observed._replace(ports=ports)
    )
    assert list(failed(evaluate(declared))) == ["fabric_rate"]
    assert join.passed(evaluate(whole))


@pytest.mark.parametrize(("factor", "operation"), [(0.5, "none"), (0.5, ""), (1.0, "none")])
def test_another_collective_is_not_judged_by_the_row_of_all_reduce(factor, operation):
    """Old versions do not name their program: the factor and the operation tell it."""
    text = written.nccl(written.BY["h100-sxm5"], 2**34, 400.0)
    text = re.sub(r"(?m)^# (nccl-tests version|Collective test).*\n", "", text)
    assert "T04 asks for" in failed(parse(text, "nccl-tests"))["bandwidth"], "an all_reduce of 400 GB/s is slow"

    def row(match):
        cells = match.group().split()
        cells[3] = operation
        if not operation:
            cells[4] = ""  # these have no column of the root
        for busbw in (7, 11):
            cells[busbw] = f"{float(cells[busbw]) * factor:.2f}"
        return "  ".join(cell for cell in cells if cell)

    text = re.sub(r"(?m)^ +\d+ +\d+ +float.*$", row, text)
    if not operation:
        text = text.replace("redop    root", "redop")
    average = re.search(r"Avg bus bandwidth +: (\S+)", text).group(1)
    text = text.replace(average, f"{float(average) * factor:.4f}")
    findings = parse(text, "nccl-tests")
    assert healthy(findings) and "not judged" in findings[-1].text, findings


@pytest.mark.parametrize("name", [name for name in WHOLE if "h100-sxm5" in name or name.startswith("ib")])
def test_every_tool_explains_its_lines(name):
    told = tools.explain(damage.tool_of(name), WHOLE[name], EXPECTED)
    assert told and any(meaning for _, meaning in told)
    assert len(told) <= len(WHOLE[name].splitlines()) or "csv" in name
