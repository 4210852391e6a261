"""dcgmi of DCGM 3 and 4: `diag` as table and as JSON (-j), `discovery -l`, `health -c`, `nvlink -s`.

A diagnostic is healthy if every test that belongs to its level has run and passed on every GPU, without a warning. Only
tests that need a package of their own (EUD) may be skipped.
"""

import json
import re
from typing import Any, Dict, List, NamedTuple, Tuple

from .gpus import NAME, UUID
from .report import (
    ERROR_TEXT,
    Expectation,
    Finding,
    Unreadable,
    bad,
    clean,
    count_finding,
    driver_finding,
    good,
    in_sequence,
    shown,
    whole,
)

BORDER = re.compile(r"^[+|][-=+]+[+|]$")
SECTION = re.compile(r"^[+|]-----  ([A-Z][a-z]+)  -+[+][-]+[+|]$")
CELLS = re.compile(r"^\| (.*?) *\| (.*?) *\|$")
V3_DEPLOYMENT = (
    "NVML Library",
    "CUDA Main Library",
    "Permissions and OS Blocks",
    "Persistence Mode",
    "Environment Variables",
    "Page Retirement/Row Remap",
    "Graphics Processes",
    "Inforom",
)
V3_LIST = ("Denylist", "Blacklist")
SKIPPABLE = re.compile(r"eud|^pulse[ _]?test$", re.IGNORECASE)  # needs a package of its own
WHEN = {  # test, lower case with underscores -> (lowest level of DCGM 3 and 4 that runs it, section)
    "pcie": (2, "Integration"),
    "gpu_memory": (2, "Hardware"),
    "memory": (2, "Hardware"),
    "diagnostic": (3, "Hardware"),
    "targeted_stress": (3, "Stress"),
    "targeted_power": (3, "Stress"),
    "memory_bandwidth": (3, "Stress"),
    "memtest": (4, "Stress"),
}
STATUSES = ("Pass", "Fail", "Warn", "Skip")


class Test(NamedTuple):
    """One test: its section, its status, GPU -> status where told, and the warnings it gave."""

    section: str
    name: str
    status: str
    gpus: Dict[int, str]
    warnings: List[str]


def parse(text: str, expected: Expectation) -> List[Finding]:
    lines = [line.rstrip() for line in clean(text)]
    while lines and not lines[-1]:
        lines.pop()
    first = next(line for line in lines if line)
    if re.match(r"^Successfully ran diagnostic for group\.$", first) and "{" in text[:200]:
        text = text.split("\n", text[: text.index("{")].count("\n"))[-1]
        return _json(text, expected)
    if first.startswith("{"):
        return _json(text, expected)
    if re.match(r"^\d+ GPUs? found\.", first):
        return _discovery(lines, expected)
    if any("NvLink Link Status" in line for line in lines[:3]):
        return _nvlink(lines, expected)
    if any("Health Monitor Report" in line for line in lines[:4]):
        return _health(lines)
    return _diag(lines, expected)


def _diag(lines: List[str], expected: Expectation) -> List[Finding]:
    if not BORDER.match(lines[-1]) or not lines[-1].startswith("+-"):
        raise Unreadable("the table of dcgmi diag is cut: its last line is no border")
    section, sections, metadata, tests = "", [], {}, []  # type: ignore
    head = False
    last = ["", ""]  # what a continued cell belongs to: kind, key
    for line in lines:
        title, cells = SECTION.match(line), CELLS.match(line)
        if not line or BORDER.match(line) or line == "Successfully ran diagnostic for group.":
            continue
        if title:
            section = title.group(1)
            if section not in ("Metadata", "Deployment", "Hardware", "Integration", "Stress") or section in sections:
                raise Unreadable(f"dcgmi diag prints a section that is not understood: {shown(line)}")
            sections.append(section)
            last = ["", ""]
        elif not cells:
            raise Unreadable(f"dcgmi diag prints a line that is not understood: {shown(line)}")
        elif cells.group(1) == "Diagnostic" and cells.group(2) == "Result":
            head = True
        elif section == "Metadata":
            name, value = cells.groups()
            key = name or last[1]
            if not key:
                raise Unreadable(f"dcgmi diag prints a line that is not understood: {shown(line)}")
            metadata[key] = metadata.get(key, "") + value if not name else value
            last = ["metadata", key]
        else:
            last = _row(section, cells.group(1), cells.group(2), tests, last)
    if not head or "Deployment" not in sections:
        raise Unreadable("the table of dcgmi diag has no head, or no deployment tests")
    return _judge(tests, sections, metadata, expected)


def _row(section: str, name: str, value: str, tests: List[Test], last: List[str]) -> List[str]:
    gpu = re.match(r"^(GPU|CPU)(\d+): (Pass|Fail|Warn|Skip)$", value)
    status = re.match(r"^(Pass|Fail|Warn|Skip)(?: - (All|GPUs?: [\d, ]+))?$", value)
    if name in ("Warning", "Error", "Warnings") or re.match(r"^(Warning|Error): GPU\d+$", name):
        if not tests:
            raise Unreadable("a warning belongs to no test")
        tests[-1].warnings.append(value)
        return ["warning", ""]
    if name == "Info" or re.match(r"^Info: ", name):
        return ["info", ""]
    if not name:
        if gpu and tests and last[0] == "test":
            if int(gpu.group(2)) in tests[-1].gpus and gpu.group(1) == "GPU":
                raise Unreadable(f"{tests[-1].name} names GPU {gpu.group(2)} twice")
            if gpu.group(1) == "GPU":
                tests[-1].gpus[int(gpu.group(2))] = gpu.group(3)
            return last
        if last[0] in ("warning", "info"):  # a text that goes on in the next row
            return last
        if tests and status and last[0] == "test":  # "Fail - GPU: 0" below "Pass - GPUs: 1, 2"
            tests[-1].warnings.append(value)
            return last
        raise Unreadable(f"a row of dcgmi diag is not understood: {shown(value)}")
    if not status:
        raise Unreadable(f"the result of {name} is {value!r}, not Pass, Fail, Warn or Skip")
    if section == "" or any(test.name == name and test.section == section for test in tests):
        raise Unreadable(f"the test {name} stands twice, or in no section")
    tests.append(Test(section, name, status.group(1), {}, []))
    if status.group(2) and status.group(2) != "All":
        tests[-1].warnings.append(f"only {status.group(2)} {status.group(1).lower()}")
    return ["test", name]


def _judge(tests: List[Test], sections: List[str], metadata: Dict[str, str], expected: Expectation) -> List[Finding]:
    if not tests:
        raise Unreadable("no test is listed")
    findings, problems = [], []
    count = None  # type: Optional[int]
    if "Metadata" in sections or metadata:
        for key, form in (
            ("DCGM Version", r"^\d+\.\d+\.\d+$"),
            ("Driver Version Detected", r"^\d{3}\.\d{2,3}(\.\d\d)?$"),
        ):
            if not re.match(form, metadata.get(key, "")):
                raise Unreadable(f"{key} is {metadata.get(key, 'not stated')!r}")
        ids = re.sub(r"\s", "", metadata.get("GPU Device IDs Detected", ""))
        if not re.match(r"^[0-9a-f]{4}(,[0-9a-f]{4})*$", ids):
            raise Unreadable(f"the GPU device ids are {ids!r}")
        if len(set(ids.split(","))) > 1:
            problems.append(f"the GPUs differ: {', '.join(sorted(set(ids.split(','))))}")
        count = len(ids.split(","))
        findings += [count_finding(count, expected), driver_finding(metadata["Driver Version Detected"], expected)]
    names = [test.name.lower().replace(" ", "_") for test in tests]
    modern = "software" in names
    if not modern:
        lacking = [name for name in V3_DEPLOYMENT if name not in [test.name for test in tests]]
        if not any(name in [test.name for test in tests] for name in V3_LIST):
            lacking.append(V3_LIST[0])
        if lacking:
            raise Unreadable(f"the deployment tests are not whole: {', '.join(lacking)} did not run")
    ran = {
        WHEN[name][0]
        for name, test in zip(names, tests)
        if name in WHEN and not (test.status == "Skip" and SKIPPABLE.search(test.name))
    }
    level = max(ran | {1})
    other = {"Integration", "Hardware"} & set(sections)
    level = max(level, 2 if other else 1)
    if expected.level is not None and level < expected.level:
        problems.append(f"level {level} has run, declared is {expected.level}")
    memory = "memory" if modern else "gpu_memory"
    needed = {1: [], 2: ["pcie", memory], 3: ["pcie", memory, "diagnostic", "targeted_stress", "targeted_power"]}  # type: Dict[int, List[str]]
    lacking = [name for name in needed[min(level, 3)] if name not in names]
    if lacking:
        raise Unreadable(f"tests of level {level} are missing: {', '.join(lacking)}")
    for test in tests:
        bad_gpus = [f"GPU {gpu}: {status}" for gpu, status in sorted(test.gpus.items()) if status != "Pass"]
        if SKIPPABLE.search(test.name) and test.status == "Skip" and not test.warnings:
            continue
        if test.status != "Pass":
            problems.append(f"{test.name} did not pass ({test.status}{': ' + ', '.join(bad_gpus) if bad_gpus else ''})")
        elif bad_gpus:
            problems.append(f"{test.name} did not pass on {', '.join(bad_gpus)}")
        problems += [f"{test.name} warns: {warning}" for warning in test.warnings[:1]]
    counts = {len(test.gpus) for test in tests if test.gpus}
    for test in tests:
        if test.gpus:
            in_sequence(sorted(test.gpus), f"GPU of {test.name}:")
        elif modern and counts and not SKIPPABLE.search(test.name) and test.name != "context_create":
            problems.append(f"{test.name} names no GPU")
    if counts and (len(counts) > 1 or (count is not None and counts != {count})):
        problems.append(
            f"the tests name different numbers of GPUs: "
            f"{', '.join(str(each) for each in sorted(counts | ({count} if count else set())))}"
        )
    if count is None and counts:
        findings.append(count_finding(max(counts), expected))
    findings += [bad("dcgm", problem) for problem in problems] or [
        good("dcgm", f"level {level}: {len(tests)} tests, each that ran has passed")
    ]
    return findings


def _json(text: str, expected: Expectation) -> List[Finding]:
    def unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise Unreadable("a key of the JSON stands twice")
        return dict(pairs)

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except ValueError as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"the JSON is cut or damaged ({error})") from None
    except RecursionError:
        raise Unreadable("the JSON is nested too deeply") from None
    if not isinstance(data, dict):
        raise Unreadable("the JSON is no object")
    if "Overall Health" in str(data.get("body", "")) or "Health Monitor Report" in str(data.get("header", "")):
        return _health_json(data)
    body = next(
        (data[key] for key in ("DCGM Diagnostic", "DCGM GPU Diagnostic") if isinstance(data.get(key), dict)), None
    )
    if body is None:
        raise Unreadable("the JSON holds no diagnostic of DCGM")
    for key in ("runtime_error", "Warning", "error"):
        if body.get(key) or data.get(key):
            return [bad("dcgm", f"{key}: {shown(str(body.get(key) or data.get(key)))}")]
    categories = body.get("test_categories")
    if not isinstance(categories, list) or not categories:
        raise Unreadable("the JSON lists no test")
    tests, sections = [], []  # type: Tuple[List[Test], List[str]]
    for category in categories:
        section = category.get("category") if isinstance(category, dict) else None
        if section not in ("Deployment", "Hardware", "Integration", "Stress", "Custom") or not isinstance(
            category.get("tests"), list
        ):
            raise Unreadable(f"a category of the JSON is not understood: {shown(str(category)[:80])}")
        sections.append(section)
        if not category["tests"] and section != "Stress":
            raise Unreadable(f"the category {section} lists no test")
        tests += [_json_test(section, test) for test in category["tests"]]
    if len({(test.section, test.name) for test in tests}) != len(tests):
        raise Unreadable("a test stands twice")
    return _judge(tests, sections, _json_metadata(data, body), expected)


def _json_test(section: str, test: Any) -> Test:
    if (
        not isinstance(test, dict)
        or not isinstance(test.get("name"), str)
        or not isinstance(test.get("results"), list)
        or not test["results"]
    ):
        raise Unreadable(f"a test of the JSON is not understood: {shown(str(test)[:80])}")
    gpus, warnings, worst = {}, [], "Pass"  # type: ignore
    for result in test["results"]:
        status = result.get("status") if isinstance(result, dict) else None
        status = {
            "PASS": "Pass",
            "FAIL": "Fail",
            "WARN": "Warn",
            "SKIP": "Skip",
            "SKIPPED": "Skip",
            "Skipped": "Skip",
        }.get(status, status)
        if status not in STATUSES:
            raise Unreadable(f"a result of {test['name']} is {status!r}, not Pass, Fail, Warn or Skip")
        group = result.get("entity_group", "GPU")
        found = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids")))
        if group == "GPU" and found is not None:
            for each in str(found).split(","):
                gpus[whole(each.strip(), f"a GPU of {test['name']}")] = status
        warnings += [str(warning) for warning in result.get("warnings") or []]
        worst = status if STATUSES.index(status) in (1, 2) or (worst == "Pass" and status == "Skip") else worst
        info = json.dumps(result.get("info", ""))
        if re.search(r"\bdown\b|unable|failed|error detected", info, re.IGNORECASE):
            warnings.append(info[:120])
    summary = test.get("test_summary", {})
    stated = summary.get("status") if isinstance(summary, dict) else None
    if "test_summary" in test and (stated not in STATUSES or (stated == "Pass") != (worst == "Pass")):
        raise Unreadable(f"the summary of {test['name']} is {stated!r}, its results are {worst}")
    warnings += [str(warning) for warning in (summary.get("warnings") or [])] if isinstance(summary, dict) else []
    if section == "Deployment" and test["name"] != "software":
        gpus = {}  # DCGM 3 runs these once for all
    return Test(section, test["name"], worst, gpus, warnings)


def _json_metadata(data: Dict[str, Any], body: Dict[str, Any]) -> Dict[str, str]:
    meta = data.get("metadata") if isinstance(data.get("metadata"), dict) else {}
    both = dict(body)
    both.update(meta)  # type: ignore[arg-type]
    version = both.get("DCGM Version", both.get("version"))
    driver = both.get("Driver Version Detected", both.get("Driver Version", both.get("driver_version_detected")))
    ids = both.get("GPU Device IDs", both.get("GPU Device IDs Detected"))
    groups = data.get("entity_groups")
    if ids is None and isinstance(groups, list):
        ids = [
            entity.get("device_id", "")
            for group in groups
            if isinstance(group, dict) and group.get("entity_group") == "GPU"
            for entity in group.get("entities") or []
            if isinstance(entity, dict)
        ]
    if isinstance(groups, list):
        in_sequence(
            [
                whole(str(entity.get("entity_id")), "the id of a GPU")
                for group in groups
                if group.get("entity_group") == "GPU"
                for entity in group.get("entities") or []
            ],
            "GPU",
        )
    if isinstance(ids, list):
        ids = ",".join(str(each) for each in ids)
    if version is None and driver is None and ids is None:
        raise Unreadable("the JSON names no version, driver and GPUs")
    return {
        "DCGM Version": str(version or ""),
        "Driver Version Detected": str(driver or ""),
        "GPU Device IDs Detected": str(ids or ""),
    }


def _health_json(data: Dict[str, Any]) -> List[Finding]:
    overall = data.get("body", {}).get("Overall Health", {}) if isinstance(data.get("body"), dict) else {}
    value = overall.get("value") if isinstance(overall, dict) else None
    if value not in ("Healthy", "Warning", "Failure"):
        raise Unreadable(f"the overall health is {value!r}")
    return [Finding("dcgm_health", value == "Healthy" and not overall.get("children"), f"DCGM's watches say {value}")]


def _health(lines: List[str]) -> List[Finding]:
    if not BORDER.match(lines[-1]):
        raise Unreadable("the health report is cut: its last line is no border")
    overall, others = [], []
    for line in lines:
        match = re.match(r"^\|\s*Overall Health\s*[:|]\s*(.*?)\s*\|$", line)
        if match:
            overall.append(match.group(1))
        elif BORDER.match(line) or not line or re.match(r"^\|? ?Health Monitor Report *\|?$", line):
            continue
        else:
            others.append(line)
    if len(overall) != 1 or overall[0] not in ("Healthy", "Warning", "Failure"):
        raise Unreadable(f"the overall health is {', '.join(overall) or 'not stated'}")
    wrong = [
        line for line in others if not re.match(r"^\|[^|]*\|?\s*(Healthy)?\s*\|$", line) or ERROR_TEXT.search(line)
    ]
    if overall[0] != "Healthy" or wrong:
        return [bad("dcgm_health", f"DCGM's watches say {overall[0]}{': ' + shown(wrong[0]) if wrong else ''}")]
    return [good("dcgm_health", "DCGM's watches say Healthy")]


def _discovery(lines: List[str], expected: Expectation) -> List[Finding]:
    if not BORDER.match(lines[-1]):
        raise Unreadable("the list of dcgmi discovery is cut: its last line is no border")
    kind, wanted, gpus, others = "", {}, [], {}  # type: ignore
    borders = {}  # type: Dict[str, int]
    uuids = []
    for line in lines:
        count = re.match(r"^(\d+) (GPU|NvSwitch|Switch|ConnectX|CPU|CPU Core)(?:s|es)? found\.$", line)
        if count:
            kind = count.group(2)
            wanted[kind] = int(count.group(1))
            others.setdefault(kind, 0)
            borders[kind] = 0
        elif kind and BORDER.match(line):
            borders[kind] += 1
        elif not line or re.match(r"^\| (GPU ID|Switch ID|ConnectX|CPU ID|[A-Z]\w+ ID)\s*\|(.*\|)?$", line):
            continue
        elif kind == "GPU":
            match = re.match(r"^\| (\d*) *\| (Name|PCI Bus ID|Device UUID): (.*?) *\|$", line)
            if not match:
                raise Unreadable(f"dcgmi discovery prints a line that is not understood: {shown(line)}")
            if match.group(2) == "Name":
                gpus.append({"id": whole(match.group(1), "the id of a GPU")})
            if not gpus or match.group(2) in gpus[-1]:
                raise Unreadable(f"dcgmi discovery prints a line out of place: {shown(line)}")
            gpus[-1][match.group(2)] = match.group(3)
        elif re.match(r"^\| \S.*\|$", line) and kind and not ERROR_TEXT.search(line):
            others[kind] += 1 if re.match(r"^\| \d+ ", line) else 0
        else:
            raise Unreadable(f"dcgmi discovery prints a line that is not understood: {shown(line)}")
    in_sequence([gpu["id"] for gpu in gpus], "GPU")
    if len(gpus) != wanted.get("GPU"):
        raise Unreadable(f"{len(gpus)} of {wanted.get('GPU')} GPUs are listed")
    for gpu in gpus:
        if not NAME.match(gpu["Name"]) or not UUID.match(gpu.get("Device UUID", "")):
            raise Unreadable(f"GPU {gpu['id']} is not understood")
        if not re.match(r"^[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.0$", gpu.get("PCI Bus ID", "")):
            raise Unreadable(f"the bus id of GPU {gpu['id']} is {gpu.get('PCI Bus ID', 'not stated')!r}")
        uuids.append(gpu["Device UUID"])
    if len(set(uuids)) != len(uuids):
        raise Unreadable("one GPU is listed twice")
    if not {"NvSwitch", "Switch"} & set(wanted) or min(borders.values()) < 2:
        raise Unreadable("the list of dcgmi discovery is cut: a table is missing")
    for kind in ("NvSwitch", "Switch"):
        if kind in wanted and others[kind] != wanted[kind]:
            raise Unreadable(f"{others[kind]} of {wanted[kind]} NVSwitches are listed")
    findings = [count_finding(len(gpus), expected)]
    if len({gpu["Name"] for gpu in gpus}) > 1:
        findings.append(bad("gpu_model", f"the GPUs differ: {', '.join(sorted({gpu['Name'] for gpu in gpus}))}"))
    return findings


def _nvlink(lines: List[str], expected: Expectation) -> List[Finding]:
    gpus, problems, part = {}, [], ""  # type: ignore
    current, keyed = None, False
    for line in lines:
        who = re.match(r"^\s+(gpuId|physicalId|nvSwitchId) (\d+):$", line)
        if (
            not line
            or BORDER.match(line)
            or re.match(r"^\|\s+NvLink Link Status\s+\|$", line)
            or re.match(r"^\s+No NvSwitches found\.$", line)
        ):
            continue
        if re.match(r"^(GPUs|NvSwitches):$", line):
            part = line[:-1]
        elif who:
            current = (part, int(who.group(2)))
            gpus[current] = []
        elif re.match(r"^\s+[UDX_]( [UDX_])*$", line) and current:
            gpus[current] += line.split()
        elif line.startswith("Key: Up=U"):
            keyed = True
        else:
            raise Unreadable(f"dcgmi nvlink prints a line that is not understood: {shown(line)}")
    found = [number for kind, number in gpus if kind == "GPUs"]
    if not keyed or not found or not all(gpus.values()):
        raise Unreadable("the list of NVLinks is cut")
    in_sequence(found, "GPU")
    for (kind, number), states in gpus.items():
        down = [state for state in states if state in "DX"]
        if down or "U" not in states:
            problems.append(f"{len(down) or 'all'} links of {kind[:-1]} {number} are not up")
    if len({len(states) for (kind, _), states in gpus.items() if kind == "GPUs"}) > 1:
        problems.append("the GPUs have different numbers of links")
    return [count_finding(len(found), expected)] + (
        [bad("nvlink", problem) for problem in problems] or [good("nvlink", "all links are up")]
    )
