"""CSV for NetBox: its columns and choices, as its import forms have them, and objects before what names them."""

import re

from ironburst.hall import netbox
from ironburst.hall.model import SPEEDS
from tests.unit.hall.halls import device, sound

# netbox/dcim/forms/bulk_import.py of NetBox 4.x: required columns, and others that are used
FORMS = {
    "1-sites": ({"name", "slug", "status"}, set()),
    "2-manufacturers": ({"name", "slug"}, set()),
    "3-device-roles": ({"name", "slug", "color"}, set()),
    "4-device-types": ({"manufacturer", "model", "slug"}, {"u_height"}),
    "5-racks": ({"site", "name", "status", "width", "u_height"}, {"max_weight", "weight_unit"}),
    "6-devices": (
        {"name", "role", "manufacturer", "device_type", "status", "site"},
        {"rack", "position", "face"},
    ),
    "7-interfaces": ({"device", "name", "type"}, set()),
    "8-cables": (
        {f"side_{side}_{key}" for side in "ab" for key in ("device", "type", "name")},
        {"type", "status", "length", "length_unit"},
    ),
}
HALL = device(sound(), "n1", vendor="NVIDIA", platform="dgx h100")
TABLES = netbox.tables(HALL)


def column(name, *keys):
    columns, rows = TABLES[name]
    return [row[0] if len(row) == 1 else row for row in (tuple(r[columns.index(k)] for k in keys) for r in rows)]


def test_the_columns_are_those_of_the_forms():
    assert list(TABLES) == list(FORMS) == sorted(FORMS)
    for name, (required, others) in FORMS.items():
        columns, rows = TABLES[name]
        assert required <= set(columns) <= required | others and rows
        assert all(len(row) == len(columns) for row in rows)


def test_what_is_named_was_made_before():
    assert set(column("6-devices", "manufacturer", "device_type")) <= set(
        column("4-device-types", "manufacturer", "model")
    )
    assert (
        set(column("4-device-types", "manufacturer")) == set(column("2-manufacturers", "name")) == {"NVIDIA", "unknown"}
    )
    assert set(column("6-devices", "role")) == set(column("3-device-roles", "name"))
    assert set(column("6-devices", "rack")) <= set(column("5-racks", "name"))
    interfaces = column("7-interfaces", "device", "name")
    assert len(interfaces) == len(set(interfaces)) == 2 * len(HALL.cables)
    sides = [column("8-cables", f"side_{side}_device", f"side_{side}_name") for side in "ab"]
    assert set(sides[0] + sides[1]) == set(interfaces)


def test_slugs_and_choices():
    slugs = column("4-device-types", "slug") + column("3-device-roles", "slug")
    assert "dgx-h100" in slugs and all(re.fullmatch(r"[a-z0-9_-]+", slug) for slug in slugs)
    assert len(set(column("4-device-types", "slug"))) == len(TABLES["4-device-types"][1])
    assert set(netbox.INTERFACES) == set(SPEEDS)
    assert column("5-racks", "u_height", "max_weight", "weight_unit")[0] == (48, 800, "kg")
    assert ("n1", "a03", 1, "front") in column("6-devices", "name", "rack", "position", "face")
