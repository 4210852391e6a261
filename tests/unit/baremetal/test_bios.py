"""Settings of a BIOS: beside the declaration, and beside what a registry allows."""

from dataclasses import replace

import pytest

from ironburst.baremetal import bios, node
from ironburst.baremetal.bios import Bios, BiosComparison
from ironburst.baremetal.verify import Declaration, examine
from ironburst.catalog.hardware import gpus
from lab.bmc.bios import ENTRIES, FACTORY, SHAPES
from lab.bmc.bios import Bios as Emulated
from tests.unit.baremetal import redfish

NOW = {"BootMode": "Bios", "NumaNodes": 1, "QuietBoot": True, "AssetName": "", "Cores": "16", "CpuStepping": "8"}
NOW |= {"Profile": "N/A"}
KNOWN = bios.registry({"RegistryEntries": {"Attributes": list(ENTRIES)}})


def orders(declared, said):
    return [row.order for row in bios.rows(declared, said)]


@pytest.mark.parametrize(
    ("declared", "order"),
    [
        ({"BootMode": "Bios"}, "in force"),
        ({"BootMode": "bios"}, "differs"),
        ({"NumaNodes": True}, "differs"),  # True is 1 to Python
        ({"QuietBoot": 1}, "differs"),
        ({"Cores": 16}, "differs"),
        ({"Cores": "16"}, "in force"),
        ({"AssetName": ""}, "in force"),
        ({"Nodes": 1}, "unknown"),
        ({"Profile": "N/A"}, "in force"),
    ],
)
def test_what_is_in_force(declared, order):
    assert orders(declared, bios.read({"Attributes": NOW})) == [order]


def test_numbers_are_one_however_they_are_written():
    assert orders({"NumaNodes": 4}, bios.read({"Attributes": {"NumaNodes": 4.0}})) == ["in force"]


def test_what_waits_is_said_as_such_also_where_all_settings_are_listed():
    """HPE's and Lenovo's settings hold what is in force, too."""
    declared = {"NumaNodes": 4, "QuietBoot": True, "BootMode": "Uefi"}
    for waiting in ({"NumaNodes": 4}, NOW | {"NumaNodes": 4}):
        assert orders(declared, Bios(NOW, waiting)) == ["waits", "in force", "differs"]
    row = bios.rows(declared, Bios(NOW, {"NumaNodes": 4}))[0]
    assert row.sentence == "BIOS NumaNodes is 1, 4 is declared and waits for the next start"


def test_what_is_not_said_is_no_mismatch():
    for said in (None, Bios({}), Bios({}, {"NumaNodes": 4})):
        assert [each.unknown for each in bios.check({"NumaNodes": 4}, said)] == [True]
    assert not list(bios.check(None, None))


def test_a_name_that_is_near():
    assert BiosComparison("NumaNode", 4, None, "unknown", "NumaNodes") == bios.rows({"NumaNode": 4}, Bios(NOW))[0]
    (found,) = bios.check({"NumaNode": 4}, Bios(NOW))
    assert found.sentence.endswith("no setting of that name: did you mean NumaNodes?") and not found.unknown


def test_it_is_one_of_the_mismatches_and_its_input_shows_what_is_in_force():
    hardware = redfish.read(redfish.served(redfish.machine("lab")), "lab")
    assert hardware.bios is None
    declared = {"NumaNodes": 4, "QuietBoot": True}
    verdict = examine(Declaration("dgx01", bios=declared), replace(hardware, bios=Bios(NOW)), gpus().values())
    assert [each.sentence for each in verdict.mismatches] == ["dgx01: BIOS NumaNodes is 1, 4 is declared"]
    now = node.observed_inputs({"bios": declared}, verdict.mismatches)
    assert now == {"bios": {"NumaNodes": 1, "QuietBoot": True}}


def seen(vendor, *quirks, waiting=()):
    """The BIOS as an inventory has it."""
    emulated = Emulated(vendor, lambda: frozenset(quirks))
    emulated.pending = dict(waiting)
    docs = redfish.served(redfish.machine(vendor))
    emulated.add(docs, "")
    return redfish.read(docs, vendor).bios


@pytest.mark.parametrize("vendor", SHAPES)
def test_every_makers_shape_is_read(vendor):
    said = seen(vendor, waiting={"NumaNodes": 4})
    assert said.in_force == {name: value for name, value in FACTORY.items() if value is not None}
    assert orders({"NumaNodes": 4, "QuietBoot": False}, said) == ["waits", "differs"]


def test_quirks_of_what_is_read():
    assert orders({"NumaNodes": 4}, seen("lab", "bios-unlinked", waiting={"NumaNodes": 4})) == ["waits"]
    assert orders({"NumaNodes": 4}, seen("lab", "bios-unsaid-before-a-start")) == ["not said"]
    assert seen("lab", "bios-nowhere") is None


# ---- the registry


@pytest.mark.parametrize(
    ("declared", "sentence"),
    [
        ({"BootMode": "UEFI"}, 'BIOS BootMode: "UEFI" is declared, allowed is one of "Uefi", "Bios"'),
        ({"BootMode": True}, 'BIOS BootMode: true is declared, allowed is one of "Uefi", "Bios"'),
        ({"NumaNodes": 9}, "BIOS NumaNodes: 9 is declared, allowed is at least 1 and at most 4"),
        ({"NumaNodes": 0}, "BIOS NumaNodes: 0 is declared, allowed is at least 1 and at most 4"),
        ({"NumaNodes": "4"}, 'BIOS NumaNodes: "4" is declared, allowed is a whole number'),
        ({"NumaNodes": True}, "BIOS NumaNodes: true is declared, allowed is a whole number"),
        ({"QuietBoot": 0}, "BIOS QuietBoot: 0 is declared, allowed is true or false"),
        ({"QuietBoot": "Disabled"}, 'BIOS QuietBoot: "Disabled" is declared, allowed is true or false'),
        ({"AssetName": 7}, "BIOS AssetName: 7 is declared, allowed is a text, in quotes"),
        (
            {"AssetName": "dgx-in-rack-a03"},
            'BIOS AssetName: "dgx-in-rack-a03" is declared, allowed is at least 0 and at most 10 characters',
        ),
        ({"CpuStepping": "9"}, "BIOS CpuStepping: it is read only, and can't be set"),
        ({"BootMod": "Uefi"}, "BIOS BootMod: this BIOS has no such setting: did you mean BootMode?"),
        ({"SetupPassword": "hunter2"}, "BIOS SetupPassword: it is a password, and none is set from a stack file"),
    ],
)
def test_what_a_registry_does_not_allow(declared, sentence):
    assert bios.faults(declared, Bios(NOW), KNOWN) == [(next(iter(declared)), sentence)]


def test_what_it_allows():
    good = {"BootMode": "Uefi", "NumaNodes": 4, "QuietBoot": False, "AssetName": "a03"}
    assert bios.faults(good, Bios(NOW), KNOWN) == []
    assert bios.faults({"CpuStepping": "8"}, Bios(NOW), KNOWN) == []  # as it is: nobody sets it
    assert bios.faults({"AssetName": "a03"}, Bios({"NumaNodes": 1}), KNOWN) == []  # hidden, and known to the registry


def test_without_a_registry_names_alone_are_compared():
    assert bios.faults({"NumaNodes": 9, "BootMode": "x"}, Bios(NOW), None) == []
    assert bios.faults({"NumaNode": 4}, Bios(NOW), None) == [
        ("NumaNode", "BIOS NumaNode: the BMC says no setting of that name: did you mean NumaNodes?")
    ]
    assert bios.faults({"NumaNode": 4}, Bios({}), None) == []


def test_long_lists_and_signs():
    values = [{"ValueName": f"V{n}"} for n in range(30)]
    entries = [
        {"AttributeName": "A", "Type": "Enumeration", "Value": values},
        {"AttributeName": "B", "Type": "Integer", "LowerBound": -40},
        {"AttributeName": "C", "Type": "Enumeration", "Value": []},
    ]
    known = bios.registry({"RegistryEntries": {"Attributes": entries}})
    ((_, sentence),) = bios.faults({"A": "V30"}, Bios({}), known)
    assert sentence.endswith('"V19" and 10 more')
    assert bios.faults({"B": -40, "C": "x"}, Bios({}), known) == []
    assert bios.faults({"B": -41}, Bios({}), known)[0][1].endswith("allowed is at least -40")


@pytest.mark.parametrize("junk", redfish.VALUES.values())
def test_junk_is_no_setting(junk):
    for document in ({"Attributes": junk}, {"Attributes": {"NumaNodes": junk}}, junk):
        said = bios.read(document, document)
        bios.faults({"NumaNodes": 4}, said, bios.registry(document))
        for row in bios.rows({"NumaNodes": 4}, said):
            assert row.sentence.isprintable() and len(row.sentence) < 1200
    for at in ("Type", "ReadOnly", "LowerBound", "UpperBound", "MinLength", "MaxLength", "Value", "AttributeName"):
        entry = {"AttributeName": "NumaNodes", "Type": "Integer"} | {at: junk}
        known = bios.registry({"RegistryEntries": {"Attributes": [entry, junk]}})
        for _, sentence in bios.faults({"NumaNodes": 4}, Bios(NOW), known):
            assert sentence.isprintable() and len(sentence) < 1200


def test_where_a_registry_is():
    def file(name, *places, **more):
        return {"Id": name, "Registry": name, "Location": list(places)} | more

    en, de = {"Language": "en", "Uri": "/redfish/v1/en"}, {"Language": "de", "Uri": "/redfish/v1/de"}
    web = {"Language": "en", "PublicationUri": "https://maker.example/x"}
    files = [file("Base.1.18", {"Uri": "/redfish/v1/base"}), file("BiosAttributeRegistry.1.0", de, web, en), None, {}]
    assert bios.registry_places("BiosAttributeRegistry.v1_0_0", files) == ["/redfish/v1/en", "/redfish/v1/de"]
    two = [file("BiosRegistryU54.v1", en), file("BiosRegistryU46.v2", de)]  # HPE: one for each family of ROMs
    assert bios.registry_places("BiosRegistryU46.v2", two) == ["/redfish/v1/de"]
    off = [file("Bios.1", {"Language": "en", "Uri": "https://evil.example/redfish/v1"})]
    assert bios.registry_places("Bios.1", off) == []
