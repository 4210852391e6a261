"""What makers do otherwise with power supplies and sensors, done to the plain documents of a machine."""

from __future__ import annotations

from lab.bmc.parts import CHASSIS, OK, Document, link
from lab.bmc.vendors import Vendor

Documents = dict[str, Document]


WATTS = 3150
PATHS = {name: f"{CHASSIS}/{name}" for name in ("Power", "PowerSubsystem", "Thermal", "Sensors", "EnvironmentMetrics")}


def power(documents: Documents, vendor: Vendor) -> None:
    """What the supplies say of themselves and of each other, and where the node's power is said."""
    subsystem = documents[PATHS["PowerSubsystem"]]
    for group in subsystem["PowerSupplyRedundancy"]:
        if group["RedundancyType"] != "NotRedundant":
            most = group["MaxSupportedInGroup"]
            group["MinNeededInGroup"] = {"one": 1, "all": most}.get(vendor.needed, group["MinNeededInGroup"])
    if vendor.needed == "unsaid":
        subsystem["PowerSupplyRedundancy"] = []
    if vendor.power != "subsystem":
        _legacy(documents, keep=vendor.power == "both")
    for supply in _supplies(documents) if vendor.mute_supplies else []:
        del supply["PowerCapacityWatts"], supply["LineInputStatus"]
        if supply["Status"]["State"] == "Enabled":
            del supply["Status"]
    _said(documents, vendor)


def sensors(documents: Documents, vendor: Vendor) -> None:
    """Where the temperatures are, and those that mislead."""
    if vendor.sensors == "metrics":
        _metrics(documents)
    elif vendor.sensors != "collection":
        _thermal(documents, keep=vendor.sensors == "both")


def _supplies(documents: Documents) -> list[Document]:
    return [each for each in documents.values() if "PowerCapacityWatts" in each]


def _said(documents: Documents, vendor: Vendor) -> None:
    listed, sensor = documents[PATHS["Sensors"]], documents[f"{PATHS['Sensors']}/Input"]
    if vendor.power_said == "sensor":
        return
    del documents[f"{PATHS['Sensors']}/Input"]
    listed["Members"] = [each for each in listed["Members"] if not each["@odata.id"].endswith("/Input")]
    if vendor.power_said == "named":
        _add(documents, "PWR_SYSTEM", sensor | {"PhysicalContext": "VoltageRegulator"})
        _add(documents, "PWR_GB_SXM1", sensor | {"PhysicalContext": "VoltageRegulator", "Reading": 72})
        for path in [path for path in documents if path.startswith(f"{PATHS['Sensors']}/")]:
            documents[path].pop("ReadingUnits")
        control = [{"MemberId": "0", "Name": "Chassis Power Control", "PowerMetrics": {"AverageConsumedWatts": 0}}]
        _document(documents, "Power", "#Power.v1_5_4.Power", PowerControl=control)
    elif vendor.power_said == "environment":
        kind = "#EnvironmentMetrics.v1_3_0.EnvironmentMetrics"
        _document(documents, "EnvironmentMetrics", kind, PowerWatts={"Reading": WATTS})


def _add(documents: Documents, name: str, sensor: Document) -> None:
    path = f"{PATHS['Sensors']}/{name}"
    documents[path] = sensor | {"@odata.id": path, "Id": name, "Name": name}
    documents[PATHS["Sensors"]]["Members"].append(link(path))
    documents[PATHS["Sensors"]]["Members@odata.count"] = len(documents[PATHS["Sensors"]]["Members"])


def _document(documents: Documents, name: str, kind: str, **properties: object) -> None:
    path = PATHS[name]
    documents[path] = {"@odata.id": path, "@odata.type": kind, "Id": name, "Name": name, **properties}
    documents[CHASSIS][name] = link(path)


def _legacy(documents: Documents, *, keep: bool) -> None:
    """Power with its supplies inside, instead of PowerSubsystem or beside it: then it alone says their input."""
    old = PATHS["PowerSubsystem"]
    group = documents[old]["PowerSupplyRedundancy"]
    supplies = []
    for document in _supplies(documents):
        volts = 0 if document["LineInputStatus"] == "LossOfInput" else 230
        known = {
            key: document[key] for key in ("Name", "SerialNumber", "FirmwareVersion", "PowerCapacityWatts", "Status")
        }
        supplies.append(known | {"MemberId": document["Id"], "LineInputVoltage": volts})
        if keep:
            del document["LineInputStatus"]
    redundancy = [
        {
            "Name": "PSU Redundancy",
            "MemberId": "0",
            "Mode": "N+m" if len(supplies) > 1 else "NotRedundant",
            "MinNumNeeded": each["MinNeededInGroup"],
            "MaxNumSupported": each["MaxSupportedInGroup"],
            **OK,
        }
        for each in group
    ]
    control = [{"MemberId": "0", "Name": "System Power Control", "PowerConsumedWatts": WATTS}]
    own = {"PowerControl": control, "PowerSupplies": supplies, "Redundancy": redundancy}
    _document(documents, "Power", "#Power.v1_7_1.Power", **own)
    if not keep:
        for path in [path for path in documents if path.startswith(old)]:
            del documents[path]
        del documents[CHASSIS]["PowerSubsystem"]


def _thermal(documents: Documents, *, keep: bool) -> None:
    """Thermal with its temperatures inside, instead of Sensors or beside them."""
    old = PATHS["Sensors"]
    paths = [path for path in documents if path.startswith(old)]
    readings = [documents[path] if keep else documents.pop(path) for path in paths]
    found = [
        {"MemberId": str(n), "Name": each["Name"], "ReadingCelsius": each["Reading"], **OK}
        for n, each in enumerate(each for each in readings if each.get("ReadingType") == "Temperature")
    ]
    found.append({"MemberId": "97", "Name": "GPU Inlet", "PhysicalContext": "GPU", "ReadingCelsius": 34, **OK})
    found.append({"MemberId": "98", "Name": "Bay Inlet", "ReadingCelsius": 0, "Status": {"State": "Absent"}})
    found.append({"MemberId": "99", "Name": "Empty", "ReadingCelsius": None})
    _document(documents, "Thermal", "#Thermal.v1_7_1.Thermal", Temperatures=found)
    if not keep:
        del documents[CHASSIS]["Sensors"]


def _metrics(documents: Documents) -> None:
    """Each temperature once more, under another spelling; the inlet is the power board's."""
    celsius = {"ReadingType": "Temperature", "ReadingUnits": "Cel"}
    inlet = f"{PATHS['Sensors']}/Inlet"
    documents[inlet] |= {"Name": "Chassis 0 Front IO Temp 0", "PhysicalContext": None}
    _add(documents, "PDB_0_Inlet_Temp_0", celsius | {"Name": "PDB 0 Inlet Temp 0", "Reading": 33.9, **OK})
    path = f"{CHASSIS}/ThermalSubsystem"
    readings = [
        {"DataSourceUri": where, "DeviceName": each["Name"].replace(" ", "_"), "Reading": each["Reading"]}
        for where, each in documents.items()
        if where.startswith(f"{PATHS['Sensors']}/") and each["ReadingType"] == "Temperature"
    ]
    documents[CHASSIS]["ThermalSubsystem"] = link(path)
    documents[path] = {
        "@odata.id": path,
        "@odata.type": "#ThermalSubsystem.v1_3_0.ThermalSubsystem",
        "Id": "ThermalSubsystem",
        "Name": "Thermal",
        "ThermalMetrics": link(f"{path}/ThermalMetrics"),
    }
    documents[f"{path}/ThermalMetrics"] = {
        "@odata.id": f"{path}/ThermalMetrics",
        "@odata.type": "#ThermalMetrics.v1_3_0.ThermalMetrics",
        "Id": "ThermalMetrics",
        "Name": "Temperatures",
        "TemperatureReadingsCelsius": readings,
    }
