"""A sound hall, for the tests to break: one rack of four nodes on two feeds, one of switches, two rails."""

from dataclasses import replace

from ironburst.hall.model import Cable, CableLimit, Circuit, Device, End, Hall, Pdu, Rack

LIMITS = {
    ("NDR", "dac"): CableLimit(True, 3),
    ("NDR", "multimode"): CableLimit(True, 50),
    ("NDR", "aoc"): CableLimit(True, None),
    ("XDR", "dac"): CableLimit(False, None),
    ("100GbE", "dac"): CableLimit(True, 5),
    ("25GbE", "dac"): CableLimit(True, 5),
}
NODE = Device(
    name="",
    kind="gpu",
    rack="a03",
    height=8,
    platform="dgx",
    power_w=6000,
    heat_btu_h=22000,
    weight_kg=120,
    depth_mm=900,
    airflow_cfm=800,
    cooling="air",
    inlet_min_c=5,
    inlet_max_c=30,
    psus=6,
    psu_w=3000,
    psus_needed=3,
    gpus=8,
    gpu_w=400,
    hcas=2,
)
SWITCH = Device(
    name="",
    kind="leaf",
    rack="n01",
    height=1,
    power_w=1500,
    weight_kg=15,
    depth_mm=660,
    airflow_cfm=100,
    cooling="air",
    psus=2,
    psu_w=2000,
    psus_needed=1,
    ports=64,
)


def cable(a, b, **given):
    return Cable(**{"a": end(a), "b": end(b), "type": "multimode", "speed": "NDR", "length_m": 10, **given})


def end(text):
    return End(*text.split("/"))


def sound(**given):
    """No rule has anything to say of it."""
    nodes = [replace(NODE, name=f"n{n}", unit=8 * n - 7, where=("nodes", n)) for n in range(1, 5)]
    leaves = [replace(SWITCH, name=f"leaf{n}", unit=n, rail=n, where=("switches", n)) for n in (1, 2)]
    spine = replace(SWITCH, name="spine1", kind="spine", unit=4)
    eth = replace(SWITCH, name="eth1", kind="ethernet", unit=6, rail=None)
    cables = [cable(f"n{n}/ib{rail}", f"leaf{rail}/{n}") for n in range(1, 5) for rail in (1, 2)]
    uplinks = [(f"leaf{rail}/{40 + n}", f"spine1/{rail * 10 + n}") for n in range(4) for rail in (1, 2)]
    cables += [cable(low, high, length_m=2, type="dac") for low, high in uplinks]
    cables += [cable(f"n{n}/eth1", f"eth1/{n}", speed="100GbE", type="dac", length_m=4) for n in range(1, 5)]
    racks = (
        Rack("a03", 48, 1000, 800, 30, 32, "air", 4000, (0, 0), (Pdu("pa", "a03-A", 12), Pdu("pb", "a03-B", 12))),
        Rack("n01", 48, 1000, 800, 10, 10, "air", 1000, (0.6, 0), (Pdu("qa", "n01-A"), Pdu("qb", "n01-B"))),
    )
    circuits = tuple(Circuit(f"{rack}-{feed}", feed, 3, 415, 63) for rack in ("a03", "n01") for feed in "AB")
    hall = Hall(
        "h1", racks, circuits, (*nodes, *leaves, spine, eth), tuple(cables), LIMITS, 40, 24, 1.0, ("opensm on n1",)
    )
    return replace(hall, **given)


def device(hall, name, /, **given):
    """The hall with one of its devices otherwise."""
    return replace(hall, devices=tuple(replace(each, **given) if each.name == name else each for each in hall.devices))


def rack(hall, name, /, **given):
    """The hall with one of its racks otherwise."""
    return replace(hall, racks=tuple(replace(each, **given) if each.name == name else each for each in hall.racks))


def circuit(hall, name, /, **given):
    """The hall with one of its circuits otherwise."""
    its = tuple(replace(each, **given) if each.name == name else each for each in hall.circuits)
    return replace(hall, circuits=its)


def recabled(hall, a, /, **given):
    """The hall with the cable at port `a` otherwise."""
    its = tuple(replace(each, **given) if str(each.a) == a else each for each in hall.cables)
    return replace(hall, cables=its)


def more_cables(hall, *cables):
    """The hall with these as well."""
    return replace(hall, cables=(*hall.cables, *cables))


def without_cables(hall, *ports):
    """The hall without the cables at these ports."""
    its = tuple(each for each in hall.cables if str(each.a) not in ports and str(each.b) not in ports)
    return replace(hall, cables=its)
