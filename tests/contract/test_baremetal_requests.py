"""How often a BMC is asked, by how many at once, and what is read of one that can't take that. docs/adr/0119."""

import math
from dataclasses import replace

import pytest

from benchmarks import bmcs
from ironburst.adapters.redfish import boot as redfish_boot
from ironburst.adapters.redfish import client as redfish
from ironburst.adapters.redfish.reading import AT_ONCE
from ironburst.baremetal import documents, inventory
from ironburst.baremetal.node import NodeInputs
from lab.bmc import Fault, write_fault
from lab.bmc.vendors import VENDORS
from tests.contract.emulator import MACHINE, PASSWORD, serving
from tests.unit.baremetal import redfish as shapes

LISTS = [vendor for vendor in VENDORS if bmcs.gives_lists(vendor)]
OTHERS = [vendor for vendor in VENDORS if vendor not in LISTS]


@pytest.mark.parametrize("declared", [{}, bmcs.EVERYTHING], ids=["little", "everything"])
@pytest.mark.parametrize("vendor", LISTS)
def test_an_operation_asks_a_bmc_that_gives_whole_lists_thirty_times_at_most(vendor, declared):
    asked = bmcs.requests(vendor, declared)
    assert {operation: len(its) for operation, its in asked.items() if len(its) > bmcs.MOST_REQUESTS} == {}
    assert asked["check"] == asked["diff"] == [], "a preview does no BMC I/O"


def test_a_gate_is_told_in_sentences(monkeypatch):
    monkeypatch.setattr(bmcs, "MOST_REQUESTS", 20)
    monkeypatch.setattr(bmcs, "MOST_S", 10.0)
    told = bmcs.misses(["dell"])
    assert told == [f"dell: {each} asks 27 times, 20 are allowed" for each in ("create", "read")] + [
        "dell: 200 BMCs take 14 s"
    ]


@pytest.mark.parametrize("vendor", OTHERS)
def test_others_are_asked_for_each_document_once(vendor):
    for its in bmcs.requests(vendor, bmcs.EVERYTHING).values():
        paths = [path for method, path in its if method == "GET"]
        assert len(paths) == len(set(paths))


@pytest.mark.parametrize("vendor", VENDORS)
def test_two_hundred_slow_bmcs_are_read_in_a_minute(vendor):
    """By the longest chain of answers, not by a clock."""
    assert bmcs.seconds(vendor) <= bmcs.MOST_S


def test_rounds_are_counted_as_requests_are():
    alone = bmcs.rounds("lab", at_once=1)
    assert alone == len(bmcs.requests("lab", {})["read"])
    assert math.ceil(alone / AT_ONCE) <= bmcs.rounds("lab") < alone / 2


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_same_is_read_however_many_are_asked_for_at_once(vendor):
    docs = shapes.served(shapes.machine(vendor))
    get = shapes.getter(docs, vendor)
    backwards = documents.read(get, several=lambda paths: [get(path) for path in reversed(paths)][::-1])
    assert inventory.hardware(backwards) == inventory.hardware(documents.read(get))


# ---- the stand-in, over HTTP


@pytest.fixture
def served(tmp_path):
    def read(vendor="lab", **fault):
        write_fault(tmp_path / "faults.json", "dgx01", Fault(**fault))
        with serving(tmp_path, replace(MACHINE, vendor=vendor)) as (bmc, _):
            hardware = redfish.read_hardware(access(bmc))
            assert bmc.sessions == {}
            return hardware, bmc

    return read


def access(bmc):
    return redfish.BmcAccess("dgx01", bmc.url, "admin", PASSWORD, timeout_s=20)


def test_a_few_at_once_in_connections_that_are_kept(served):
    bmcs = [served()[1] for _ in range(3)]  # a busy machine may answer one request before it sends the next
    assert 1 < max(bmc.most_at_once for bmc in bmcs) <= AT_ONCE >= max(bmc.connections for bmc in bmcs)


@pytest.mark.parametrize("quirks", [["few-at-once"], ["drops-kept"], ["few-at-once", "drops-kept"]], ids="+".join)
@pytest.mark.parametrize("vendor", ["lab", "supermicro-x14", "dgx"])
def test_a_bmc_that_cant_take_that_is_read_all_the_same(served, vendor, quirks):
    assert served(vendor, quirks=quirks)[0] == served(vendor)[0]


def test_one_document_that_is_never_answered_doesnt_slow_the_others(served):
    reads = [served(answer="unavailable", path="/PowerSubsystem") for _ in range(3)]  # as above
    assert {hardware.not_said for hardware, _ in reads} == {("power_supplies",)}
    assert max(bmc.most_at_once for _, bmc in reads) > 1


@pytest.mark.parametrize("version", ["1.11.0", "1.20.0"])
def test_members_that_lack_what_is_required_are_asked_for_alone(served, version):
    """Both as AMI's: one that is known for it, and one that nobody has seen."""
    plain, _ = served("dgx", documents={"/redfish/v1": {"ProtocolFeaturesSupported": None}})
    hardware, _ = served("dgx", documents={"/redfish/v1": {"RedfishVersion": version}})
    assert hardware == plain


# ---- an installation


@pytest.mark.parametrize("quirk", ["", "media-of-system", "drive-of-the-screen", "name-alone"])
@pytest.mark.parametrize("medium", [None, "http://10.0.0.5/media/dgx01.iso"])
@pytest.mark.parametrize("boot", ["virtual_media", "http"])
def test_what_is_seen_beside_the_inventory_is_what_the_console_shows(tmp_path, quirk, medium, boot):
    write_fault(tmp_path / "faults.json", "dgx01", Fault(quirks=[quirk] if quirk else []))
    with serving(tmp_path) as (bmc, _):
        with redfish_boot.console(access(bmc), by_http=boot == "http") as console:
            if medium:
                console.insert(medium)
                console.arm(medium)
            shown = console.look()
        _, panel = redfish.read_declared(access(bmc), declared(bmc, boot))
    assert panel == shown and bool(shown.medium) == bool(medium)


@pytest.mark.parametrize("path", ["/VirtualMedia", "/VirtualMedia/CD1"])
@pytest.mark.parametrize("answer", ["forbidden", "unavailable"])
def test_drives_that_cant_be_read_are_not_empty(tmp_path, path, answer):
    write_fault(tmp_path / "faults.json", "dgx01", Fault(answer=answer, path=path))
    with serving(tmp_path) as (bmc, _):
        assert redfish.read_declared(access(bmc), declared(bmc, "virtual_media"))[1] is None


def declared(bmc, boot):
    install = bmcs.EVERYTHING["install"] | {"boot": boot}
    return NodeInputs.model_validate(bmcs.DECLARED | {"bmcAddress": bmc.url, "install": install})
