"""dcgmi diag of DCGM 3 and 4, as table and as JSON (-j).

A diagnostic is healthy if every test that belongs to its level has run and passed on every GPU, without a warning. Only
tests that need a package of their own (EUD) may be skipped.
"""

import json
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .expectation import Expectation, count_finding, driver_finding
from .findings import Finding, Unreadable, bad, judged
from .models import numbered_as_declared
from .reading import in_sequence, note, shown, whole

BORDER = re.compile(r"^[+|][-=+]+[+|]$")
SECTION = re.compile(r"^[+|]-----  ([A-Z][a-z]+)  -+[+][-]+[+|]$")
SECTIONS = ("Metadata", "Deployment", "Hardware", "Integration", "Stress")
CELLS = re.compile(r"^\| (.*?) *\| (.*?) *\|$")
OF_GPU = re.compile(r"^(GPU|CPU)(\d+): (Pass|Fail|Warn|Skip)$")
STATUS = re.compile(r"^(Pass|Fail|Warn|Skip)(?: - (All|GPUs?: [\d, ]+))?$")
STATUSES = ("Pass", "Fail", "Warn", "Skip")
JSON_STATUSES = {"PASS": "Pass", "FAIL": "Fail", "WARN": "Warn", "SKIP": "Skip", "SKIPPED": "Skip", "Skipped": "Skip"}
V3_DEPLOYMENT = (
    *("NVML Library", "CUDA Main Library", "Permissions and OS Blocks", "Persistence Mode"),
    *("Environment Variables", "Page Retirement/Row Remap", "Graphics Processes", "Inforom"),
)
V3_LIST = ("Denylist", "Blacklist")
SKIPPABLE = re.compile(r"eud|^pulse[ _]?test$", re.IGNORECASE)  # needs a package of its own
LOWEST_LEVEL = {  # test, lower case with underscores -> the lowest level of DCGM 3 and 4 that runs it
    "pcie": 2,
    "gpu_memory": 2,
    "memory": 2,
    "diagnostic": 3,
    "targeted_stress": 3,
    "targeted_power": 3,
    "memory_bandwidth": 3,
    "memtest": 4,
}
METADATA = {"DCGM Version": r"^\d+\.\d+\.\d+$", "Driver Version Detected": r"^\d{3}\.\d{2,3}(\.\d\d)?$"}
GPU_IDS = "GPU Device IDs Detected"


class Test(NamedTuple):
    """One test: its section, its status, GPU -> status where shown, and the warnings it gave."""

    section: str
    name: str
    status: str
    gpus: Dict[int, str]
    warnings: List[str]

    @property
    def key(self) -> str:
        """The name as DCGM 4 writes it."""
        return self.name.lower().replace(" ", "_")

    @property
    def may_be_missing(self) -> bool:
        """Whether it needs a package of its own."""
        return bool(SKIPPABLE.search(self.name))


class Diagnostic(NamedTuple):
    """A whole output. metadata: DCGM's version, driver and GPU ids, as far as they are shown."""

    tests: List[Test]
    sections: List[str]
    metadata: Dict[str, str]

    @property
    def modern(self) -> bool:
        """DCGM 4: one deployment test, and every test names its GPUs."""
        return "software" in [test.key for test in self.tests]


# --- the table


class _Table:
    """The rows that were read so far. `row`: what a row without a name goes on with: test, warning or info."""

    def __init__(self) -> None:
        self.section = ""
        self.sections: List[str] = []
        self.metadata: Dict[str, str] = {}
        self.tests: List[Test] = []
        self.head = False
        self.row = ""
        self.key = ""

    def read(self, line: str) -> None:
        """One line. Raises Unreadable for one that is not understood, or out of place."""
        title, cells = SECTION.match(line), CELLS.match(line)
        note(line, f"a row of {self.section or 'the head'}")
        if not line or BORDER.match(line) or line == "Successfully ran diagnostic for group.":
            return
        if title:
            self.section = title.group(1)
            if self.section not in SECTIONS or self.section in self.sections:
                raise Unreadable(f"dcgmi diag prints a section that is not understood: {shown(line)}")
            self.sections.append(self.section)
            self.row = self.key = ""
        elif not cells:
            raise Unreadable(f"dcgmi diag prints a line that is not understood: {shown(line)}")
        elif cells.groups() == ("Diagnostic", "Result"):
            self.head = True
        elif self.section == "Metadata":
            name, value = cells.groups()
            self.key = name or self.key
            if not self.key:
                raise Unreadable(f"dcgmi diag prints a line that is not understood: {shown(line)}")
            self.metadata[self.key] = value if name else self.metadata.get(self.key, "") + value
        else:
            self._result(cells.group(1), cells.group(2))

    def _result(self, name: str, value: str) -> None:
        if name in ("Warning", "Error", "Warnings") or re.match(r"^(Warning|Error): GPU\d+$", name):
            if not self.tests:
                raise Unreadable("a warning belongs to no test")
            self.tests[-1].warnings.append(value)
            self.row = "warning"
        elif name == "Info" or re.match(r"^Info: ", name):
            self.row = "info"
        elif name:
            self._test(name, value)
        elif self.row == "test" and self.tests and (OF_GPU.match(value) or STATUS.match(value)):
            self._more_of_test(self.tests[-1], value)
        elif self.row not in ("warning", "info"):  # a text that goes on in the next row
            raise Unreadable(f"a row of dcgmi diag is not understood: {shown(value)}")

    def _test(self, name: str, value: str) -> None:
        status = STATUS.match(value)
        if not status:
            raise Unreadable(f"the result of {name} is {value!r}, not Pass, Fail, Warn or Skip")
        if self.section == "" or any(test.name == name and test.section == self.section for test in self.tests):
            raise Unreadable(f"the test {name} stands twice, or in no section")
        self.tests.append(Test(self.section, name, status.group(1), {}, []))
        if status.group(2) and status.group(2) != "All":
            self.tests[-1].warnings.append(f"only {status.group(2)} {status.group(1).lower()}")
        self.row = "test"

    def _more_of_test(self, test: Test, value: str) -> None:
        gpu = OF_GPU.match(value)
        if not gpu:  # "Fail - GPU: 0" below "Pass - GPUs: 1, 2"
            test.warnings.append(value)
        elif gpu.group(1) == "GPU":
            if int(gpu.group(2)) in test.gpus:
                raise Unreadable(f"{test.name} names GPU {gpu.group(2)} twice")
            test.gpus[int(gpu.group(2))] = gpu.group(3)


def parse_table(lines: Sequence[str], expected: Expectation) -> List[Finding]:
    """Findings of the table, given as lines without an empty one at the end. Raises Unreadable."""
    if not BORDER.match(lines[-1]) or not lines[-1].startswith("+-"):
        raise Unreadable("the table of dcgmi diag is cut: its last line is no border")
    table = _Table()
    for line in lines:
        table.read(line)
    if not table.head or "Deployment" not in table.sections:
        raise Unreadable("the table of dcgmi diag has no head, or no deployment tests")
    return _judge(Diagnostic(table.tests, table.sections, table.metadata), expected)


# --- the JSON


def decoded(text: str) -> Dict[str, Any]:
    """The JSON object that dcgmi printed. Raises Unreadable, also for a key that stands twice."""

    def unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        if len({key for key, _ in pairs}) != len(pairs):
            raise Unreadable("a key of the JSON stands twice")
        return dict(pairs)

    try:
        data = json.loads(text, object_pairs_hook=unique)
    except Unreadable:
        raise
    except ValueError as error:
        raise Unreadable(f"the JSON is cut or damaged ({error})") from None
    except RecursionError:
        raise Unreadable("the JSON is nested too deeply") from None
    if not isinstance(data, dict):
        raise Unreadable("the JSON is no object")
    return data


def parse_json(data: Dict[str, Any], expected: Expectation) -> List[Finding]:
    """Findings of the decoded JSON of a diagnostic. Raises Unreadable."""
    bodies = [data.get(key) for key in ("DCGM Diagnostic", "DCGM GPU Diagnostic")]
    body = next((body for body in bodies if isinstance(body, dict)), None)
    if body is None:
        raise Unreadable("the JSON holds no diagnostic of DCGM")
    for key in ("runtime_error", "Warning", "error"):
        if body.get(key) or data.get(key):
            return [bad("dcgm", f"{key}: {shown(str(body.get(key) or data.get(key)))}")]
    categories = body.get("test_categories")
    if not isinstance(categories, list) or not categories:
        raise Unreadable("the JSON lists no test")
    tests: List[Test] = []
    sections: List[str] = []
    for category in categories:
        section = category.get("category") if isinstance(category, dict) else None
        if section not in (*SECTIONS[1:], "Custom") or not isinstance(category.get("tests"), list):
            raise Unreadable(f"a category of the JSON is not understood: {shown(str(category)[:80])}")
        sections.append(section)
        if not category["tests"] and section != "Stress":
            raise Unreadable(f"the category {section} lists no test")
        tests += [_json_test(section, test) for test in category["tests"]]
    if len({(test.section, test.name) for test in tests}) != len(tests):
        raise Unreadable("a test stands twice")
    return _judge(Diagnostic(tests, sections, _json_metadata(data, body)), expected)


def _json_test(section: str, test: Any) -> Test:
    name = test.get("name") if isinstance(test, dict) else None
    note(f'"name": {json.dumps(name)},', f"a test of {section}")
    if not isinstance(name, str) or not isinstance(test.get("results"), list) or not test["results"]:
        raise Unreadable(f"a test of the JSON is not understood: {shown(str(test)[:80])}")
    gpus: Dict[int, str] = {}
    warnings: List[str] = []
    worst = "Pass"
    for result in test["results"]:
        status = _json_status(result.get("status") if isinstance(result, dict) else None, name)
        numbers = result.get("entity_id", result.get("gpu_id", result.get("gpu_ids")))
        if result.get("entity_group", "GPU") == "GPU" and numbers is not None:
            gpus.update({whole(number.strip(), f"a GPU of {name}"): status for number in str(numbers).split(",")})
        warnings += [str(warning) for warning in result.get("warnings") or []]
        worst = status if status in ("Fail", "Warn") or (worst == "Pass" and status == "Skip") else worst
        info = json.dumps(result.get("info", ""))
        if re.search(r"\bdown\b|unable|failed|error detected", info, re.IGNORECASE):
            warnings.append(info[:120])
    summary = test.get("test_summary", {})
    stated = summary.get("status") if isinstance(summary, dict) else None
    if "test_summary" in test and (stated not in STATUSES or (stated == "Pass") != (worst == "Pass")):
        raise Unreadable(f"the summary of {name} is {stated!r}, its results are {worst}")
    warnings += [str(warning) for warning in (summary.get("warnings") or [])] if isinstance(summary, dict) else []
    told_by_gpu = section != "Deployment" or name == "software"  # DCGM 3 runs these once for all
    return Test(section, name, worst, gpus if told_by_gpu else {}, warnings)


def _json_status(stated: Any, name: str) -> str:
    status = JSON_STATUSES.get(stated, stated) if isinstance(stated, str) else stated
    if status not in STATUSES:
        raise Unreadable(f"a result of {name} is {status!r}, not Pass, Fail, Warn or Skip")
    return str(status)


def _json_metadata(data: Dict[str, Any], body: Dict[str, Any]) -> Dict[str, str]:
    metadata = data.get("metadata")
    told = dict(body, **metadata) if isinstance(metadata, dict) else body
    version = told.get("DCGM Version", told.get("version"))
    driver = told.get("Driver Version Detected", told.get("Driver Version", told.get("driver_version_detected")))
    ids = told.get("GPU Device IDs", told.get(GPU_IDS))
    gpus = _entities_of_gpus(data.get("entity_groups"))
    if gpus is not None:
        ids = [entity.get("device_id", "") for entity in gpus] if ids is None else ids
        in_sequence([whole(str(entity.get("entity_id")), "the id of a GPU") for entity in gpus], "GPU")
    if isinstance(ids, list):
        ids = ",".join(str(device_id) for device_id in ids)
    if version is None and driver is None and ids is None:
        raise Unreadable("the JSON names no version, driver and GPUs")
    return {
        "DCGM Version": str(version or ""),
        "Driver Version Detected": str(driver or ""),
        GPU_IDS: str(ids or ""),
    }


def _entities_of_gpus(groups: Any) -> Optional[List[Dict[str, Any]]]:
    """The GPUs that entity_groups lists; None where there is no such list."""
    if not isinstance(groups, list):
        return None
    of_gpus = [group for group in groups if group.get("entity_group") == "GPU"]
    return [entity for group in of_gpus for entity in group.get("entities") or []]


# --- the judgement of both


def _judge(diagnostic: Diagnostic, expected: Expectation) -> List[Finding]:
    tests = diagnostic.tests
    if not tests:
        raise Unreadable("no test is listed")
    findings: List[Finding] = []
    problems: List[str] = []
    count: Optional[int] = None
    if "Metadata" in diagnostic.sections or diagnostic.metadata:
        ids = _device_ids(diagnostic.metadata)
        if len(set(ids)) > 1:
            problems.append(f"the GPUs differ: {', '.join(sorted(set(ids)))}")
        count = len(ids)
        driver = diagnostic.metadata["Driver Version Detected"]
        findings += [count_finding(count, expected), driver_finding(driver, expected)]
        findings += numbered_as_declared(ids, expected)
    _refuse_missing_deployment(diagnostic)
    level = _level(diagnostic)
    if expected.level is not None and level < expected.level:
        problems.append(f"level {level} has run, declared is {expected.level}")
    for test in tests:
        problems += _problems_of(test)
    problems += _uneven(diagnostic, count)
    told = [len(test.gpus) for test in tests if test.gpus]
    if count is None and told:
        findings.append(count_finding(max(told), expected))
    return findings + judged("dcgm", problems, f"level {level}: {len(tests)} tests, each that ran has passed")


def _device_ids(metadata: Dict[str, str]) -> List[str]:
    """The PCI ids of the GPUs. Raises Unreadable for them, and for versions that are none."""
    for key, form in METADATA.items():
        if not re.match(form, metadata.get(key, "")):
            raise Unreadable(f"{key} is {metadata.get(key, 'not stated')!r}")
    ids = re.sub(r"\s", "", metadata.get(GPU_IDS, ""))
    if not re.match(r"^[0-9a-f]{4}(,[0-9a-f]{4})*$", ids):
        raise Unreadable(f"the GPU device ids are {ids!r}")
    return ids.split(",")


def _refuse_missing_deployment(diagnostic: Diagnostic) -> None:
    if diagnostic.modern:
        return
    names = [test.name for test in diagnostic.tests]
    lacking = [name for name in V3_DEPLOYMENT if name not in names]
    if not any(name in names for name in V3_LIST):
        lacking.append(V3_LIST[0])
    if lacking:
        raise Unreadable(f"the deployment tests are not whole: {', '.join(lacking)} did not run")


def _level(diagnostic: Diagnostic) -> int:
    """The level that has run, by its tests. Raises Unreadable if others of this level have not."""
    ran = [
        LOWEST_LEVEL[test.key]
        for test in diagnostic.tests
        if test.key in LOWEST_LEVEL and not (test.status == "Skip" and test.may_be_missing)
    ]
    level = max([*ran, 2 if {"Integration", "Hardware"} & set(diagnostic.sections) else 1])
    needed = ["pcie", "memory" if diagnostic.modern else "gpu_memory"] if level >= 2 else []
    needed += ["diagnostic", "targeted_stress", "targeted_power"] if level >= 3 else []
    lacking = [key for key in needed if key not in [test.key for test in diagnostic.tests]]
    if lacking:
        raise Unreadable(f"tests of level {level} are missing: {', '.join(lacking)}")
    return level


def _problems_of(test: Test) -> List[str]:
    if test.may_be_missing and test.status == "Skip" and not test.warnings:
        return []
    failed = ", ".join(f"GPU {gpu}: {status}" for gpu, status in sorted(test.gpus.items()) if status != "Pass")
    warnings = [f"{test.name} warns: {warning}" for warning in test.warnings[:1]]
    if test.status != "Pass":
        return [f"{test.name} did not pass ({test.status}{': ' + failed if failed else ''})", *warnings]
    return [f"{test.name} did not pass on {failed}", *warnings] if failed else warnings


def _uneven(diagnostic: Diagnostic, count: Optional[int]) -> List[str]:
    """What the tests say differently of the number of GPUs. Raises Unreadable for a GPU that is missing in between."""
    counts = {len(test.gpus) for test in diagnostic.tests if test.gpus}
    problems: List[str] = []
    for test in diagnostic.tests:
        if test.gpus:
            in_sequence(sorted(test.gpus), f"GPU of {test.name}:")
        elif diagnostic.modern and counts and not test.may_be_missing and test.name != "context_create":
            problems.append(f"{test.name} names no GPU")
    if counts and (len(counts) > 1 or (count is not None and counts != {count})):
        named = sorted(counts | ({count} if count else set()))
        problems.append(f"the tests name different numbers of GPUs: {', '.join(str(number) for number in named)}")
    return problems
