"""Readings of every maker's shape, and what Prometheus gets of them."""

from types import SimpleNamespace

import pytest

from ironburst.baremetal.hardware import PowerSupply
from ironburst.baremetal.telemetry import Look, Place, Telemetry, look, metrics, readings
from lab.bmc.documents import Machine
from lab.bmc.documents import documents as served
from lab.bmc.vendors import VENDORS

FINE = Telemetry(
    3150.0, 24.5, {"Inlet": 24.5}, (PowerSupply("PSU1", 3300, True, "OK"), PowerSupply("PSU2", 3300, False, "OK"))
)
PLACE = Place("dc1", "a03", 10200.0, 30.0)


def read(found):
    asked = []

    def get(path):
        asked.append(path)
        return found.get(path)

    return look(get), asked


@pytest.mark.parametrize("vendor", sorted(VENDORS))
def test_each_makers_shape(vendor):
    machine = Machine("dgx01", "S1", "u-1", ("52:54:00:00:00:01",), vendor=vendor, dead_psus=(2,))
    seen, asked = read(served(machine, True, {}, []))
    said = None if vendor == "nvidia-gh200" else 3150  # as recorded, it says only what its parts draw
    assert (seen.power_w, seen.inlet_c) == (said, 24.5)
    assert sum(celsius == 41 for celsius in seen.celsius.values()) == machine.gpus
    assert [supply.has_input for supply in seen.supplies].count(False) == 1
    assert not any("Processors" in path or "Memory" in path or "Drives" in path for path in asked)


def test_environment_and_thermal_metrics():
    chassis = {
        name: {"@odata.id": f"/redfish/v1/Chassis/1/{name}"} for name in ("EnvironmentMetrics", "ThermalSubsystem")
    }
    seen, _ = read(
        {
            "/redfish/v1": {"Chassis": {"@odata.id": "/redfish/v1/Chassis"}},
            "/redfish/v1/Chassis": {"Members": [{"@odata.id": "/redfish/v1/Chassis/1"}]},
            "/redfish/v1/Chassis/1": chassis,
            "/redfish/v1/Chassis/1/EnvironmentMetrics": {"PowerWatts": {"Reading": 2000}},
            "/redfish/v1/Chassis/1/ThermalSubsystem": {"ThermalMetrics": {"@odata.id": "/redfish/v1/Chassis/1/TM"}},
            "/redfish/v1/Chassis/1/TM": {
                "TemperatureSummaryCelsius": {"Intake": {"Reading": 22}},
                "TemperatureReadingsCelsius": [
                    {"Reading": 50, "DeviceName": "GPU"},
                    {"Reading": 51, "DeviceName": "GPU"},
                ],
            },
        }
    )
    assert (seen.power_w, seen.inlet_c) == (2000, 22)
    assert seen.celsius == {"GPU": 50, "GPU (2)": 51, "Intake": 22}


def test_power_of_supplies_where_nothing_says_the_whole():
    power = {"PowerSupplies": [{"PowerInputWatts": 700}, {"PowerInputWatts": "650"}, {"PowerInputWatts": None}]}
    found = SimpleNamespace(of=lambda kind, parent=None: [SimpleNamespace(body=power)] if kind == "power" else [])
    assert readings(found).power_w == 1350
    metered = [SimpleNamespace(body={"InputPowerWatts": {"Reading": watts}}) for watts in (500, 510)]
    found = SimpleNamespace(of=lambda kind, parent=None: metered if kind == "psu_metrics" else [])
    assert readings(found).power_w == 1010


def test_samples():
    looks = {"n1": Look(FINE, 1.25), "n2": Look("n2: BMC does not answer", 10.0)}
    lines = metrics(looks, {"n1": PLACE, "n2": PLACE}, {("dc1", "a03"): 17000.0}, 1.5).splitlines()
    where = 'hall="dc1",rack="a03"'
    assert {
        f'ironburst_bmc_up{{{where},node="n1"}} 1',
        f'ironburst_bmc_up{{{where},node="n2"}} 0',
        f'ironburst_node_power_watts{{{where},node="n1"}} 3150',
        f'ironburst_node_psu_input{{{where},node="n1",psu="PSU2"}} 0',
        f"ironburst_rack_power_watts{{{where}}} 3150",
        f"ironburst_rack_power_unknown_nodes{{{where}}} 1",
        f"ironburst_rack_power_limit_watts{{{where}}} 17000",
        "ironburst_telemetry_timestamp_seconds 1.5",
    } <= set(lines)
    assert not any('node_power_watts{hall="dc1",rack="a03",node="n2"' in line for line in lines)


def test_what_is_not_said_has_no_sample():
    silent = Look(Telemetry(None, None, {}, ()), 1.0)
    text = metrics({"n1": silent}, {"n1": Place("dc1")}, {}, 0.0)
    assert 'ironburst_bmc_up{hall="dc1",node="n1"} 1' in text
    assert "watts" not in text and "celsius" not in text


def test_a_sensors_name_is_escaped():
    odd = Look(Telemetry(None, None, {'a"b\\\n': 1.0}, ()), 1.0)
    assert 'sensor="a\\"b\\\\\\n"} 1' in metrics({"n1": odd}, {"n1": Place("dc1")}, {}, 0.0)


def inlet(*sensors):
    temperatures = [
        {"Name": name, "PhysicalContext": where, "ReadingCelsius": celsius} for name, where, celsius in sensors
    ]
    thermal = [SimpleNamespace(body={"Temperatures": temperatures})]
    return readings(SimpleNamespace(of=lambda kind, parent=None: thermal if kind == "thermal" else [])).inlet_c


def test_the_inlet_as_makers_were_recorded():
    dell = [("CPU1 Temp", "CPU", 37), ("System Board Inlet Temp", "SystemBoard", 25)]
    assert inlet(*dell, ("System Board Exhaust Temp", "SystemBoard", 31)) == 25
    dgx = [("TEMP_GB_HSC5", "Intake", 60), ("TEMP_AMBIENT", "Intake", 22), ("TEMP_GB1_INLET2", "Intake", 32)]
    assert inlet(*dgx) == 22
    assert inlet(("Front", "Intake", 21), ("CPU", "CPU", 60)) == 21


def test_inlets_of_parts_are_not_the_nodes():
    """As recorded of Supermicro's SYS-821GE (the GPUs' is 13 degrees warmer) and of GB200 (its busbar's is 6)."""
    hgx = [("Inlet Temp", "SystemBoard", 21), ("GPU Inlet Temp", "GPU", 34)]
    assert inlet(*hgx) == 21
    tray = [("PDB_0_Inlet_Temp_0", None, 34), ("Chassis_0_Front_IO_Temp_0", None, 27)]
    assert inlet(*tray) == 27
    assert inlet(("PDB_0_Inlet_Temp_0", None, 34)) is None


def test_where_every_sensor_is_called_intake_none_is_the_inlet():
    """As recorded of Gigabyte: its CPUs have Intake, too."""
    board = [("MB_TEMP1", "Intake", 37), ("MB_TEMP2", "Intake", 38)]
    assert inlet(("CPU0_DTS", "Intake", 60), ("DIMMG0_TEMP", "Intake", 34), *board) is None
    assert inlet(*board, ("SYS_INLET", "Intake", 24)) == 24
    assert inlet(("CPU0_DTS", "Intake", 60), ("Front", "Intake", 24)) == 24


def test_an_empty_place_has_no_temperature():
    """As recorded of HPE and of Supermicro's X10: 0 degrees, and Absent."""
    temperatures = [
        {"Name": "04-Inlet Ambient", "ReadingCelsius": 21, "Status": {"State": "Enabled"}},
        {"Name": "12-Exp Bay Inlet", "ReadingCelsius": 0, "Status": {"State": "Absent"}},
    ]
    thermal = [SimpleNamespace(body={"Temperatures": temperatures})]
    seen = readings(SimpleNamespace(of=lambda kind, parent=None: thermal if kind == "thermal" else []))
    assert seen.celsius == {"04-Inlet Ambient": 21}


def test_a_sensor_of_two_lists_is_read_once():
    """As recorded of GB200: once more among the metrics, with other signs between the words."""
    by_kind = {
        "sensor": [{"Name": "NVME M2 0 Temp 0", "Reading": 38, "ReadingUnits": "Cel"}],
        "thermal_metrics": [{"TemperatureReadingsCelsius": [{"DeviceName": "NVME_M2_0_Temp_0", "Reading": 37.5}]}],
    }
    found = SimpleNamespace(of=lambda kind, parent=None: [SimpleNamespace(body=each) for each in by_kind.get(kind, [])])
    assert readings(found).celsius == {"NVME M2 0 Temp 0": 38}


def dgx(sensors):
    """As recorded of DGX H100: PowerControl without a figure, temperatures in Thermal, sensors without units."""
    chassis, root = "/redfish/v1/Chassis/DGX", "/redfish/v1"
    links = {name: {"@odata.id": f"{chassis}/{name}"} for name in ("Thermal", "Power", "Sensors", "PowerSubsystem")}
    supplies, supply = f"{chassis}/PowerSubsystem/PowerSupplies", f"{chassis}/PowerSubsystem/PowerSupplies/PSU0"
    output = {"DataSourceUri": f"{chassis}/Sensors/PWR_PSU0"}
    return {
        root: {"Vendor": "AMI", "Chassis": {"@odata.id": f"{root}/Chassis"}},
        f"{root}/Chassis": {"Members": [{"@odata.id": chassis}]},
        chassis: links,
        f"{chassis}/Thermal": {"Temperatures": [{"Name": "TEMP_AMBIENT", "ReadingCelsius": 22}]},
        f"{chassis}/Power": {"PowerControl": [{"PowerMetrics": {"AverageConsumedWatts": 0}}]},
        f"{chassis}/PowerSubsystem": {"PowerSupplies": {"@odata.id": supplies}},
        supplies: {"Members": [{"@odata.id": supply}]},
        supply: {"Id": "PSU0", "Metrics": {"@odata.id": f"{supply}/Metrics"}},
        f"{supply}/Metrics": {"OutputPowerWatts": output},
        f"{chassis}/Sensors": {"Members": [{"@odata.id": f"{chassis}/Sensors/{name}"} for name in sensors]},
        **{
            f"{chassis}/Sensors/{name}": {"Name": name, "Reading": watts, "ReadingType": "Power"}
            for name, watts in sensors.items()
        },
    }


def test_power_that_only_a_sensor_says():
    seen, asked = read(dgx({"PWR_GB_SXM1": 72, "PWR_SYSTEM": 1950, "PWR_PSU0": 351}))
    assert (seen.power_w, seen.inlet_c, [each.id for each in seen.supplies]) == (1950, 22, ["PSU0"])
    assert not any("SXM" in path for path in asked) and len(asked) == len(set(asked))
    seen, _ = read(dgx({"PWR_GB_SXM1": 72, "PWR_PSU0": 351}))
    assert seen.power_w == 351
    seen, _ = read(dgx({"PWR_GB_SXM1": 72}))
    assert seen.power_w is None


def test_a_boards_sensors_are_not_asked_one_by_one():
    """As recorded of DGX H100: the chassis lists those of its boards, too."""
    found = dgx({"PWR_SYSTEM": 1950})
    board = "/redfish/v1/Chassis/CPUBaseboard"
    found["/redfish/v1/Chassis"]["Members"].append({"@odata.id": board})
    whole = {"ContainedBy": {"@odata.id": "/redfish/v1/Chassis/DGX"}}
    found[board] = {"Sensors": {"@odata.id": f"{board}/Sensors"}, "Links": whole}
    found[f"{board}/Sensors"] = {"Members": [{"@odata.id": f"{board}/Sensors/TEMP_CPU0"}]}
    found[f"{board}/Sensors/TEMP_CPU0"] = {"Name": "TEMP_CPU0", "Reading": 50, "ReadingType": "Temperature"}
    seen, asked = read(found)
    assert seen.power_w == 1950 and f"{board}/Sensors/TEMP_CPU0" not in asked
    del found[board]["Links"]
    assert read(found)[0].celsius["TEMP_CPU0"] == 50


def test_a_node_that_does_not_measure_its_power_says_nothing():
    power = [SimpleNamespace(body={"PowerControl": [{"PowerConsumedWatts": 0}]})]
    assert readings(SimpleNamespace(of=lambda kind, parent=None: power if kind == "power" else [])).power_w is None
