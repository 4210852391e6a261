"""Xids and SXids of the kernel log: what blocks a node, what never may, and that none of them is passed over."""

import pytest

from ironburst.health import xid
from tests.unit.health.catalogue import TABLES

XIDS = TABLES.xids
GPU = "NVRM: Xid (PCI:0000:1b:00"
SWITCH = "nvidia-nvswitch2: SXid (PCI:0000:c1:00.0): "
LINK = "XC0 i0 Link 07 (0x0214e5c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"


def log(*texts):
    return "".join(f"[{100 + n}.250000] node07 kernel: {text}\n" for n, text in enumerate(texts))


def blocked(*texts, **more):
    return [finding.text for finding in xid.judge(log(*texts), XIDS, **more) if not finding.passed]


def test_the_table_is_nvidias_whole_catalog():
    assert sorted(XIDS) == list(range(1, 173))


def test_every_action_word_of_the_table_is_known_and_every_known_one_is_used():
    assert {row.nvidia for row in XIDS.values()} == set(xid.ACTIONS)


def test_an_action_word_that_nobody_knows_blocks():
    table = {**XIDS, 13: XIDS[13]._replace(nvidia="CHECK_NEW_THING")}
    assert xid.decide(table, 13).action == "unknown" and xid.decide(table, 13).blocks


@pytest.mark.parametrize(
    "number", [8, 11, 13, 25, 31, 32, *range(37, 42), 43, 44, 45, *range(66, 73), 80, 94, *range(126, 136), 141]
)
def test_an_application_never_drains_a_node(number):
    text = f"{GPU}): {number}, pid=4711, name=Fatal train.py, Ch 00000010"
    assert blocked(text) == []


@pytest.mark.parametrize("number", [46, 48, 62, 64, 74, 79, 95, 109, 119, 120, 140, 143, 158, 167, 171, 172])
@pytest.mark.parametrize("instance", ["", " GPU-I:03", " GPU-I:0b GPU-CI:01"])
def test_a_fault_of_hardware_blocks_with_mig_as_without(number, instance):
    assert len(blocked(f"{GPU}{instance}): {number}, pid='<unknown>', name=<unknown>, something")) == 1


def test_an_old_driver_says_no_pci():
    assert "Xid 79" in blocked("NVRM: Xid (0000:1b:00): 79, GPU has fallen off the bus.")[0]


@pytest.mark.parametrize(
    "line",
    [
        f"{GPU} FUTURE-I:05): 48, An uncorrectable double bit error",
        "NVRM: Xid error 79 on GPU 3",
        "NVRM: Xid (PCI:0000:1b:00): ??, GPU has fallen off the bus",
        "nvidia-nvswitch2: SXid PCI:0000:c1:00.0 24007 Fatal",
        "NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.",
    ],
)
def test_a_line_of_their_kind_that_is_not_understood_blocks(line):
    assert "not understood" in blocked(line)[0] and line[:30] in blocked(line)[0]
    assert blocked(line, handled_s=200) == []


def test_other_lines_of_the_kernel_do_not():
    others = (
        "NVRM: GPU at PCI:0000:1b:00: GPU-11111111",
        "RPC: reply xid 4f3c2a1b",
        "NVRM: loading NVIDIA UNIX Module",
    )
    assert blocked(*others) == []


@pytest.mark.parametrize("number", range(144, 151))
def test_the_message_says_how_bad_an_error_of_nvlink_5_is(number):
    assert "(reset)" in blocked(f"{GPU}): {number}, NETIR_LINK_EVT  Fatal   {LINK}")[0]
    assert blocked(f"{GPU}): {number}, pid=1, name=ray::Fatal, RLW_REMAP Nonfatal {LINK}") == []
    assert "(unknown)" in blocked(f"{GPU}): {number}, Placeholder message")[0]
    assert xid.decide(XIDS, number).blocks


@pytest.mark.parametrize(
    ("info", "status", "resets"), [("86", 1, True), ("4c2", 4, True), ("06", 1, False), ("86", 8, False)]
)
def test_a_receiver_that_loses_packets_is_reset(info, status, resets):
    words = f"RLW_RXPIPE Nonfatal XC0 i0 Link 02 (0x{info:>08} 0x{status:08x} 0x00000000)"
    assert bool(blocked(f"{GPU}): 145, {words}")) == resets


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "reset"),
        ("GPU recovery action changed from 0x4 (Drain and Reset) to 0x2 (Node Reboot Required)", "reboot"),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "ignore"),
        ("GPU recovery action changed", "unknown"),
    ],
)
def test_xid_154_asks_for_its_last_state(text, action):
    assert xid.decide(XIDS, 154, text).action == action


def test_an_a100_is_rebooted_unless_the_error_is_of_a_mig_instance():
    assert xid.decide(XIDS, 95, gpu_model="A100 SXM4 80GB").action == "reboot"
    assert "(reset)" in blocked(f"{GPU} GPU-I:05): 95, Uncontained", gpu_model="A100 SXM4 80GB")[0]


LINES = ("Non-fatal, Link 28 RX Short Error Rate (First)", "Severity 0 Engine instance 28 Sub-engine instance 00")
DATA = ("Data {0x001c0009, 0x10000000, 0x00000000}", "Raw data {0x00000000}")


def test_an_sxid_of_several_lines_is_one_and_judged_by_all_of_them():
    whole = [f"{SWITCH}20009, {line}" for line in (*LINES, *DATA)]
    other = SWITCH.replace("c1", "c2")
    mixed = [whole[0], f"{other}20009, {LINES[0]}", whole[1], f"{other}20009, {DATA[0]}", *whole[2:]]
    assert blocked(*whole) == blocked(*mixed) == []
    assert len(xid.read(log(*mixed)).switches) == 2
    assert len(blocked(*(line.replace("Non-fatal", "Fatal") for line in whole))) == 1
    assert len(blocked(*(line.replace("Severity 0", "Severity 1") for line in whole))) == 1
    assert len(blocked(*whole[1:])) == 1  # its head is gone: nobody says that it is harmless


def test_what_comes_a_hundred_times_is_told_once():
    assert len(blocked(*[f"{GPU}): 79, GPU has fallen off the bus."] * 100)) == 1
