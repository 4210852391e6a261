"""From NetBox's REST pages to a hall: there and back, what NetBox is unkind about, damaged pages."""

import copy
import json
import re
from pathlib import Path

import pytest
import yaml
from yaml import CSafeLoader

from ironburst import catalog
from ironburst.cli.hall_import import platform_of
from ironburst.config import halls
from ironburst.config.load import load
from ironburst.hall import netbox, power
from ironburst.hall.netbox_import import lines
from ironburst.hall.netbox_import.proposal import proposal
from ironburst.hall.netbox_import.scope import READ
from ironburst.hall.seen import NotUnderstood
from ironburst.nodes import ranges
from tests.unit.hall.netbox_rest import NetBox, choice, imported

EXAMPLE = Path(__file__).parents[3] / "docs/how-to/sysadmin/hall.yaml"
PLATFORMS = {slug: platform_of(each) for slug, each in catalog.platforms().items()}
ROLES = {"compute": "gpu", "tor": "ethernet", "ib-leaf": "leaf"}


def take(pages, **given):
    return proposal(pages, PLATFORMS, ranges.compact, **{"roles": ROLES, **given})


def said(found, which):
    return [str(note) for note in found.of(which)]


def whole(folder, hall, change=lambda hall: None):
    """The example's stack file with this hall, as the rules see it."""
    stack = yaml.safe_load(EXAMPLE.read_text())
    change(hall)
    stack["config"]["ironburst:cluster"]["halls"] = [hall]
    path = folder / "Pulumi.hall.yaml"
    path.write_text(json.dumps(stack))
    return halls.declared(load(path))[0]


def example(folder, change=lambda hall: None):
    stack = yaml.safe_load(EXAMPLE.read_text())
    return whole(folder, stack["config"]["ironburst:cluster"]["halls"][0], change)


def completed(hall):
    """What NetBox doesn't know, as a person declares it: the example's."""
    before = yaml.safe_load(EXAMPLE.read_text())["config"]["ironburst:cluster"]["halls"][0]
    hall |= {key: before[key] for key in ("cidr", "bmc_cidr", "cooling_kw", "inlet_c")}
    for rack, its in zip(hall["racks"], before["racks"], strict=True):
        rack |= {key: its[key] for key in ("at_m", "power_kw", "cooling_kw", "cooling")}
    addresses = {name: each["addresses"] for each in before["nodes"] for name in [each["names"]]}
    for nodes in hall["nodes"]:
        nodes["addresses"] = addresses[nodes["names"]]
    for each in (*hall["switches"], *hall["nodes"]):
        like = next(it for it in (*before["switches"], *before["nodes"]) if it["names"] == each["names"])
        if "chassis" in like:
            each["chassis"] = like["chassis"] | each["chassis"]
        each |= {key: like[key] for key in ("rails", "subnet_manager") if key in like}


def test_there_and_back_it_is_the_same_hall(tmp_path):
    before = example(tmp_path)
    found = take(imported(netbox.tables(before)).pages(limit=30))
    assert not found.of("left")
    (hall,) = yaml.safe_load("\n".join(lines.lines(found)))["halls"]
    after = whole(tmp_path, hall, completed)

    def parts(hall):
        things = {each.name: {**vars(each), "where": ()} for each in (*hall.circuits, *hall.racks, *hall.devices)}
        for rack in hall.racks:
            things[rack.name]["pdus"] = [(pdu.name, pdu.circuit, pdu.outlets) for pdu in rack.pdus]
        return things

    assert parts(after) == parts(before)
    assert {(each.a, each.b, each.type, each.speed, each.length_m) for each in after.cables} == {
        (each.a, each.b, each.type, each.speed, each.length_m) for each in before.cables
    }
    # and everything that a person had to add had been asked for
    asked = "\n".join(said(found, "declare"))
    for key in ("cidr", "cooling_kw", "inlet_c", "at_m", "power_kw", "rails", "subnet_manager", "psus_needed"):
        assert key in asked
    assert said(found, "declare").count("cidr: the network of the nodes: NetBox has no address of its nodes") == 1


def test_cords_come_back_where_outlets_are_counted(tmp_path):
    def counted(hall):
        for rack in hall["racks"]:
            for pdu in rack["pdus"]:
                pdu["outlets"] = 30

    before = example(tmp_path, counted)
    found = take(imported(netbox.tables(before)).pages())
    (hall,) = yaml.safe_load("\n".join(lines.lines(found)))["halls"]
    assert {pdu["outlets"] for rack in hall["racks"] for pdu in rack["pdus"]} == {30}
    cords = {(each.device, each.pdu, each.phase) for each in power.cords(before)}
    taken = set()
    for group in (*hall["nodes"], *hall["switches"]):
        its = group["names"] if isinstance(group["names"], list) else ranges.expand(group["names"])
        for cord in group["cords"]:
            pdu, _, phase = cord.partition("/")
            taken |= {(name, pdu, phase) for name in its}
    assert taken == cords


@pytest.fixture
def box():
    """What real NetBoxes have."""
    its = NetBox()
    site, other = its.site("DC1"), its.site("DC2")
    hall, cage = its.location(site, "Hall-A"), None
    cage = its.location(site, "Cage-1", parent=hall)
    elsewhere = its.location(site, "Office")
    # counted from above, weights in pounds; the same name in two locations; a rack of another site
    down = its.rack(
        site, "R01", 42, hall, desc_units=True, max_weight=3000, weight_unit=choice("lb"), mounting_depth=740
    )
    high = its.rack(site, "Rack 2", 48, cage, starting_unit=3, custom_fields={"power_kw": 30, "row": None})
    its.rack(site, "R01", 42, elsewhere)
    away = its.rack(other, "R01", 42)
    dgx = its.type("NVIDIA", "DGX H100", 8, weight=287.6, weight_unit=choice("lb"))
    server = its.type("Supermicro", "SYS-421", 2.5)
    strip = its.type("APC", "AP8941", 0)
    torch = its.type("Arista", "7060X", 1)
    blade = its.type("Dell", "M630", 0, subdevice_role=choice("child"))
    chassis = its.type("Dell", "M1000e", 10, subdevice_role=choice("parent"))
    panel = its.type("Panduit", "FAP", 1)
    n1 = its.device(
        site, "DGX01.dc1.example.org", "Compute", dgx, down, 1, serial="S1", primary_ip4=its.address("10.0.1.11/24"),
        oob_ip=its.address("10.0.9.11/24"),
    )  # fmt: skip
    n2 = its.device(
        site, "dgx02", "Compute", dgx, down, 9, serial="S2", primary_ip4=its.address("10.0.1.12/24"),
        status=choice("staged"),
    )  # fmt: skip
    its.device(site, "odd", "Compute", server, high, 12.5)
    its.device(other, "dgx02", "Compute", dgx, away, 1)
    its.device(site, "old", "Compute", server, None, None, status=choice("decommissioning"))
    its.device(site, None, "Compute", dgx, high, 30)
    its.device(site, "shelved", "Compute", server, high)
    its.device(site, "enclosure", "Chassis", chassis, high, 38)
    bay = {"id": 9, "display": "enclosure", "device_bay": {"id": 1, "name": "Bay 1"}}
    its.device(site, "blade1", "Compute", blade, high, parent_device=bay)
    members = {"virtual_chassis": {"id": 1, "name": "vc1"}}
    sw = its.device(site, "sw1", "ToR", torch, high, 50, **members)
    back = its.device(site, "sw2", "ToR", torch, high, 50, "rear", **members)
    patch, patch2 = (
        its.device(site, "pp1", "Patch", panel, down, 41),
        its.device(site, "pp2", "Patch", panel, high, 48),
    )
    # power: two panels with feeds of the same name; 60 % of one; DC; an empty PDU; two cables into one PDU
    feed_a = its.feed(site, "PanelA", "Feed 1", max_utilization=60, location=its.brief("dcim/locations", hall))
    feed_b = its.feed(
        site, "PanelB", "Feed 1", type=choice("redundant"), phase=choice("single-phase"), voltage=230, amperage=32,
        status=choice("failed"), location=its.brief("dcim/locations", hall),
    )  # fmt: skip
    its.feed(site, "PanelA", "Minus", supply=choice("dc"), voltage=-48)
    its.feed(other, "PanelC", "Feed 9")
    pa, pb = its.device(site, "PDU A", "PDU", strip, down, 20), its.device(site, "PDU B", "PDU", strip, down)
    lone = its.device(site, "PDU C", "PDU", strip, high)
    inlets = [its.port("dcim.powerport", each, "in", maximum_draw=None) for each in (pa, pb, lone)]
    outs = [
        its.port("dcim.poweroutlet", each, str(n), power_port=None, feed_leg=choice(leg))
        for each in (pa, pb, lone)
        for n, leg in ((1, "A"), (2, "C"), (10, None))
    ]
    its.cable(("dcim.powerfeed", feed_a), ("dcim.powerport", inlets[0]), "power")
    its.cable(("dcim.powerport", inlets[1]), ("dcim.powerfeed", feed_b), "power", status="planned")
    psus = [its.port("dcim.powerport", n1, f"PSU{n}", maximum_draw=3300, allocated_draw=1700) for n in (10, 2, 1)]
    its.cable(("dcim.powerport", psus[2]), ("dcim.poweroutlet", outs[0]), "power")
    its.cable(("dcim.powerport", psus[1]), ("dcim.poweroutlet", outs[4]), "power")
    its.cable(("dcim.powerport", psus[0]), ("dcim.poweroutlet", outs[8]), "power")

    # networks
    def port(device, name, kind="other", **more):
        return ("dcim.interface", its.port("dcim.interface", device, name, type=choice(kind), **more))

    sw_ports = [port(sw, f"Ethernet1/{n}", "400gbase-x-qsfpdd") for n in range(1, 5)]
    port(sw, "Vlan1", "virtual"), port(sw, "Po1", "lag")
    management = port(sw, "Management1", "1000base-t", mgmt_only=True)
    [port(back, f"Eth{n}/{m}", "100gbase-x-qsfp28") for n in (1, 2) for m in (1, 2)]
    nics = [port(node, f"mlx5_{n}", "infiniband-ndr") for node in (n1, n2) for n in (10, 2)]
    eth = [port(node, "eth0", "100gbase-x-qsfp28") for node in (n1, n2)]
    its.cable(eth[0], sw_ports[0], "dac-passive", 6, "ft")
    # through two panels with a trunk of two fibres
    rears = [its.port("dcim.rearport", each, "rear", positions=2) for each in (patch, patch2)]
    fronts = {
        (name, n): its.port(
            "dcim.frontport", each, f"F{n}",
            rear_ports=[{"position": 1, "rear_port": rear["id"], "rear_port_position": n}],
        )
        for name, each, rear in (("a", patch, rears[0]), ("b", patch2, rears[1]))
        for n in (1, 2)
    }  # fmt: skip
    its.cable(("dcim.rearport", rears[0]), ("dcim.rearport", rears[1]), "mmf-om4", 0.02, "km")
    its.cable(eth[1], ("dcim.frontport", fronts["a", 2]), "mmf-om4", 300, "cm")
    its.cable(("dcim.frontport", fronts["b", 2]), sw_ports[1], "mmf-om3", 100, "in")
    its.cable(nics[0], ("dcim.frontport", fronts["a", 1]), "smf")
    # a breakout, a managed one, one on its way out, one to what isn't taken
    its.cable(sw_ports[2], [nics[2], nics[3]], "aoc", 5, "m")
    its.cable(nics[1], sw_ports[3], None, None, None, "decommissioning")
    its.cable(management, port(n2, "iDRAC", "1000base-t"), "cat6a", 2, "m")
    its.add("dcim/console-ports", name="con0")
    return its


def test_what_netbox_is_unkind_about(box):
    found = take(box.pages(limit=7), site="dc1", location="hall-a")
    hall = yaml.safe_load("\n".join(lines.lines(found)))["halls"][0]
    assert (hall["name"], hall["cidr"]) == ("hall-a", "10.0.1.0/24")
    assert [(each["name"], each["units"]) for each in hall["racks"]] == [("r01", 42), ("rack-2", 48)]
    assert hall["racks"][0]["max_weight_kg"] == 1360.78
    nodes = {str(each["names"]): each for each in hall["nodes"]}
    # 8 units from 1 on, counted from above, are 35 to 42; 2.5 from 12.5 on are 10 to 12, where units begin at 3
    assert nodes["dgx01"] | {"cords": None} == {
        "names": "dgx01", "platform": "dgx-h100", "rack": "r01", "units": [35], "addresses": "10.0.1.11",
        "serials": ["S1"], "infiniband_links": 2, "chassis": {"psus": 3}, "cords": None,
    }  # fmt: skip
    assert nodes["dgx01"]["cords"] == ["PDU-A/L1", "PDU-B/L3"]
    assert (nodes["dgx02"]["units"], nodes["odd"]["units"], nodes["odd"]["height"]) == ([27], [10], 3)
    assert nodes["odd"]["platform"] is None and set(nodes) == {"dgx01", "dgx02", "odd", "shelved", "blade1"}
    assert all("rack" not in nodes[name] for name in ("shelved", "blade1"))
    switches = {each["names"]: each for each in hall["switches"]}
    assert (switches["sw1"]["units"], switches["sw1"]["ports"]) == ([48], 4)
    assert "units" not in switches["sw2"]
    assert hall["circuits"] == [
        {"name": "Feed-1", "feed": "A", "phases": 3, "volts": 415, "breaker_a": 47.2},  # 60 % of 63 A are 80 % of it
        {"name": "PanelB-Feed-1", "feed": "B", "phases": 1, "volts": 230, "breaker_a": 32},
    ]
    assert hall["racks"][0]["pdus"] == [
        {"name": "PDU-A", "circuit": "Feed-1", "outlets": 3},
        {"name": "PDU-B", "circuit": "PanelB-Feed-1", "outlets": 3},
    ]
    assert "pdus" not in hall["racks"][1]
    assert hall["cables"] == [
        {"ends": ["dgx01/eth0", "sw1/1"], "type": "dac", "speed": "100GbE", "length_m": 1.83},
        {"ends": ["dgx02/eth0", "sw1/2"], "type": "multimode", "speed": "100GbE", "length_m": 25.54},
    ]


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("look", "device 'DGX01.dc1.example.org': is dgx01 here"),
        ("look", "dgx02: is staged in NetBox"),
        ("look", "odd: takes half units in NetBox (2.5 from 12.5); here all of each"),
        ("look", "r01: NetBox counts its units from above"),
        ("look", "rack-2: NetBox counts its units from 3"),
        ("look", "sw1, sw2: is of virtual chassis vc1"),
        ("look", "sw2: is at the rear"),
        ("look", "Feed-1: may be used to 60 %"),
        ("look", "PanelB-Feed-1: is failed"),
        ("look", "PDU-A: takes unit 20 of r01 in NetBox; here a PDU takes none"),
        ("look", "dgx01: NetBox allocates 5100 W"),
        ("look", "dgx02, dgx01: mlx5_2, mlx5_10 are ib1 to ib2 here"),
        ("look", "cable of dgx01/eth0: is 100GbE in NetBox, and 400GbE at sw1/1: the slower one is taken"),
        ("look", "dgx02/eth0 to sw1/2: goes through a patch panel"),
        ("declare", "sw2: units: in NetBox it shares unit 48 of rack-2 with sw1"),
        ("declare", "sw2: numbers of its ports: Eth1/1, Eth1/2, Eth2/1, ... of NetBox don't end"),
        ("declare", "shelved: units in rack-2: it has no position there"),
        ("declare", "blade1: its place: NetBox has it in a bay of enclosure"),
        ("declare", "odd: platform: none of the catalogue is called SYS-421"),
        ("declare", "dgx01: bmc, at 10.0.9.11 in NetBox"),
        ("declare", "dgx01: chassis: psus_needed, for the catalogue's dgx-h100 has 6 psus"),
        ("left", "dcim/console-ports: 1 of them, which aren't read"),
        ("left", "devices/5 old: has no location"),
        ("left", "DGX H100 without a name (devices/6): has no name"),
        ("left", "enclosure: is of role chassis, which isn't ours, so its units are free here: --role chassis=KIND"),
        ("left", "pp1, pp2: is of role patch"),
        ("left", "rack-2: custom fields power_kw aren't read"),
        ("left", "PDU-C: has no cable at its inputs"),
        ("left", "dgx01 PSU10: is cabled to PDU-C"),
        ("left", "cable 10, 7 of dgx01/ib2: ends in a patch panel"),
        ("left", "cable 11 of sw1/3: has 1 and 2 ends"),
        ("left", "cable 12: is decommissioning"),
        ("left", "cable 13 of dgx02/iDRAC: ends at sw1 Management1, which is no port here"),
    ],
)
def test_what_is_not_taken_as_it_is_is_told(box, which, words):
    found = take(box.pages(), site="dc1", location="hall-a")
    of, text = words.split(": ", 1)
    told = said(found, which)
    assert any(of in note.split(": ")[0] and text in note for note in told), told


def test_everything_of_the_site_is_in_the_hall_or_told(box):
    """No device and no cable is dropped in silence."""
    found = take(box.pages(), site="dc1", location="hall-a")
    text = "\n".join(lines.lines(found))
    for device in box.objects["dcim/devices"]:
        if device["site"]["name"] == "DC1":
            name = device["name"] or f"devices/{device['id']}"
            assert name in text or netbox.slug(name.split(".")[0]) in text, name
    left = " ".join(said(found, "left"))
    told = {int(id_) for ids in re.findall(r"cable ([\d, ]+)", left) for id_ in re.findall(r"\d+", ids)}
    taken = {1, 2, 3, 4, 6, 7, 8, 9}  # from feeds to PDUs, cords, one link, and one of three cables
    assert "dgx01 PSU10" in left  # cable 5
    assert {each["id"] for each in box.objects["dcim/cables"]} == taken | told | {5}


def test_a_whole_site_has_its_racks_told_apart(box):
    """Names of racks are each once in a location, not in a site."""
    found = take(box.pages(), site="dc1")
    assert [each["name"] for each in found.hall["racks"]] == ["r01", "rack-2", "office-r01"]
    assert any(note.startswith("old, cable 12: is decommissioning") for note in said(found, "left"))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "name one of dc1, dc2 with --site"),
        ({"site": "dc3"}, "--site dc3: racks and devices are of dc1, dc2"),
        ({"site": "dc1", "location": "hall-b"}, "--location hall-b: dc1 has cage-1, hall-a, office"),
    ],
)
def test_which_hall_is_asked_for(box, given, words):
    with pytest.raises(NotUnderstood, match=words):
        take(box.pages(), **given)


def test_older_netboxes(box):
    """device_role until 3.5; a front port's one rear port until 4.4; no starting_unit until 3.7."""
    new = take(box.pages(), site="dc1", location="hall-a")
    for device in box.objects["dcim/devices"]:
        device["device_role"] = device.pop("role")
        del device["oob_ip"]
    for port in box.objects["dcim/front-ports"]:
        (mapped,) = port.pop("rear_ports")
        port |= {"rear_port": {"id": mapped["rear_port"]}, "rear_port_position": mapped["rear_port_position"]}
    for rack in box.objects["dcim/racks"]:
        if rack["starting_unit"] == 1:
            del rack["starting_unit"]
    old = take(box.pages(), site="dc1", location="hall-a")
    assert old.hall == new.hall


def test_what_was_not_saved_is_asked_for_or_told(box):
    """Pages of racks, devices and types are needed; all others are told where they lack."""
    for endpoint in [*box.objects]:
        some = copy.deepcopy(box)
        del some.objects[endpoint]
        pages = some.pages()
        if endpoint in ("dcim/racks", "dcim/devices", "dcim/device-types"):
            with pytest.raises(NotUnderstood, match=f"no object of {endpoint}: save"):
                take(pages, site="dc1")
        else:
            yaml.safe_load("\n".join(lines.lines(take(pages, site="dc1"))))
    del box.objects["dcim/interfaces"], box.objects["dcim/power-feeds"]
    found = take(box.pages(), site="dc1")
    assert "12 cables: no dcim/interfaces were saved" in said(found, "left")
    assert any(note.startswith("circuits: NetBox has no power feeds") for note in said(found, "declare"))


PAGE = {"count": 1, "next": None, "previous": None, "results": []}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "devices.json is no JSON, line 1: save what"),
        ("<html>Log in</html>", "is no JSON, line 1"),
        ("[" * 100_000, "is no JSON"),
        ('{"detail": "Invalid token"}', "devices.json is NetBox's refusal: Invalid token"),
        ("[]", "has no `results`"),
        ('{"results": 3}', "has no `results`"),
        (json.dumps(PAGE | {"count": "9"}), 'has `count` "9", where a number belongs'),
        (json.dumps(PAGE | {"next": 7}), "has `next` 7, where a URL belongs"),
        (json.dumps(PAGE | {"results": [None]}), "devices.json, object 1 of `results`, has no url"),
        (json.dumps(PAGE | {"results": [{"id": 3}]}), "without brief, fields or omit"),
    ],
)
def test_what_is_no_page_is_one_sentence(text, words):
    with pytest.raises(NotUnderstood) as caught:
        take({"devices.json": text})
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_every_page_is_needed(box):
    pages = box.pages(limit=5)
    for file in [each for each in pages if each.startswith("interfaces-")]:
        some = {name: text for name, text in pages.items() if name != file}
        with pytest.raises(NotUnderstood, match=r"dcim/interfaces: of 18 objects .* fetch every page.*offset="):
            take(some, site="dc1")
    twice = pages | {"again.json": pages["interfaces-1.json"]}
    assert take(twice, site="dc1").hall == take(pages, site="dc1").hall


def test_pages_by_ids_have_no_count(box):
    """`?start=`: count is null, and the last page says that none follows."""
    pages = {name: json.loads(text) | {"count": None} for name, text in box.pages(limit=5).items()}
    texts = {name: json.dumps(page) for name, page in pages.items()}
    assert take(texts, site="dc1").hall == take(box.pages(), site="dc1").hall
    del texts["interfaces-3.json"]
    with pytest.raises(NotUnderstood, match="dcim/interfaces: the last page isn't there"):
        take(texts, site="dc1")


WRONG = (..., None, True, "", "x", "\ud800\n# x: [", -1, 0, 1e300, 99, [], [7], {}, {"id": "x"}, {"id": 1}, [{"a": 1}])
NEVER_READ = {"url", "description", "tags", "created", "label", "enabled", "color", "facility_id", "mounting_depth"}
NEVER_READ |= {"is_full_depth", "subdevice_role", "region", "vc_position", "family", "face", "vm_role"}


@pytest.mark.parametrize("every", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("endpoint", sorted(READ))
def test_a_damaged_page_is_a_sentence_or_a_proposal(box, endpoint, every):
    """Each value of an object, missing (...) and of any other form: a sentence that names file and object, or YAML.
    `every`: of the forms that each value may have, every so many-th, in turn.
    """
    pages, its = box.pages(), box.objects[endpoint]
    endpoint = endpoint.split("/")[1]
    thing, sentences, seen = its[0], 0, set()
    for turn, key in enumerate(sorted(set(thing) - NEVER_READ)):
        for given in WRONG[turn % every :: every]:
            its[0] = {name: value for name, value in thing.items() if name != key}
            its[0] |= {} if given is ... else {key: given}
            changed = pages | {f"{endpoint}-0.json": json.dumps({"count": len(its), "next": None, "results": its})}
            try:
                found = take(changed, site="dc1", location="hall-a")
            except NotUnderstood as error:
                text, sentences = str(error), sentences + 1
                assert "\n" not in text and (re.match(r"[a-z-]+-0.json: ", text) or text.startswith("--location")), text
            else:
                text = "\n".join(lines.lines(found))
                if text in seen:
                    continue
                seen.add(text)
                (hall,) = yaml.load(text.encode().decode(), CSafeLoader)["halls"]
                assert set(hall) <= {"name", "cidr", "circuits", "racks", "switches", "cables", "nodes"}
    assert sentences or endpoint == "sites"


def test_names_of_netboxs_end_no_comment_and_no_text(box):
    """What is proposed is read back as it was meant."""
    nasty = 'a: b # c\n- d: "e" \u2028 \U0001f600 [f, {g}] yes'
    for device in box.objects["dcim/devices"]:
        device["serial"] = f"{nasty}{device['id']}"
    for rack in box.objects["dcim/racks"]:
        rack["name"] = f"{nasty}{rack['id']}"
    for port in box.objects["dcim/interfaces"]:
        port["name"] = f"{nasty}{port['name']}"
    found = take(box.pages(), site="dc1")
    (hall,) = yaml.safe_load("\n".join(lines.lines(found)))["halls"]
    assert len(hall["nodes"]) == len(found.hall["nodes"])
    assert hall["nodes"][0]["serials"] == ['a: b # c - d: "e" [f, {g}] yes2']
    assert len(hall["cables"]) == 2
