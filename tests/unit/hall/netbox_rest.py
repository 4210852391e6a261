"""A NetBox in memory, as its REST API answers: ids for each model from 1 on, brief objects inside whole ones, choices
as {value, label}, decimals as numbers, pages with `next`. Held against the serializers of NetBox 4.6.8.
"""

import json

BRIEF = {
    "dcim/sites": ("name", "slug"),
    "dcim/locations": ("name", "slug"),
    "dcim/device-roles": ("name", "slug"),
    "dcim/manufacturers": ("name", "slug"),
    "dcim/device-types": ("manufacturer", "model", "slug"),
    "dcim/cables": ("label",),
    "dcim/power-feeds": ("name", "cable"),
    "ipam/ip-addresses": ("address",),
}
PORTS = {
    "dcim.interface": "dcim/interfaces",
    "dcim.powerport": "dcim/power-ports",
    "dcim.poweroutlet": "dcim/power-outlets",
    "dcim.powerfeed": "dcim/power-feeds",
    "dcim.frontport": "dcim/front-ports",
    "dcim.rearport": "dcim/rear-ports",
}


def choice(value):
    return None if value is None else {"value": value, "label": str(value).title()}


def number(value):
    return None if value in (None, "") else float(value)


class NetBox:
    """`base`: as NetBox writes it behind a proxy that it doesn't know of: http."""

    def __init__(self, base="http://netbox.example"):
        self.base = base
        self.objects = {}

    def add(self, endpoint, **values):
        its = self.objects.setdefault(endpoint, [])
        id_ = len(its) + 1
        display = values.get("name") or values.get("model") or f"#{id_}"
        common = {"id": id_, "url": f"{self.base}/api/{endpoint}/{id_}/", "display": display, "description": ""}
        its.append(common | {"tags": [], "custom_fields": {}, "created": "2026-11-01T10:00:00Z"} | values)
        return its[-1]

    def brief(self, endpoint, thing):
        if thing is None:
            return None
        keys = ("id", "url", "display", "description", *BRIEF.get(endpoint, ("name",)))
        return {key: thing[key] for key in keys if key in thing}

    def one(self, endpoint, **wanted):
        (found,) = [each for each in self.objects[endpoint] if all(each[k] == v for k, v in wanted.items())]
        return found

    def site(self, name="dc1"):
        return self.add("dcim/sites", name=name, slug=name.lower(), status=choice("active"), region=None)

    def location(self, site, name, parent=None):
        return self.add(
            "dcim/locations",
            name=name,
            slug=name.lower(),
            site=self.brief("dcim/sites", site),
            parent=self.brief("dcim/locations", parent),
            status=choice("active"),
        )

    def rack(self, site, name, units=42, location=None, **values):
        return self.add(
            "dcim/racks",
            **{
                "name": name,
                "facility_id": None,
                "site": self.brief("dcim/sites", site),
                "location": self.brief("dcim/locations", location),
                "status": choice("active"),
                "u_height": units,
                "starting_unit": 1,
                "desc_units": False,
                "weight": None,
                "max_weight": None,
                "weight_unit": None,
                "mounting_depth": None,
                **values,
            },
        )

    def type(self, maker, model, u_height=1.0, **values):
        makers = [each for each in self.objects.get("dcim/manufacturers", []) if each["name"] == maker]
        its = makers[0] if makers else self.add("dcim/manufacturers", name=maker, slug=maker.lower())
        return self.add(
            "dcim/device-types",
            **{
                "manufacturer": self.brief("dcim/manufacturers", its),
                "model": model,
                "slug": model.lower().replace(" ", "-"),
                "u_height": number(u_height),
                "is_full_depth": True,
                "subdevice_role": None,
                "weight": None,
                "weight_unit": None,
                **values,
            },
        )

    def device(self, site, name, role, kind, rack=None, position=None, face=None, **values):
        roles = [each for each in self.objects.get("dcim/device-roles", []) if each["name"] == role]
        its = roles[0] if roles else self.add("dcim/device-roles", name=role, slug=role.lower(), color="9e9e9e")
        return self.add(
            "dcim/devices",
            **{
                "name": name,
                "device_type": self.brief("dcim/device-types", kind),
                "role": self.brief("dcim/device-roles", its),
                "serial": "",
                "site": self.brief("dcim/sites", site),
                "location": rack["location"] if rack else None,
                "rack": self.brief("dcim/racks", rack),
                "position": number(position),
                "face": choice(face or ("front" if position else None)),
                "parent_device": None,
                "status": choice("active"),
                "primary_ip4": None,
                "oob_ip": None,
                "virtual_chassis": None,
                "vc_position": None,
                **values,
            },
        )

    def port(self, kind, device, name, **values):
        own = {"device": self.brief("dcim/devices", device), "name": name, "label": "", "cable": None}
        if kind == "dcim.interface":
            own |= {"type": choice("other"), "speed": None, "mgmt_only": False, "enabled": True}
        return self.add(PORTS[kind], **(own | values))

    def address(self, text):
        return self.brief("ipam/ip-addresses", self.add("ipam/ip-addresses", address=text, family=choice(4)))

    def feed(self, site, panel, name, **values):
        panels = [each for each in self.objects.get("dcim/power-panels", []) if each["name"] == panel]
        its = panels[0] if panels else None
        its = its or self.add(
            "dcim/power-panels", name=panel, site=self.brief("dcim/sites", site), location=values.pop("location", None)
        )
        given = {
            "power_panel": self.brief("dcim/power-panels", its),
            "rack": None,
            "name": name,
            "status": choice("active"),
            "type": choice("primary"),
            "supply": choice("ac"),
            "phase": choice("three-phase"),
            "voltage": 415,
            "amperage": 63,
            "max_utilization": 80,
            "cable": None,
        }
        return self.add("dcim/power-feeds", **(given | values))

    def cable(self, a, b, kind=None, length=None, unit=None, status="connected"):
        """`a`, `b`: (type of end, object), or a list of them."""
        sides = [side if isinstance(side, list) else [side] for side in (a, b)]
        terminations = [
            [
                {
                    "object_type": of,
                    "object_id": thing["id"],
                    "object": self.brief(PORTS[of], thing) | {"device": thing["device"]} if "device" in thing else None,
                }
                for of, thing in side
            ]
            for side in sides
        ]
        made = self.add(
            "dcim/cables",
            type=kind,  # no {value, label}: a plain text in this serializer
            a_terminations=terminations[0],
            b_terminations=terminations[1],
            status=choice(status),
            label="",
            length=number(length),
            length_unit=choice(unit),
        )
        for _, thing in (each for side in sides for each in side):
            thing["cable"] = self.brief("dcim/cables", made)
        return made

    def pages(self, limit=50):
        """File: its text, as someone would have saved them."""
        files = {}
        for endpoint, its in self.objects.items():
            for start in range(0, len(its), limit):
                more = start + limit < len(its)
                link = f"{self.base}/api/{endpoint}/?limit={limit}&offset={start + limit}"
                page = {"count": len(its), "next": link if more else None, "previous": None}
                files[f"{endpoint.split('/')[1]}-{start // limit}.json"] = json.dumps(
                    page | {"results": its[start : start + limit]}
                )
        return files


def imported(tables):
    """What NetBox would have after its import of our files (ironburst.hall.netbox.tables)."""
    rows = {name[3:]: [dict(zip(columns, row, strict=True)) for row in its] for name, (columns, its) in tables.items()}
    box = NetBox()
    site = box.site(rows["sites"][0]["name"])
    for row in rows["device-types"]:
        box.type(
            row["manufacturer"],
            row["model"],
            row["u_height"],
            slug=row["slug"],
            weight=number(row["weight"]),
            weight_unit=choice(row["weight_unit"]),
        )
    for row in rows["racks"]:
        more = {"max_weight": row["max_weight"], "weight_unit": choice(row["weight_unit"]), "status": choice("planned")}
        box.rack(site, row["name"], row["u_height"], **more)
    for row in rows["power-feeds"]:
        words = {key: choice(row[key]) for key in ("type", "supply", "phase", "status")}
        box.feed(site, row["power_panel"], row["name"], voltage=row["voltage"], amperage=row["amperage"], **words)
    for row in rows["devices"]:
        maker = box.brief("dcim/manufacturers", box.one("dcim/manufacturers", name=row["manufacturer"]))
        kind = box.one("dcim/device-types", model=row["device_type"], manufacturer=maker)
        rack = box.one("dcim/racks", name=row["rack"]) if row["rack"] else None
        place = {"position": row["position"], "face": row["face"], "status": choice("planned")}
        box.device(site, row["name"], row["role"], kind, rack, **place)
    devices = {each["name"]: each for each in box.objects["dcim/devices"]}
    ports = {}
    for table, of in (
        ("power-ports", "dcim.powerport"),
        ("power-outlets", "dcim.poweroutlet"),
        ("interfaces", "dcim.interface"),
    ):
        for row in rows[table]:
            values = {key: value for key, value in row.items() if key not in ("device", "name", "power_port")}
            values |= {key: choice(row[key]) for key in ("type", "feed_leg") if key in row}
            ports[of, row["device"], row["name"]] = box.port(of, devices[row["device"]], row["name"], **values)
    for row in rows["cables"] + rows["feed-cables"]:
        ends = []
        for side in "ab":
            of, name = row[f"side_{side}_type"], row[f"side_{side}_name"]
            if of == "dcim.powerfeed":
                ends.append((of, box.one("dcim/power-feeds", name=name)))
            else:
                ends.append((of, ports[of, row[f"side_{side}_device"], name]))
        box.cable(*ends, row["type"], row.get("length"), row.get("length_unit"), row["status"])
    return box
