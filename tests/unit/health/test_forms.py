"""Forms of the tools' outputs that other people's machines print, and this repository's samples do not: each is written
here after a public report, which is named, and holds its facts only.
"""

import re

import pytest

from ironburst.health import tools, xid
from ironburst.health.expectation import Expectation
from ironburst.health.findings import healthy
from tests.unit.health import damage
from tests.unit.health import samples as written
from tests.unit.health.catalogue import TABLES

WHOLE = damage.samples()
EXPECTED = Expectation(models=TABLES.models, thresholds=TABLES.thresholds)
ONE_OF_EACH = sorted({damage.tool_of(name): name for name in WHOLE}.items())


def parse(text, tool="nvidia-smi", **declared):
    return tools.parse(tool, text, EXPECTED._replace(**declared))


def why(text, tool="nvidia-smi"):
    return " ".join(finding.text for finding in parse(text, tool) if not finding.passed)


# --- what a terminal, kubectl and docker run add (NVIDIA/nvidia-container-toolkit#69, NVIDIA/gpu-operator#2511)
PROMPTS = ("root@node01:~# ", "[root@node01 ~]# ", "(base) user@dgx:~/nccl-tests$ ", "$ ", "bash-5.1# ", "\u276f ")
BANNER = """\

==========
== CUDA ==
==========

CUDA Version 12.8.1

Container image Copyright (c) 2016-2023, NVIDIA CORPORATION & AFFILIATES. All rights reserved.

This container image and its contents are governed by a license.
By pulling and using the container, you accept its terms:
https://example.com/license

A copy of this license is made available in this container for your convenience.

*************************
** DEPRECATION NOTICE! **
*************************
THIS IMAGE IS DEPRECATED and is scheduled for DELETION.

"""


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize(("tool", "name"), ONE_OF_EACH)
def test_a_shells_prompt_before_and_behind_says_nothing(tool, name, prompt):
    text = f"{prompt}sudo {tool} --some\n{WHOLE[name]}{prompt}\n{prompt.rstrip()}"
    assert healthy(parse(text, tool)), parse(text, tool)
    half = "".join(WHOLE[name].splitlines(keepends=True)[: WHOLE[name].count("\n") // 2])
    assert not healthy(parse(f"{prompt}{tool}\n{half}{prompt}\n", tool)) or healthy(parse(half, tool))


@pytest.mark.parametrize(
    "before",
    ["nvidia-smi\n", "/usr/bin/nvidia-smi --query\n\n", 'Defaulted container "a" out of: a, b\n', BANNER, "\ufeff"],
    ids=["echo", "path", "kubectl", "banner", "byte order mark"],
)
@pytest.mark.parametrize("form", ["table", "q", "list", "topo"])
def test_what_stands_before_an_output_in_a_container_or_a_report(before, form):
    text = WHOLE[f"nvidia-smi-h100-sxm5-{form}"]
    assert healthy(parse(before + text)), parse(before + text)
    assert not healthy(parse(f"{before}Failed to initialize NVML: Unknown Error\n{text}"))


@pytest.mark.parametrize(
    "said",
    [
        "GPU 00000000:41:00.0: GPU is lost",
        "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error",
        "GPU 8: NVIDIA H100 80GB HBM3 (UUID: GPU-0a1b2c3d-0000-1111-2222-333344445556)",
    ],
)
def test_a_banner_takes_no_line_of_the_tool_with_it(said):
    listed = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0a1b2c3d-0000-1111-2222-333344445555)\n"
    assert healthy(parse(BANNER + listed))
    assert not healthy(parse(f"{BANNER.rstrip()}\n{said}\n\n{listed}"))


def test_a_prompt_is_no_output():
    assert "empty" in why("root@node01:~# nvidia-smi\nroot@node01:~# \n")


# --- GPUs of virtual machines. A guest with a vGPU: `-q` of an RTXA6000-24Q, 535.183.06 (github.com, "CUDAError4vGPU")
OF_THE_HOST = (
    "Temperature",
    "Power Readings",
    "GPU Power Readings",
    "Module Power Readings",
    "Fan Speed",
    "Max Clocks",
)


def guest(text):
    """`-q` of an A10G as a guest sees it that has a vGPU of 24 GB: what the card does is the host's to know."""
    section, lines = "", []
    for line in text.replace("NVIDIA A10G", "NVIDIA A10-24Q").splitlines():
        head = re.match(r"^    (\S.*?)\s*(?::|$)", line)
        section = head.group(1) if head else section
        if section.startswith(("Clocks Event Reasons", "Clocks Throttle Reasons")):
            line = "    Clocks Event Reasons                  : N/A" if head and "Counters" not in line else ""
        elif section in OF_THE_HOST or (section == "PCI" and line.startswith(" " * 12)) or "SRAM" in line:
            line = re.sub(r": .*", ": N/A", line)
        lines += [line] if line or not head else []
    return "\n".join(lines) + "\n"


def test_a_guest_with_a_vgpu_knows_nothing_of_the_card():
    text = guest(WHOLE["nvidia-smi-a10g-q"])
    assert "-24Q" in text and healthy(parse(text)), why(text)
    assert not healthy(parse(text.replace("NVIDIA A10-24Q", "NVIDIA A10"))), "a whole card does"
    assert "uncorrected" in why(re.sub(r"(DRAM Uncorrectable +: )0", r"\g<1>2", text, count=1))
    assert "4096 MiB" in why(re.sub(r"(FB Memory Usage\n +Total +: )\d+", r"\g<1>4096", text))


def test_a_vgpu_in_the_other_forms():
    head = "index, name, memory.total [MiB], temperature.gpu, power.draw [W], pcie.link.width.current\n"
    of_card = "81920 MiB, [N/A], [N/A], [N/A]\n"
    assert healthy(parse(f"{head}0, GRID A100D-80C, {of_card}"))
    assert not healthy(parse(f"{head}0, NVIDIA A100-SXM4-80GB, {of_card}"))
    table = re.sub(
        r"(?m)^\| +\S+ +\d+C +(P\d) +\d+W / +\d+W ",
        r"| N/A   N/A    \1              N/A /  N/A ",
        WHOLE["nvidia-smi-a10g-table"],
    )
    assert "N/A /  N/A" in table and healthy(parse(table.replace("NVIDIA A10G   ", "NVIDIA A10-24Q")))
    assert not healthy(parse(table))


def test_a_host_of_vgpus_says_so_in_the_head():
    """bigstack-oss/cubecos#312: 580.105.06 on a host of RTX PRO 6000."""
    head = "vGPU Driver Capability\n        Heterogenous Multi-vGPU           : Supported\n\nAttached GPUs"
    text = WHOLE["nvidia-smi-h200-sxm-q"].replace("\nAttached GPUs", head, 1)
    assert healthy(parse(text)), why(text)
    assert healthy(parse(re.sub(r"CUDA Version: \S+ +\|", "CUDA Version: Not Found  |", WHOLE["nvidia-smi-l4-table"])))


# --- Windows, and the Linux in it. utkuozdemir/nvidia_gpu_exporter has captures, microsoft/WSL#11277 the versions
def test_windows_and_the_linux_in_it():
    table = WHOLE["nvidia-smi-rtx4090-table"]
    windows = re.sub(r" (On|Off)  \|   0000", " WDDM  |   0000", table)
    none = next(line for line in table.splitlines() if "No running processes" in line)
    process = r"|    0   N/A  N/A            2056    C+G   C:\Windows\System32\dwm.exe           N/A      |"
    assert windows.count("WDDM") == 2 and healthy(parse(windows.replace(none, process))), why(windows)
    linux = re.sub(r"NVIDIA-SMI \S+( +)Driver Version: \S+", r"NVIDIA-SMI 555.52.01\1Driver Version: 555.99", table)
    assert healthy(parse(linux)), why(linux)
    for driver in ("535.98", "555.42.06"):  # of another release; and of Linux, which refuses to run so
        assert "does not belong" in why(linux.replace("555.99", driver))
    query = WHOLE["nvidia-smi-l40s-q"].replace(
        "Persistence Mode                      : Enabled", "Persistence Mode : N/A"
    )
    assert "persistence_mode" in why(query)
    model = "    Driver Model\n        Current : WDDM\n        Pending : WDDM\n"
    assert healthy(parse(query.replace("    MIG Mode\n", model + "    MIG Mode\n")))


def test_a_table_of_before_cuda_was_told():
    """NVIDIA-SMI 390.25 in kubernetes/kubernetes#62837."""
    table = re.sub(r"CUDA Version: \S+ +\|", "                      |", WHOLE["nvidia-smi-v100-pcie-table"])
    assert "CUDA Version" not in table and healthy(parse(table))


# --- other makers' accelerators (apache/cloudstack#11701 lists MI325X)
AMD = "05:00.0 Processing accelerators{}: Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram [Instinct MI300X]{}\n"


@pytest.mark.parametrize(
    ("tool", "text", "maker"),
    [
        ("nvidia-smi", "| AMD-SMI 26.0.0+37d158ab      amdgpu version: 6.14.14  ROCm version: 7.0.1    |\n", "AMD"),
        ("nvidia-smi", "===== ROCm System Management Interface =====\n", "AMD"),
        ("nvidia-smi", "| HL-SMI Version:                              hl-1.19.0-fw-57.2.2.0          |\n", "Intel"),
        ("nvidia-smi", "| npu-smi 24.1.rc2                 Version: 24.1.rc2                        |\n", "Huawei"),
        ("lspci", AMD.format("", ""), "AMD"),
        ("lspci", AMD.format(" [1200]", " [1002:74a1]"), "AMD"),
        ("lspci", "05:00.0 1200: 1002:74a1\n", "AMD"),
        ("lspci", "33:00.0 1200: 1da3:1020 (rev 01)\n", "Intel"),
    ],
)
def test_another_makers_accelerator_is_called_so(tool, text, maker):
    assert f"of {maker}, not NVIDIA" in why(text, tool)
    assert "no NVIDIA GPU" in why("05:00.0 0200: 15b3:1021\n", "lspci")


# --- DCGM 4.5 (dcgmi/Query.cpp, Nvlink.cpp): which GPUs are listed; NVIDIA/DCGM#229 has a name of <<<NULL>>>
def test_discovery_of_dcgm_4_5():
    text = WHOLE["dcgmi-h100-sxm5-discovery"]
    for listed in ("Active", "All"):
        assert healthy(parse(text.replace("8 GPUs found.", f"8 GPUs found ({listed})."), "dcgmi"))
    active = text.replace("8 GPUs found.", "8 GPUs found (Active).")
    note = "Note: Use -a flag to show all GPUs, including those that are not active.\n+"
    assert "not active" in why(active.replace("+", note, 1), "dcgmi")
    lost = text.replace("| 3      | Name", "| 3      | Status: Lost".ljust(81) + "|\n|        | Name")
    assert "GPU 3 is Lost" in why(lost, "dcgmi")
    assert "GPU 0 is not understood" in why(
        re.sub(r"Name: NVIDIA H100 80GB HBM3", "Name: <<<NULL>>>          ", text), "dcgmi"
    )


def test_nvlink_states_with_their_entities():
    states = "+----------------------+\n|  NvLink Link Status  |\n+----------------------+\nGPUs:\n"
    for number in (0, 1):
        states += f"    gpuId {number}:\n        {' '.join('U' * 18)}\n    Link Entities: 0:{number},1:{number}\n"
    states += "NvSwitches:\n    No NvSwitches found.\n\nKey: Up=U, Down=D, Disabled=X, Not Supported=_\n"
    assert healthy(parse(states, "dcgmi")), parse(states, "dcgmi")
    assert not healthy(parse(states.replace("U U", "U D", 1), "dcgmi"))


def test_nvlinks_that_are_all_down_are_called_so():
    """Azure/azurehpc-health-checks and NVIDIA/open-gpu-kernel-modules#1150 write the sentence in different ways."""
    gpu = written.nvlink(written.BY["h100-sxm5"]).splitlines()[0]
    for said in (
        "NVML: Unable to retrieve NVLink information as all links are inactive",
        "NVML:Unable to retrieve Nvlink information as all links are inActive",
    ):
        assert "Unable to retrieve" in why(f"{gpu}\n\t {said}\n") and "not understood" not in why(f"{gpu}\n{said}\n")


def test_ib_write_bw_that_was_connected_by_rdma_cm():
    """tensorflow/tensorflow#22077."""
    text = WHOLE["ib_write_bw-h200-roce-mebibytes"].replace("rdma_cm QPs\t : OFF", "rdma_cm QPs\t : ON")
    line = "-" * 87 + "\n"
    waits = " Waiting for client rdma_cm QP to connect\n Please run the same command with the IB/RoCE interface IP\n"
    at = text.index(" local address")
    assert healthy(parse(text[:at] + waits + line + text[at:], "ib_write_bw"))


# --- lines of the kernel: leptonai/gpud#46, #338, akash-network/support#244
XID = "NVRM: Xid (PCI:0000:cb:00): {}, pid='<unknown>', name=<unknown>, Graphics SM Warp Exception"
TIMES = (
    *(
        "",
        "[  123.456789] ",
        "[Fri Aug 30 11:43:09 2024] ",
        "<4>[  123.456789] ",
        "kern  :warn  : 2025-01-21T04:41:44,283302+00:00 ",
    ),
    *(
        "2025-01-25T10:34:54,859532+00:00 ",
        "Feb 14 05:03:41 gpu-1 kernel: ",
        "2026-02-14T05:03:41.123456+01:00 gpu-1 kernel: ",
    ),
    *("2026-02-14T05:03:41+0100 gpu-1 kernel: ", "Feb 14 05:03:41 gpu-1 kernel: [  123.456789] ", "[0: gpu-1]: "),
    *("4,1234,123456789,-;", '{"PRIORITY":"4","MESSAGE":"', "\x1b[32m[  123.456789] \x1b[0m\x1b[33m"),
)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\x1b[0m\n"], ids=["unix", "windows", "colour"])
@pytest.mark.parametrize("before", TIMES)
def test_an_xid_is_read_behind_any_time(before, end):
    coloured = (lambda line: line.replace("NVRM: ", "NVRM: \x1b[0m")) if "\x1b" in before else str
    fatal, harmless = (before + coloured(XID.format(number)) + end for number in (79, 13))
    assert healthy(xid.judge(harmless, TABLES.xids)), xid.judge(harmless, TABLES.xids)
    assert "GPU 0000:cb:00: Xid 79" in xid.judge(fatal, TABLES.xids)[0].text
    switch = f"{before}nvidia-nvswitch1: SXid (PCI:0000:84:00.0): 12028, Data {{0x000001c0, 0x00bd5c8a}}{end}"
    assert "SXid 12028" in xid.judge(switch, TABLES.xids)[0].text
