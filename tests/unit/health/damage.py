"""Damages to the healthy samples: each is one plausible way in which an output lies, ends too early or reports a
fault.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ironburst.health.tools import TOOLS

FOLDER = Path(__file__).parent / "healthy"


class Damage(NamedTuple):
    """A damaged output. `declared`: options that the damage needs to be seen (a list cut between two lines looks like a
    smaller node).
    """

    sample: str
    tool: str
    what: str
    text: str
    declared: dict


def tool_of(name: str) -> str | None:
    return next((tool for tool in TOOLS if name.startswith(tool + "-")), None)


def samples() -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(FOLDER.iterdir()) if tool_of(path.name)}


# Texts of the tools that are too long for a row of CHANGES
LAST_PROCESSES = (
    r"(?m)^ +Processes +: None\n(?![\s\S]*Processes)|"
    r"\t\t<processes>\n\t\t</processes>\n(?![\s\S]*<processes>)"
)
DCGM_WARNING = '{"warning": "NvLink is down", "error_id": 1}'
FM_MISMATCH = "fabric manager NVIDIA GPU driver interface version 580.95.05 don't match with driver version 575.57.08."
FM_NO_SWITCH = (
    "request to query NVSwitch device information failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]"
)
FM_FAILED = "nvidia-fabricmanager.service: Failed with result 'exit-code'."
FM_FATAL = "detected NVSwitch fatal error 20034 on NVSwitch pci bus id 00000000:86:00.0 port 61\n"
IB_PANIC = "ibpanic: [1323] main: stat of IB device 'mlx5_8' failed: No such file or directory\n"
NCCL_WARN = "node01:81234:81301 [0] NCCL WARN Call to ibv_modify_qp failed\n"
NCCL_FAILURE = "node01: Test NCCL failure common.cu:958 'unhandled system error'\n"
# (pattern, replacement, what): the first place where it fits, or the last, is changed
CHANGES: dict[str, tuple[tuple[str, str, str], ...]] = {
    "nvidia-smi": (
        (r"\| +0 \|\n", "|                    3 |\n", "uncorrected ECC errors"),
        (r"( )0 \|\n", r"\1ERR! |\n", "ECC is ERR!"),
        (r"\d\dC ", "96C ", "too hot"),
        (r"\d\dC ", "ERR! ", "temperature is ERR!"),
        (r"0MiB /", "N/A /", "memory N/A"),
        (r"(\d)MiB \|", r"\1MB |", "wrong unit of memory"),
        (r"\bP[08]\b(?=.*W /)", "Unknown Error", "unknown performance state"),
        (r"Disabled \|", "Enabled* |", "MIG pending"),
        (r"0%      Default", "N/A      Default", "no utilisation"),
        (r"\|\s+No running processes found\s+\|\n", "", "process list cut"),
        (r"(?m)^\|   1  .*\n", "", "a GPU's first row is gone"),
        (r"Driver Version: \S+|KMD Version: \S+", "Driver Version: N/A", "no driver version"),
        (r"(DRAM Uncorrectable +: )0|(<dram_uncorrectable>)0", r"\g<1>\g<2>2", "uncorrected ECC errors"),
        (r"(DRAM Uncorrectable +: )0|(<dram_uncorrectable>)0", r"\g<1>\g<2>N/A", "ECC errors N/A"),
        (r"(Pending +: |<remapped_row_pending>)No", r"\1Yes", "row remap pending"),
        (r"(Remapping Failure Occurred +: |<remapped_row_failure>)No", r"\1Yes", "row remap failed"),
        (r"(Uncorrectable Error +: |<remapped_row_unc>)0", r"\g<1>1", "a row was remapped"),
        (r"(Pending Page Blacklist +: |<pending_retirement>)No", r"\1Yes", "page retirement pending"),
        (r"(Double Bit ECC +: )0", r"\g<1>4", "pages retired"),
        (r"(Link Width\n +Max +: 16x\n +Current +: )16x|(<current_link_width>)16x", r"\g<1>\g<2>4x", "PCIe at x4"),
        (r"(HW Slowdown +: |_hw_slowdown>)Not Active", r"\1Active", "hardware slowdown"),
        (r"(HW Power Brake Slowdown +: |power_brake_slowdown>)Not Active", r"\1Active", "power brake"),
        (r"(HW Thermal Slowdown +: |hw_thermal_slowdown>)Not Active", r"\1Active", "thermal slowdown"),
        (r"(GPU Recovery Action +: |<gpu_recovery_action>)None", r"\1Reset", "reset required"),
        (r"(Reset Required +: |<reset_required>)No\b", r"\1Yes", "reset required"),
        (r"(GPU Current Temp +: |<gpu_temp>)\d+ C", r"\g<1>95 C", "too hot"),
        (r"(GPU Current Temp +: |<gpu_temp>)\d+ C", r"\1N/A", "temperature N/A"),
        (r"(GPU T.Limit Temp +: |<gpu_temp_tlimit>)\d+ C", r"\g<1>-1 C", "beyond the temperature limit"),
        (r"(Attached GPUs +: |<attached_gpus>)\d+", r"\g<1>9", "GPUs missing"),
        (r"(State +: |<state>)Completed", r"\1In Progress", "fabric in progress"),
        (r"(Status +: |<status>)Success", r"\1Failure", "fabric failed"),
        (r"(Total +: |<total>)(\d+) MiB", r"\1\2 GB", "wrong unit"),
        (r"(Total +: |<total>)\d+ MiB", r"\g<1>0 MiB", "no memory"),
        (r"(GPU UUID +: |<uuid>)GPU-\w+", r"\1Unknown Error", "no UUID"),
        (r"(Current +: |<current_ecc>)Enabled", r"\1Disabled", "ECC goes on only at the next reset"),
        (r"(Performance State +: |<performance_state>)P\d", r"\1Unknown Error", "performance state unknown"),
        (LAST_PROCESSES, "", "process list gone"),
        (r"(?m)^ +Link Width\n.*\n.*\n|\t+<link_widths>\n.*\n.*\n\t+</link_widths>\n", "", "link width not told"),
        (r"</nvidia_smi_log>\n", "", "end tag gone"),
        (r"<gpu id=", "<gp id=", "tag damaged"),
        (r"GPU 1: .*\n(?=(\t.*\n)*GPU 2)", "", "a GPU is gone from the sequence"),
        (r"UUID: GPU-\w+", "UUID: ", "UUID gone"),
        (r"Link 3: \S+ GB/s", "Link 3: <inactive>", "a link is inactive"),
        (r"\t Link 1: .*\n", "", "a link is gone"),
        (r"Link 2: \S+ GB/s", "Link 2: 0 GB/s", "a link is at 0"),
        (r"( GB/s)\n", " MB/s\n", "wrong unit"),
        (r"(?m)^1, .*\n(?=2)", "", "a GPU is gone from the sequence"),
        (r"(?m)^0, NVIDIA [^,]*,", "0, [Unknown Error],", "name unknown"),
        (r"\[MiB\]", "[GB]", "wrong unit"),
        (r", 0x0000000000000001", ", 0x0000000000000048", "slowdown bits"),
        (r", 16, 16,", ", 4, 16,", "PCIe at x4"),
        (r", Enabled, 0,", ", Enabled, 7,", "uncorrected ECC errors"),
        (r", Enabled, 0,", ", Enabled, [N/A],", "ECC errors N/A"),
        (r"(?m)^(0, .*), [^,\n]*\n(?=1,)", "\\1\n", "a column is gone"),
        (r"(\d\d\d\.\d+\.\d+)(?=, \d)", "[N/A]", "driver N/A"),
        (r"NV18\t", "NV12\t", "links missing in the matrix"),
        (r"\nLegend:[\s\S]*", "\n", "legend gone"),
        (r"GPU3\t.*\n", "", "a row is gone"),
        (r"SYS(?=\t0-55)", "ERR", "cell damaged"),
    ),
    "dcgmi": (
        (r"\| Pass( - All)? +\|", "| Fail - All                                     |", "a test failed"),
        (r"\| Pass( - All)? +\|", "| Skip - All                                     |", "a test was skipped"),
        (r"\| Pass( - All)? +\|", "| Warn - All                                     |", "a test warns"),
        (r"\| Pass( - All)? +\|", "| N/A                                            |", "result N/A"),
        (r"\| Pass( - All)? +\|", "|                                                |", "result empty"),
        (r"GPU1: Pass", "GPU1: Fail", "a GPU failed"),
        (r"\|                           \| GPU1: Pass .*\n", "", "a GPU is gone"),
        (r"\| (NVML Library|software|Inforom) .*\n", "", "a deployment test is gone"),
        (r"\| (PCIe|pcie) .*\n", "", "PCIe did not run"),
        (r"\| (GPU Memory|memory) .*\n", "", "memory did not run"),
        (r"(DCGM Version +\| )\d", r"\1x", "version damaged"),
        (r"(Driver Version Detected +\| )\S+", r"\1N/A", "driver N/A"),
        (r'"status": "Pass"', '"status": "Fail"', "a result failed"),
        (r'"status": "Pass"', '"status": "Skip"', "a result was skipped"),
        (r'"status": "Pass"', '"status": null', "no result"),
        (r'"status": "Pass"', f'"status": "Pass", "warnings": [{DCGM_WARNING}]', "a warning"),
        (r'"test_categories": \[', '"runtime_error": "host engine gone", "test_categories": [', "runtime error"),
        (r'"entity_id": 1,', '"entity_id": 9,', "a GPU is gone"),
        (r'"gpu_id": "1"', '"gpu_id": "7"', "a GPU is gone"),
        (r'"(DCGM Diagnostic|DCGM GPU Diagnostic)"', '"Diagnostic"', "other JSON"),
        (r'"test_categories": \[', '"test_categories": {', "JSON damaged"),
        (r"\d GPUs found", "9 GPUs found", "GPUs missing"),
        (r"PCI Bus ID: \S+", "PCI Bus ID: N/A", "bus id N/A"),
        (r"Name: NVIDIA", "Name: Unknown", "no name"),
        (r"\| 1      \|", "| 5      |", "a GPU is gone from the sequence"),
        (r"Healthy", "Warning", "watches warn"),
        (r"Healthy", "Failure", "watches fail"),
        (r"\| Healthy +\|", "| N/A |", "health N/A"),
    ),
    "fabricmanager": (
        (r"active \(running\)", "failed (Result: exit-code)", "failed"),
        (r"active \(running\)", "inactive (dead)", "dead"),
        (r"active \(running\)", "activating (start)", "starting"),
        (r"active \(running\)", "active (exited)", "exited"),
        (r"(?m)^active$", "inactive", "inactive"),
        (r"(?m)^active$", "activating", "activating"),
        (r"(?m)^active$", "failed", "failed"),
        (r"Main PID: .*", "Main PID: 2116 (code=exited, status=1/FAILURE)", "process ended"),
        (r"ActiveState=active", "ActiveState=failed", "failed"),
        (r"SubState=running", "SubState=dead", "dead"),
        (r"MainPID=\d+", "MainPID=0", "no process"),
        (r"SubState=.*\n", "", "no sub state"),
        (r"ActiveState=active", "ActiveState=", "no state"),
        (r"Result=success", "Result=exit-code", "result"),
        (r"Connected to 1 node\.", FM_MISMATCH, "version mismatch"),
        (r"Connected to 1 node\.", FM_NO_SWITCH, "no switch"),
        (r"Started (nvidia-fab.*|NVIDIA fab.*)\.", FM_FAILED, "start failed"),
        (r"Successfully configured [\s\S]*", FM_FATAL, "fatal error"),
        (r"\[INFO\]", "[ERROR]", "an error line"),
        (r"State( +): Completed", r"State\1: In Progress", "in progress"),
        (r"State( +): Completed", r"State\1: Not Started", "not started"),
        (r"State( +): Completed", r"State\1: N/A", "N/A"),
        (r"Status( +): Success", r"Status\1: Failure", "failure"),
        (r"(?m)^ +Status.*\n", "", "status gone"),
        (r"     CGroup[\s\S]*?cfg\n", "", "processes gone"),
        (r"Loaded: loaded", "Loaded: not-found", "unit gone"),
        (r"status=0/SUCCESS", "status=1/FAILURE", "start command failed"),
    ),
    "ibstat": (
        (r"State: Active", "State: Down", "down"),
        (r"State: Active", "State: Initializing", "no subnet manager"),
        (r"State: Active", "State: Armed", "armed"),
        (r"Physical state: LinkUp", "Physical state: Polling", "polling"),
        (r"Physical state: LinkUp", "Physical state: Disabled", "disabled"),
        (r"Physical state: LinkUp", "Physical state: LinkErrorRecovery", "recovering"),
        (r"Rate: \d+", "Rate: 10", "slow"),
        (r"Rate: \d+", "Rate: 0", "rate 0"),
        (r"Rate: (\d+)", r"Rate: \1 MB/s", "wrong unit"),
        (r"Rate: \d+", "Rate: N/A", "rate N/A"),
        (r"\t\tRate: .*\n", "", "rate gone"),
        (r"\t\tState: .*\n", "", "state gone"),
        (r"Base lid: [1-9]\d*", "Base lid: 65535", "no LID"),
        (r"SM lid: 1", "SM lid: 0", "no subnet manager"),
        (r"Number of ports: 1", "Number of ports: 2", "a port is gone"),
        (r"CA 'mlx5_1'[\s\S]*?(?=CA 'mlx5_2'|$)(?=CA)", "", "a device is gone"),
        (r"Node GUID: 0x\w+", "Node GUID: 0x0000000000000000", "no GUID"),
        (r"Link layer: \w+", "Link layer: Unspecified", "no link layer"),
        (r"Port 1:\n", IB_PANIC, "error text"),
    ),
    "nccl-tests": (
        (r"Out of bounds values : 0 OK", "Out of bounds values : 12 FAILED", "wrong values"),
        (r"# Avg bus bandwidth.*\n", "", "summary gone"),
        (r"# Out of bounds.*\n", "", "check gone"),
        (r"(Avg bus bandwidth    : )\S+", r"\g<1>N/A", "average N/A"),
        (r"(Avg bus bandwidth    : )\S+", r"\g<1>0.01", "average does not fit"),
        (r"(?m)^( +\d{8,}.*-1 .*) 0$", r"\1 4", "wrong values in place"),
        (r"(?m)^( +\d{8,} +\d+ +float +sum +-1 +\S+ +\S+ +\S+ +)0", r"\g<1>3", "wrong values"),
        (r"(?m)^( +\d{8,} +\d+ +float +sum +-1 +\S+ +\S+ +\S+ +)0", r"\g<1>N/A", "check N/A"),
        (r"\(GB/s\)", "(MB/s)", "wrong unit"),
        (r"(?m)^ +16777216 .*\n", "", "a size is gone"),
        (r"#  Rank  1 .*\n", "", "a rank is gone"),
        (r"(?m)^( +\d{8,} +\d+ +float +sum +-1 +\S+ +)\S+", r"\g<1>0.00", "no bandwidth"),
        (r"(?m)^( +\d{8,} +\d+ +float +sum +-1 +)\S+", r"\g<1>nan", "nan"),
        (r"(?m)^ +33554432 ", f"{NCCL_WARN}    33554432 ", "NCCL warns"),
        (r"# Out of bounds", f"{NCCL_FAILURE}# Out of bounds", "test failure"),
        (r"(?m)^( +16777216( +\S+){6} +)\S+", r"\g<1>1.00", "busbw does not fit"),
        (r"busbw #wrong", "busbw", "column gone"),
        (r"(?m)^# nThread.*\n", "", "settings gone"),
        (r"maxBytes \d+", "maxBytes 99999999999", "sizes are missing"),
    ),
    "ib_write_bw": (
        (r"Gb/sec|MB/sec|MiB/sec", "KB/sec", "unknown unit"),
        (r"average\[Gb/sec\]", "average[MB/sec]", "mixed units"),
        (r"(peak|average)\[(MB|MiB)/sec\]", r"\1[Gb/sec]", "mixed units"),
        (r"BW average", "BW Average of", "other columns"),
        (r"(?m)^( 65536 +\d+ +\S+ +)\S+", r"\g<1>0.00", "no bandwidth"),
        (r"(?m)^( 65536 +\d+ +\S+ +)\S+", r"\g<1>N/A", "N/A"),
        (r"(?m)^( 65536 +\d+ +\S+ +)\S+", r"\g<1>12.50", "does not fit the message rate"),
        (r"(?m)^( 65536 .*\S)\s+\S+$", r"\1", "a column is gone"),
        (r"(?m)^( 65536 +)\d+", r"\g<1>0", "no iterations"),
        (r"(?m)^ 4096 .*\n", "", "a size is gone"),
        (r" Link type .*\n", "", "head cut"),
        (r" remote address.*\n", "", "address gone"),
        (r"(?m)^ 65536 ", "Completion with error at client\n 65536 ", "error text"),
        (r"(?m)^ 65536 .*\n", "", "the row is gone"),
        (r" Data ex\. method .*\n", "Couldn't connect to node02:18515\n", "no connection"),
        (r" #bytes.*\n", "", "header gone"),
        (r"RDMA_Write BW Test", "RDMA_Read BW Test", "another test"),
        (r"(?m)^ 65536 ", " Failed status 12: wr_id 0 syndrom 0x81\n 65536 ", "failed status"),
    ),
    "lspci": (
        (r"\(rev a1\)", "(rev ff)", "fell off the bus"),
        (r"(LnkSta:.*)Width x16 \(ok\)", r"\1Width x4 (downgraded)", "PCIe at x4"),
        (r"(LnkSta:.*)Width x16 \(ok\)", r"\1Width x0 (downgraded)", "no lanes"),
        (r"\tKernel driver in use: nvidia\n", "", "no driver"),
        (r"Kernel driver in use: nvidia", "Kernel driver in use: nouveau", "nouveau"),
        (r"\t\tLnkSta:.*\n", "", "no link state"),
        (r"\t\tLnkCap:.*\n", "", "no link capability"),
        (r"LnkSta:\tSpeed \S+", "LnkSta:\tSpeed unknown", "speed unknown"),
        (r"FatalErr- UnsupReq", "FatalErr+ UnsupReq", "fatal error"),
        (r"(\t\tDevSta:)", "\t!!! Unknown header type 7f\n\\1", "unknown header"),
        (r"3D controller|0302", "Unknown error", "class damaged"),
        (r"(?m)^(\S+ .*?)(10de:|NVIDIA Corporation)", r"\1ffff:", "another vendor"),
        (r" \(rev a1\)\n", " (rev a1)\npcilib: Cannot open /sys/bus/pci/devices\n", "error text"),
        (r"Capabilities: \[60\][\s\S]*?(?=\tKernel)", "Capabilities: <access denied>\n", "not root"),
    ),
}
TEXTS = {  # said instead of an output, or between its lines
    "nothing": "",
    "blank": "\n\n",
    "no devices": "No devices were found\n",
    "shell": "bash: line 1: command not found\n",
    "html": "<html><body>504</body></html>\n",
    "no driver": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
    "json": "{}\n",
    "binary": "\x7fELF\x02\x01\x01\x00\x00",
    "mismatch": "Failed to initialize NVML: Driver/library version mismatch\n",
    "word": "OK\n",
}
INSERTED = "Unable to determine the device handle for GPU0000:2A:00.0: Unknown Error\n"


def _substitutions(name: str, tool: str, text: str) -> Iterator[Damage]:
    for form, new, what in CHANGES[tool]:
        matches = list(re.finditer(form, text))
        places = {len(matches) - 1: "last"}
        if len(text) < 10000:  # long ones take long
            places = {0: "first", **places}
        for match, place in ((matches[at], place) for at, place in places.items() if matches):
            changed = text[: match.start()] + match.expand(new) + text[match.end() :]
            if what and changed != text:
                yield Damage(name, tool, f"{what} ({place})", changed, {})


def _cuts(name: str, tool: str, text: str) -> Iterator[Damage]:
    """Cut in the middle of a line: at four places, near the end too; and the first lines gone."""
    body = text.rstrip()
    for share in (0.15, 0.4, 0.65, 0.9):
        at = int(len(body) * share)
        while at < len(body) - 1 and _is_between_words(body, at):
            at += 1
        if "\n" in body[at:] or at < len(body) - 3:
            yield Damage(name, tool, f"cut at {share:.0%}", body[:at], {})


def _is_between_words(body: str, at: int) -> bool:
    return body[at] in "\n |+-=" or body[at - 1] in "\n |+-=)>" or body[at : at + 2].isspace()


def _inserted(name: str, tool: str, text: str) -> Iterator[Damage]:
    lines = text.splitlines(keepends=True)
    if len(lines) > 2:
        middle = len(lines) // 2
        between = "".join([*lines[:middle], INSERTED, *lines[middle:]])
        yield Damage(name, tool, "error text between the lines", between, {})
    yield Damage(name, tool, "error text at the end", text + INSERTED, {})
    yield Damage(name, tool, "error text at the beginning", INSERTED + text, {})


def _fewer(name: str, tool: str, text: str) -> Iterator[Damage]:
    """The last GPU or device of a list that has no end: seen by the declared number."""
    lines = text.splitlines(keepends=True)
    is_list = name.endswith(("-list", "csv", "csv-nounits", "csv-noheader-nounits"))
    if tool == "nvidia-smi" and is_list and len(lines) > 2:
        count = len([line for line in lines if re.match(r"(GPU )?\d+[:,]", line)])
        yield Damage(name, tool, "the last GPU is gone", "".join(lines[:-1]), {"gpus": count})
    if tool == "lspci" and "vv" not in name and "0680" not in text and "Bridge" not in text and len(lines) > 1:
        yield Damage(name, tool, "the last GPU is gone", "".join(lines[:-1]), {"gpus": len(lines)})
    if tool == "ibstat":
        at = text.rindex("CA '")
        yield Damage(name, tool, "the last device is gone", text[:at], {"links": text.count("CA '")})


def damages() -> list[Damage]:
    """All damages, no two of them the same text for the same tool and declaration."""
    out: dict[tuple, Damage] = {}
    whole = samples()
    for name, text in whole.items():
        tool = tool_of(name)
        assert tool
        for kind in (_substitutions, _cuts, _inserted, _fewer):
            for damage in kind(name, tool, text):
                if damage.text.split() != text.split():  # more than blanks has changed
                    out.setdefault((tool, damage.text, tuple(damage.declared)), damage)
    for tool in TOOLS:
        for what, text in TEXTS.items():
            out[(tool, text, ())] = Damage("-", tool, what, text, {})
        for other_tool in TOOLS:  # the output of another tool
            name = next(name for name in whole if tool_of(name) == other_tool)
            if other_tool != tool and not (tool == "fabricmanager" and other_tool == "nvidia-smi"):
                out[(tool, whole[name], ())] = Damage(name, tool, f"it is of {other_tool}", whole[name], {})
    return list(out.values())


NUMBER = re.compile(r"\d+(\.\d+)?")
LOCALES = {
    "de_DE": lambda text: re.sub(r"(\d)\.(\d\d?\b)", r"\1,\2", text),
    "fr_FR": lambda text: re.sub(r"(\d)(\d{3}\b)", "\\1\u202f\\2", text).replace("Nov", "nov."),
    "ja_JP": lambda text: text.replace("Nov 21", "11\u6708 21").replace("Sat", "\u571f"),
    "ar_EG": lambda text: re.sub(r"[0-9]", lambda digit: chr(0x660 + int(digit.group())), text),
}


def kinds_of(text):
    """Each line without its numbers."""
    return [re.sub(r"[0-9a-f]*\d[0-9a-f]*", "#", line) for line in text.splitlines(keepends=True)]


def new_kinds(texts):
    """name -> the kinds of its lines that no text before it has, of the same tool and the same beginning."""
    seen, new = defaultdict(set), {}
    for name, text in texts.items():
        of_form, kinds = seen[tool_of(name), text.lstrip()[:12]], set(kinds_of(text))
        new[name] = kinds - of_form
        of_form |= kinds
    return new


def spoiled(text, only=None):
    """(what was done, the text); of lines that are alike but for their numbers, to the first and the last. only: kinds
    of lines.
    """
    lines, kinds = text.splitlines(keepends=True), kinds_of(text)
    last = {kind: place for place, kind in enumerate(kinds)}
    seen = Counter()
    for place, (line, kind) in enumerate(zip(lines, kinds, strict=True)):
        seen[kind] += 1
        if (seen[kind] != 1 and place != last[kind]) or (only is not None and kind not in only):
            continue
        before, after = "".join(lines[:place]), "".join(lines[place + 1 :])
        if after:
            yield f"cut after {line!r}", before + line
        yield f"doubled {line!r}", before + line * 2 + after
        for number in NUMBER.finditer(line):
            cut_out = line[: number.start()] + "N/A" + line[number.end() :]
            yield f"N/A in {line!r}", before + cut_out + after
