"""CSV for NetBox: its columns and choices, as its import forms have them, and objects before what names them."""

import csv
import io
import re
from dataclasses import replace

from ironburst.hall import netbox, tables
from ironburst.hall.model import SPEEDS
from tests.unit.hall.halls import cable as one_cable
from tests.unit.hall.halls import device, more_cables, rack, recabled, sound

SIDES = {f"side_{side}_{key}" for side in "ab" for key in ("device", "type", "name")}
# netbox/dcim/forms/bulk_import.py of NetBox 4.6.8, chosen columns of 4.0 to 4.5 (the last file: 4.6): required
# columns, and others that are used
FORMS = {
    "01-sites": ({"name", "slug", "status"}, set()),
    "02-manufacturers": ({"name", "slug"}, set()),
    "03-device-roles": ({"name", "slug", "color"}, set()),
    "04-device-types": ({"manufacturer", "model", "slug"}, {"u_height", "is_full_depth", "weight", "weight_unit"}),
    "05-racks": ({"site", "name", "status", "width", "u_height"}, {"max_weight", "weight_unit"}),
    "06-power-panels": ({"site", "name"}, set()),
    "07-power-feeds": (
        {"site", "power_panel", "name", "status", "type", "supply", "phase"},
        {"voltage", "amperage"},
    ),
    "08-devices": ({"name", "role", "manufacturer", "device_type", "status", "site"}, {"rack", "position", "face"}),
    "09-power-ports": ({"device", "name"}, {"maximum_draw"}),
    "10-power-outlets": ({"device", "name"}, {"power_port", "feed_leg"}),
    "11-interfaces": ({"device", "name", "type"}, {"speed"}),
    "12-cables": (SIDES, {"type", "status", "length", "length_unit"}),
    "13-feed-cables": (SIDES - {"side_a_device"}, {"side_a_power_panel", "type", "status"}),
}
HALL = device(sound(), "n1", vendor="NVIDIA", platform="dgx h100")
TABLES = netbox.tables(HALL)


def column(name, *keys, of=TABLES):
    columns, rows = of[name]
    return [row[0] if len(row) == 1 else row for row in (tuple(r[columns.index(k)] for k in keys) for r in rows)]


def test_the_columns_are_those_of_the_forms():
    assert list(TABLES) == list(FORMS) == sorted(FORMS)
    for name, (required, others) in FORMS.items():
        columns, rows = TABLES[name]
        assert required <= set(columns) <= required | others and rows
        assert all(len(row) == len(columns) for row in rows)


def test_what_is_named_was_made_before():
    types = set(column("04-device-types", "manufacturer", "model"))
    assert set(column("08-devices", "manufacturer", "device_type")) <= types
    makers = set(column("02-manufacturers", "name"))
    assert set(column("04-device-types", "manufacturer")) == makers == {"NVIDIA", "unknown"}
    assert set(column("08-devices", "role")) == set(column("03-device-roles", "name"))
    assert set(column("08-devices", "rack")) <= set(column("05-racks", "name"))
    assert set(column("07-power-feeds", "power_panel")) == set(column("06-power-panels", "name"))
    names = set(column("08-devices", "name"))
    ports = {
        netbox.IS: column("11-interfaces", "device", "name"),
        netbox.PORT: column("09-power-ports", "device", "name"),
        netbox.OUTLET: column("10-power-outlets", "device", "name"),
    }
    for its in ports.values():
        assert len(its) == len(set(its)) and {name for name, _ in its} <= names
    for side in "ab":
        for name, kind, port in column("12-cables", *(f"side_{side}_{key}" for key in ("device", "type", "name"))):
            assert (name, port) in ports[kind]
    for panel, feed in column("13-feed-cables", "side_a_power_panel", "side_a_name"):
        assert (panel, feed) in column("07-power-feeds", "power_panel", "name")
    assert set(column("13-feed-cables", "side_b_device", "side_b_name")) <= set(ports[netbox.PORT])


def test_no_port_has_two_cables():
    ends = [end for side in "ab" for end in column("12-cables", *(f"side_{side}_{k}" for k in ("device", "name")))]
    assert len(ends) == len(set(ends))


def test_slugs_and_choices():
    slugs = column("04-device-types", "slug") + column("03-device-roles", "slug")
    assert "dgx-h100" in slugs and all(re.fullmatch(r"[a-z0-9_-]+", slug) for slug in slugs)
    assert set(netbox.INTERFACES) == set(SPEEDS)
    assert column("05-racks", "u_height", "max_weight", "weight_unit")[0] == (48, 800, "kg")
    assert ("n1", "a03", 1, "front") in column("08-devices", "name", "rack", "position", "face")
    assert ("a03-A", "primary", "three-phase", 415, 63) in column(
        "07-power-feeds", "name", "type", "phase", "voltage", "amperage"
    )
    # a column that isn't there is False in NetBox's forms, and a type of half depth leaves room behind it
    assert set(column("04-device-types", "is_full_depth", "u_height")) >= {("True", 8), ("False", 0)}


def test_what_netbox_would_refuse_is_mended():
    """One model a maker, whole volts, two decimals, no unit without a rack."""
    odd = device(HALL, "n2", vendor="NVIDIA", platform="dgx h100", weight_kg=130.126)
    odd = device(odd, "n3", vendor="NVIDIA", platform="DGX h100", height=9)
    odd = device(odd, "n4", rack=None)
    odd = recabled(odd, "n1/ib1", length_m=1.23456)
    odd = replace(odd, circuits=tuple(replace(each, volts=207.8, breaker_a=63.5) for each in odd.circuits))
    its = netbox.tables(odd)
    models = column("04-device-types", "manufacturer", "slug", of=its)
    assert len(models) == len(set(models))
    assert [m for m in column("08-devices", "device_type", of=its) if "h100" in m] == [
        "dgx h100",
        "dgx h100 (2)",
        "DGX h100 (3)",
    ]
    assert 130.13 in column("04-device-types", "weight", of=its)
    assert ("n4", None, None, None) in column("08-devices", "name", "rack", "position", "face", of=its)
    assert 1.23 in column("12-cables", "length", of=its)
    assert set(column("07-power-feeds", "voltage", "amperage", of=its)) == {(207, 63)}


def test_a_feed_with_two_pdus_has_no_cable():
    """NetBox's feed has one."""
    both = rack(HALL, "a03", pdus=(*HALL.racks[0].pdus, replace(HALL.racks[0].pdus[0], name="pa2")))
    its = netbox.tables(both)
    assert "a03-A" not in column("13-feed-cables", "side_a_name", of=its)
    assert "a03-B" in column("13-feed-cables", "side_a_name", of=its)


def test_ports_without_a_cable_are_there_and_speeds_are_told_apart():
    its = netbox.tables(more_cables(HALL, one_cable("n1/eth2", "eth1/60", speed="HDR100", type="twisted-pair")))
    assert len([name for name in column("11-interfaces", "device", of=its) if name == "leaf1"]) == 64
    assert ("leaf1", "64", "other", None) in column("11-interfaces", "device", "name", "type", "speed", of=its)
    assert ("n1", "eth2", "infiniband-hdr", 100_000_000) in its["11-interfaces"][1]


def test_netboxs_own_csv_reader_reads_them():
    """It looks for the dialect itself, by csv.Sniffer, and falls back to Excel's (utilities/forms/bulk_import.py)."""
    for name, its in TABLES.items():
        text = tables.as_csv(*its).strip()
        try:
            dialect = csv.Sniffer().sniff(text, delimiters=",;|\t")
        except csv.Error:
            dialect = csv.excel
        read = list(csv.reader(io.StringIO(text), dialect=dialect))
        assert read == [["" if each is None else str(each) for each in row] for row in (its[0], *its[1])], name
