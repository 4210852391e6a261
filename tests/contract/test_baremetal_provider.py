"""The plugin executable, as the engine starts it and over its protocol, against the lab's BMC emulator on the
loopback.
"""

import json
import os
import subprocess
from concurrent import futures
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2_grpc
from pulumi.runtime.proto import provider_pb2 as pb

from lab.bmc import Fault, write_fault
from tests.contract.emulator import MACHINE, PASSWORD, serving

ROOT = Path(__file__).parents[2]
URN = "urn:pulumi:dev::ironburst::baremetal:index:Node::dgx01"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


class Engine(engine_pb2_grpc.EngineServicer):
    """The part of an engine that a plugin talks to: its log."""

    def __init__(self):
        self.logged = []

    def Log(self, request, context):
        self.logged.append(request)
        return empty_pb2.Empty()


def struct(values):
    return json_format.ParseDict(values, struct_pb2.Struct())


def values(message):
    return json_format.MessageToDict(message)


class Plugin:
    """The running plugin, its BMC, and all that it ever said."""

    def __init__(self, process, stub, engine, bmc, power, folder):
        self.process, self.stub, self.engine = process, stub, engine
        self.bmc, self.power, self.folder = bmc, power, folder
        self.said = []

    def inputs(self, **changes):
        declared = {
            "name": "dgx01",
            "bmcAddress": self.bmc.url,
            "bmcUsername": "admin",
            "passwordRef": "env:LAB_BMC_PASSWORD",
            "serial": "LAB-DGX01",
            "macs": ["52:54:00:4E:00:0B"],
            "gpuModel": "H100 SXM5 80GB",
            "gpuCount": 8,
            "timeoutSeconds": 6,
        }
        return {key: value for key, value in (declared | changes).items() if value is not None}

    def fault(self, **fault):
        write_fault(self.folder / "faults.json", "dgx01", Fault(**fault))

    def requests(self):
        log = self.folder / "requests.jsonl"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def call(self, method, request):
        try:
            answer = getattr(self.stub, method)(request, timeout=20)
        except grpc.RpcError as error:
            self.said.append(str(error))
            raise
        self.said.append(str(answer))
        return answer

    def create(self, preview=False, **changes):
        return self.call(
            "Create", pb.CreateRequest(urn=URN, properties=struct(self.inputs(**changes)), preview=preview)
        )

    def refused(self, **changes):
        with pytest.raises(grpc.RpcError) as caught:
            self.create(**changes)
        assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
        assert "Traceback" not in caught.value.details() and "File " not in caught.value.details()
        return caught.value.details()

    def read(self, state, inputs=None):
        known = struct(
            inputs if inputs is not None else {key: value for key, value in state.items() if key in self.inputs()}
        )
        return self.call("Read", pb.ReadRequest(id="dgx01", urn=URN, properties=struct(state), inputs=known))

    def diff(self, old, new):
        return self.call("Diff", pb.DiffRequest(id="dgx01", urn=URN, olds=struct(old), news=struct(new)))


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    """The plugin, started as the engine does: from a folder that has nothing to do with the checkout."""
    folder = tmp_path_factory.mktemp("elsewhere")
    engine = Engine()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    engine_pb2_grpc.add_EngineServicer_to_server(engine, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    executable = ROOT / "providers/baremetal/pulumi-resource-baremetal"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | {
        "LAB_BMC_PASSWORD": PASSWORD
    }
    with (folder / "stderr").open("w") as errors:
        argv = [str(executable), f"127.0.0.1:{port}"]
        child = subprocess.Popen(argv, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            plugin_port = int(child.stdout.readline())
            with grpc.insecure_channel(f"127.0.0.1:{plugin_port}") as channel:
                stub = provider_pb2_grpc.ResourceProviderStub(channel)
                stub.Configure(
                    pb.ConfigureRequest(acceptSecrets=True, acceptResources=True), timeout=20, wait_for_ready=True
                )
                yield child, stub, engine, folder / "stderr"
        finally:
            child.terminate()
            child.wait(10)
            server.stop(None)


@pytest.fixture
def plugin(process, tmp_path):
    child, stub, engine, stderr = process
    engine.logged.clear()
    with serving(tmp_path) as (bmc, power):
        started = Plugin(child, stub, engine, bmc, power, tmp_path)
        yield started
        assert bmc.sessions == {}, "a BMC session was left open"
    # Whatever a test did: the password is in no answer, no message to the user, no error output.
    assert PASSWORD not in "".join(started.said) + str(engine.logged) + stderr.read_text()


def test_what_the_plugin_says_of_itself(plugin):
    answer = plugin.call("Configure", pb.ConfigureRequest(acceptSecrets=True))
    assert answer.supportsPreview and not answer.acceptSecrets
    assert plugin.call("GetPluginInfo", empty_pb2.Empty()).version == "0.1.0"
    schema = json.loads(plugin.call("GetSchema", pb.GetSchemaRequest()).schema)
    assert schema["name"] == "baremetal" and list(schema["resources"]) == ["baremetal:index:Node"]


def test_check_names_every_bad_input(plugin):
    bad = plugin.inputs(gpuCuont=8, macs=["zz"], serial=None, passwordRef=PASSWORD)
    answer = plugin.call("Check", pb.CheckRequest(urn=URN, news=struct(bad)))
    assert sorted(failure.property for failure in answer.failures) == ["gpuCuont", "macs[0]", "passwordRef"]
    reasons = {failure.property: failure.reason for failure in answer.failures}
    assert reasons["gpuCuont"] == "gpuCuont is not an input of baremetal:index:Node: did you mean gpuCount?"
    # The answer echoes the inputs, as the protocol wants; the reasons don't.
    assert PASSWORD not in str(answer.failures)
    plugin.said.clear()


def test_check_takes_good_inputs_and_those_not_known_yet(plugin):
    for inputs in (plugin.inputs(), plugin.inputs(serial=UNKNOWN, macs=[UNKNOWN], gpuCount=UNKNOWN)):
        answer = plugin.call("Check", pb.CheckRequest(urn=URN, news=struct(inputs)))
        assert not answer.failures and values(answer.inputs) == inputs


def test_create_accepts_a_node_as_declared(plugin):
    answer = plugin.create(memoryGib=2000, cpuCount=2)
    out = values(answer.properties)
    assert answer.id == "dgx01"
    assert out["reachable"] is True and out["powerState"] == "On" and out["bmcVersion"] == "lab-1.0"
    assert out["observed"]["gpus"] == [{"model": "NVIDIA H100 80GB HBM3", "count": 8}]
    assert {key: out[key] for key in plugin.inputs()} == plugin.inputs()
    assert plugin.power.on


def test_create_lists_every_mismatch_and_accepts_nothing(plugin):
    plugin.fault(hardware={"gpus": 7, "serial": "LAB-DGX02", "macs": ["52:54:00:4e:00:0c"], "memory_gib": 512})
    text = plugin.refused(memoryGib=2000)
    first, *listed = text.splitlines()
    assert first == "dgx01: 4 things not as declared; the node is not accepted:"
    assert listed == [
        "  - dgx01: serial number 'LAB-DGX01' is declared, the BMC reports 'LAB-DGX02'",
        "  - dgx01: MAC address 52:54:00:4e:00:0b is declared, the BMC reports 52:54:00:4e:00:0c",
        "  - dgx01: 8 x H100 SXM5 80GB GPUs are declared, the BMC reports 7 x NVIDIA H100 80GB HBM3",
        "  - dgx01: at least 2000 GiB of memory are declared, the BMC reports 512",
    ]
    assert all(each["method"] in ("GET", "DELETE") or "SessionService" in each["path"] for each in plugin.requests())


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            {"wrong_password": True},
            "refuses the login of user 'admin': check that name and the secret that its password refers to",
        ),
        ({"answer": "silent"}, "does not answer within 1 s"),
        ({"answer": "reset"}, "closes the connection without an answer"),
        ({"answer": "half", "path": "Processors/GPU"}, "broke off in the middle of an answer"),
        ({"answer": "garbled", "path": "Systems"}, "not a complete Redfish document"),
        ({"answer": "unavailable", "path": "Systems"}, "server error HTTP 503"),
        ({"answer": "echo"}, "refuses a request with HTTP 400"),
    ],
)
def test_create_says_what_is_wrong_with_the_bmc(plugin, fault, words):
    plugin.fault(**fault)
    text = plugin.refused(timeoutSeconds=1 if "silent" in fault.values() else 6)
    assert text.startswith(f"dgx01: BMC {plugin.bmc.url} ") and words in text and "\n" not in text


def test_create_with_a_secret_that_does_not_resolve(plugin):
    text = plugin.refused(passwordRef="env:NO_SUCH_SECRET")
    assert text.startswith(f"dgx01: the password of BMC {plugin.bmc.url}: ")
    assert "set the environment variable NO_SUCH_SECRET" in text
    assert plugin.requests() == []


def test_a_relative_secret_file_is_meant_from_the_projects_folder(plugin):
    assert "refuses the login" in plugin.refused(passwordRef="file:lab/bmc.password")  # read, and not this BMC's
    assert "no/such/file: No such file" in plugin.refused(passwordRef="file:no/such/file")


def test_a_preview_makes_no_request_to_the_bmc(plugin):
    plugin.fault(answer="reset")
    answer = plugin.create(preview=True)
    out = values(answer.properties)
    assert out["reachable"] == UNKNOWN and out["observed"] == UNKNOWN and out["serial"] == "LAB-DGX01"
    assert answer.id == ""
    request = pb.UpdateRequest(
        id="dgx01", urn=URN, olds=struct(plugin.inputs()), news=struct(plugin.inputs(gpuCount=4)), preview=True
    )
    assert values(plugin.call("Update", request).properties)["gpuCount"] == 4
    assert plugin.diff(plugin.inputs(), plugin.inputs(gpuCount=4)).changes == pb.DiffResponse.DIFF_SOME
    assert plugin.requests() == []


def test_read_without_drift_changes_nothing(plugin):
    state = values(plugin.create().properties)
    answer = plugin.read(state)
    assert answer.id == "dgx01" and values(answer.properties) == state
    assert values(answer.inputs) == plugin.inputs()
    assert plugin.diff(values(answer.properties), plugin.inputs()).changes == pb.DiffResponse.DIFF_NONE
    assert plugin.engine.logged == []


def test_read_puts_drift_into_the_inputs(plugin):
    state = values(plugin.create().properties)
    plugin.fault(hardware={"gpus": 7, "serial": "LAB-DGX09"})
    plugin.power.on = False
    answer = plugin.read(state)
    drift = ["another machine: its serial number is LAB-DGX09, was LAB-DGX01"]
    assert values(answer.inputs) == plugin.inputs(gpuCount=7, serial="LAB-DGX09", drift=drift)
    out = values(answer.properties)
    assert (out["gpuCount"], out["serial"], out["powerState"]) == (7, "LAB-DGX09", "Off")
    diff = plugin.diff(out, plugin.inputs())
    assert sorted(diff.diffs) == ["drift", "gpuCount", "serial"] and list(diff.replaces) == []
    # The next up asks for what is declared, and is told what is there.
    request = pb.UpdateRequest(id="dgx01", urn=URN, olds=struct(out), news=struct(plugin.inputs()))
    with pytest.raises(grpc.RpcError) as caught:
        plugin.call("Update", request)
    assert "2 things not as declared" in caught.value.details()
    plugin.fault()
    assert values(plugin.call("Update", request).properties)["gpuCount"] == 8


GONE = {
    "gpus": ({"lost_gpus": [3]}, ["GPU GPU_SXM_3 (NVIDIA H100 80GB HBM3) is gone"]),
    "memory_modules": ({"missing_dimms": [2, 7]}, ["memory module DIMM_2, DIMM_7 (256 GiB) are gone"]),
    "psu_input": (
        {"dead_psus": [4]},
        ["dgx01: without input power: PSU4"],
    ),
    "drives": ({"drives": 3}, ["drive Disk4 (Lab NVMe 3.84TB) is gone"]),
    "power_supplies": ({"psus": 5}, ["power supply PSU6 is gone"]),
}


@pytest.mark.parametrize("field", GONE)
def test_a_part_that_is_gone_is_drift_and_no_up_accepts_it(plugin, field):
    hardware, sentences = GONE[field]
    state = values(plugin.create().properties)
    plugin.fault(hardware=hardware)
    drifted = plugin.read(state)
    assert values(drifted.inputs)["drift"] == sentences
    out = values(drifted.properties)
    assert "drift" in plugin.diff(out, plugin.inputs()).diffs and out["accepted"] == state["accepted"]

    def up(**changes):
        news = struct(plugin.inputs(**changes))
        return plugin.call("Update", pb.UpdateRequest(id="dgx01", urn=URN, olds=struct(out), news=news))

    with pytest.raises(grpc.RpcError) as caught:
        up()
    assert sentences[0] in caught.value.details()
    allowed = {field: "9999-12-31"} | ({"gpu_count": "9999-12-31"} if field == "gpus" else {})
    with pytest.raises(grpc.RpcError):
        up(allowed=dict.fromkeys(allowed, "2020-01-01"))
    accepted = values(up(allowed=allowed).properties)
    assert "drift" not in accepted and "drift" not in values(plugin.read(accepted).inputs)


def test_new_firmware_is_drift_until_the_next_up(plugin):
    state = values(plugin.create().properties)
    plugin.fault(hardware={"bios_version": "1.1"})
    drifted = plugin.read(state)
    assert values(drifted.inputs) == plugin.inputs(drift=["firmware of BIOS is 1.1, accepted was 1.0"])
    request = pb.UpdateRequest(id="dgx01", urn=URN, olds=drifted.properties, news=struct(plugin.inputs()))
    updated = plugin.call("Update", request)
    assert values(plugin.read(values(updated.properties)).inputs) == plugin.inputs()


def test_a_bios_that_is_not_as_declared(plugin):
    """An up refuses it, and what waits is said as such; a refresh shows what is in force, as its own input."""
    wanted = {"NumaNodes": 4, "QuietBoot": True}
    assert "BIOS NumaNodes is 1, 4 is declared" in plugin.refused(bios=wanted)
    plugin.bmc.bios.pending = {"NumaNodes": 4}
    assert "BIOS NumaNodes is 1, 4 is declared and waits for the next start" in plugin.refused(bios=wanted)
    state = values(plugin.create(bios=wanted, allowed={"bios": "9999-12-31"}).properties)
    plugin.bmc.bios.started()
    state = values(plugin.create(bios=wanted).properties)
    declared = plugin.inputs(bios=wanted)
    assert values(plugin.read(state, declared).inputs) == declared
    plugin.bmc.bios.attributes["NumaNodes"] = 2  # by somebody at its console
    drifted = plugin.read(state, declared)
    assert values(drifted.inputs) == plugin.inputs(bios={"NumaNodes": 2, "QuietBoot": True})
    assert list(plugin.diff(values(drifted.properties), declared).diffs) == ["bios"]


def test_a_password_among_the_settings_is_not_repeated(plugin):
    inputs = struct(plugin.inputs(bios={"SetupPassword": "hunter2"}))
    (failure,) = plugin.call("Check", pb.CheckRequest(urn=URN, news=inputs)).failures
    assert "has SetupPassword: passwords" in failure.reason and "hunter2" not in failure.reason


def test_what_goes_on_and_off_by_itself_is_no_drift(plugin):
    state = values(plugin.create().properties)
    plugin.power.on = False
    assert values(plugin.read(state).inputs) == plugin.inputs()


def test_the_state_of_an_older_version_is_taken_as_it_is(plugin):
    state = values(plugin.create().properties)
    old = {key: value for key, value in state.items() if key != "accepted"}
    answer = plugin.read(old)
    assert values(answer.inputs) == plugin.inputs() and values(answer.properties) == state


def test_drift_cannot_be_declared(plugin):
    answer = plugin.call("Check", pb.CheckRequest(urn=URN, news=struct(plugin.inputs(drift=["x"]))))
    assert [failure.property for failure in answer.failures] == ["drift"]


@pytest.mark.parametrize(
    "hardware", [{"gpus": 0}, {"gpu_model": "AMD MI300X"}, {"memory_gib": 64}, {"serial": ""}, {"macs": []}]
)
def test_drift_that_goes_away_leaves_what_was_declared(plugin, hardware):
    """What is there may be nothing that one could declare; and a later read must not take it for the declaration."""
    declared = plugin.inputs(memoryGib=2000)
    state = values(plugin.create(memoryGib=2000).properties)
    plugin.fault(hardware=hardware)
    drifted = plugin.read(state)
    again = plugin.read(values(drifted.properties), values(drifted.inputs))
    assert values(drifted.inputs) != declared and values(again.inputs) == values(drifted.inputs)
    plugin.fault()
    healed = plugin.read(values(again.properties), values(again.inputs))
    assert values(healed.inputs) == declared and values(healed.properties) == state


@pytest.mark.parametrize("answer", ["reset", "half", "unavailable"])
def test_read_of_a_dead_bmc_is_a_warning_with_the_last_inputs(plugin, answer):
    state = values(plugin.create().properties)
    plugin.fault(answer=answer, path="Systems")
    answer = plugin.read(state)
    assert answer.id == "dgx01" and values(answer.inputs) == plugin.inputs()
    assert values(answer.properties) == state | {"reachable": False}
    (warning,) = plugin.engine.logged
    assert warning.severity == engine_pb2.WARNING and warning.urn == URN
    assert warning.message.startswith(f"dgx01: BMC {plugin.bmc.url} ")
    assert warning.message.endswith("what was known of the node is kept")
    # It isn't drift, and comes back by itself.
    assert plugin.diff(values(answer.properties), plugin.inputs()).changes == pb.DiffResponse.DIFF_NONE
    plugin.fault()
    assert values(plugin.read(state | {"reachable": False}).properties) == state


def test_read_with_a_refused_login_is_an_error(plugin):
    state = values(plugin.create().properties)
    plugin.fault(wrong_password=True)
    with pytest.raises(grpc.RpcError) as caught:
        plugin.read(state)
    assert "refuses the login" in caught.value.details() and plugin.engine.logged == []


def test_a_node_cannot_be_imported(plugin):
    with pytest.raises(grpc.RpcError) as caught:
        plugin.read({}, inputs={})
    assert (
        caught.value.details() == "dgx01: a node cannot be imported: declare it and run up, which changes nothing on it"
    )


def test_only_the_name_replaces(plugin):
    diff = plugin.diff(plugin.inputs(), plugin.inputs(name="dgx02", verifyTls=False, serial=None))
    assert sorted(diff.diffs) == ["name", "serial", "verifyTls"] and list(diff.replaces) == ["name"]
    assert diff.deleteBeforeReplace
    kinds = {key: each.kind for key, each in diff.detailedDiff.items()}
    assert kinds == {
        "name": pb.PropertyDiff.UPDATE_REPLACE,
        "verifyTls": pb.PropertyDiff.ADD,
        "serial": pb.PropertyDiff.DELETE,
    }


def test_delete_leaves_the_node_alone(plugin):
    state = values(plugin.create().properties)
    before = len(plugin.requests())
    plugin.call("Delete", pb.DeleteRequest(id="dgx01", urn=URN, properties=struct(state)))
    assert plugin.power.on and len(plugin.requests()) == before


def test_delete_powers_off_only_when_declared(plugin):
    state = values(plugin.create(powerOffOnDelete=True).properties)
    assert plugin.power.on
    plugin.call("Delete", pb.DeleteRequest(id="dgx01", urn=URN, properties=struct(state)))
    assert not plugin.power.on


def test_delete_that_cannot_power_off_is_an_error(plugin):
    state = values(plugin.create(powerOffOnDelete=True).properties)
    plugin.fault(answer="reset")
    with pytest.raises(grpc.RpcError) as caught:
        plugin.call("Delete", pb.DeleteRequest(id="dgx01", urn=URN, properties=struct(state)))
    assert "closes the connection" in caught.value.details() and plugin.power.on


BAD = (None, 7, "x", [], {}, [None, 1, {}], "A" * 50_000, -1, {"@odata.id": "https://evil.example/redfish/v1/Systems"})


@pytest.mark.slow
def test_no_document_of_a_hostile_bmc_crashes_the_plugin(process, tmp_path):
    """More than 300 damaged documents over HTTP: each read is an answer or one sentence, and the plugin goes on."""
    child, stub, engine, stderr = process
    with serving(tmp_path, replace(MACHINE, vendor="dell")) as (bmc, power):
        plugin = Plugin(child, stub, engine, bmc, power, tmp_path)
        state = values(plugin.create().properties)
        documents = bmc.documents()
        kinds = {document["@odata.type"]: path for path, document in documents.items()}
        cases = [(path, name, bad) for path in kinds.values() for name in documents[path] for bad in BAD]
        tried = cases[:: len(cases) // 320]
        sentences = 0
        for path, name, bad in tried:
            plugin.fault(documents={path: {name: bad}})
            try:
                answer = plugin.read(state)
                assert answer.id == "dgx01", (path, name, bad)
            except grpc.RpcError as error:
                assert error.code() == grpc.StatusCode.FAILED_PRECONDITION, (path, name, bad, error.details())
                assert "\n" not in error.details()
                sentences += 1
        plugin.fault()
        assert values(plugin.read(state).properties) == state
        assert len(tried) >= 300 and child.poll() is None and bmc.sessions == {}
    assert "Traceback" not in stderr.read_text()


def test_without_an_engine_address_it_says_so():
    done = subprocess.run(
        [ROOT / "providers/baremetal/pulumi-resource-baremetal"], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2 and "is started by Pulumi" in done.stderr and done.stdout == ""


LATER = {"maintenance": "2999-12-31"}


def test_a_node_in_maintenance_is_told_and_fails_nothing(plugin):
    """One GPU is out, or its BMC is: the others' up goes on. What was accepted stays so, and is asked for again."""
    state = values(plugin.create().properties)
    plugin.fault(hardware={"lost_gpus": [3]})
    request = pb.UpdateRequest(id="dgx01", urn=URN, olds=struct(state), news=struct(plugin.inputs(allowed=LATER)))
    out = values(plugin.call("Update", request).properties)
    assert out["state"] == "maintenance" and "GPU" in out["stateReason"] and out["accepted"] == state["accepted"]
    assert "drift" not in values(plugin.read(out).inputs)
    back = pb.UpdateRequest(id="dgx01", urn=URN, olds=struct(out), news=struct(plugin.inputs()))
    with pytest.raises(grpc.RpcError, match="not as declared"):
        plugin.call("Update", back)
    plugin.fault(answer="unavailable", path="Systems")
    out = values(plugin.call("Update", request).properties)
    assert out["state"] == "maintenance" and out["reachable"] is False and out["accepted"] == state["accepted"]
    plugin.fault()
    assert values(plugin.call("Update", back).properties)["state"] == "ready"


def test_a_maintenance_ends_with_its_day(plugin):
    plugin.fault(hardware={"lost_gpus": [3]})
    with pytest.raises(grpc.RpcError, match="not as declared"):
        plugin.create(allowed={"maintenance": "2020-01-31"})
    assert values(plugin.create(allowed=LATER).properties)["state"] == "maintenance"
