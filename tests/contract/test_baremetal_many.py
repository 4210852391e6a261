"""200 declared nodes, 200 BMCs: a refresh takes what the BMCs take, and one that hangs stops nobody else. The BMCs are
a process of their own (python -m lab.bmc --nodes), the plugin another; both share the cores with the test.
"""

import json
import math
import os
import subprocess
import sys
import time
from concurrent import futures
from pathlib import Path

import grpc
import pytest
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import engine_pb2_grpc, provider_pb2_grpc
from pulumi.runtime.proto import provider_pb2 as pb

from lab.bmc import Fault, write_fault

ROOT = Path(__file__).parents[2]
PASSWORD = "correct-horse-4711"
AT_ONCE = 16
TIMEOUT_S = 30


class Engine(engine_pb2_grpc.EngineServicer):
    def __init__(self):
        self.warned = []

    def Log(self, request, context):
        self.warned.append(request.message)
        return empty_pb2.Empty()


def struct(values):
    return json_format.ParseDict(values, struct_pb2.Struct())


class Estate:
    """The BMCs, and the plugin that is asked about them as an engine does: so many at once."""

    def __init__(self, folder, count, delay_s):
        environment = os.environ | {"LAB_BMC_PASSWORD": PASSWORD, "PYTHONPATH": str(ROOT)}
        self.folder, self.engine = folder, Engine()
        argv = [sys.executable, "-m", "lab.bmc", "--nodes", str(count), "--vendor", "supermicro-x14"]
        argv += ["--delay", str(delay_s), "--faults", str(folder / "faults.json")]
        self.bmcs = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        self.nodes = [json.loads(line) for line in iter(self.bmcs.stdout.readline, "ready\n")]
        self.server = grpc.server(futures.ThreadPoolExecutor(4))
        engine_pb2_grpc.add_EngineServicer_to_server(self.engine, self.server)
        port = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        argv = [str(ROOT / "providers/baremetal/pulumi-resource-baremetal"), f"127.0.0.1:{port}"]
        self.plugin = subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE, text=True)
        self.channel = grpc.insecure_channel(f"127.0.0.1:{int(self.plugin.stdout.readline())}")
        self.stub = provider_pb2_grpc.ResourceProviderStub(self.channel)
        self.stub.Configure(pb.ConfigureRequest(), timeout=20, wait_for_ready=True)

    def end(self):
        self.channel.close()
        for process in (self.plugin, self.bmcs):
            process.terminate()
            process.wait(20)
        self.server.stop(None)

    def read(self, node):
        """(seconds, outputs) of one refresh."""
        inputs = {
            "name": node["node"],
            "bmcAddress": node["url"],
            "bmcUsername": "admin",
            "passwordRef": "env:LAB_BMC_PASSWORD",
            "gpuModel": "H100 SXM5 80GB",
            "gpuCount": 8,
            "timeoutSeconds": TIMEOUT_S,
        }
        began = time.monotonic()
        request = pb.ReadRequest(
            id=node["node"],
            urn=f"urn:pulumi:dev::ironburst::baremetal:index:Node::{node['node']}",
            properties=struct(inputs | {"reachable": True}),
            inputs=struct(inputs),
        )
        answer = self.stub.Read(request, timeout=120)
        return time.monotonic() - began, json_format.MessageToDict(answer.properties)

    def refresh(self):
        """(seconds in all, outputs of each)."""
        began = time.monotonic()
        with futures.ThreadPoolExecutor(AT_ONCE) as threads:
            outputs = [answer for _, answer in threads.map(self.read, self.nodes)]
        return time.monotonic() - began, outputs


@pytest.fixture
def estate(tmp_path, request):
    started = Estate(tmp_path, *request.param)
    yield started
    started.end()


def figures(estate):
    alone = max(estate.read(node)[0] for node in estate.nodes[:3])
    waves = math.ceil(len(estate.nodes) / AT_ONCE)
    took, outputs = estate.refresh()
    assert all(each["reachable"] and each["observed"]["gpus"][0]["count"] == 8 for each in outputs)
    print(f"{len(outputs)} nodes, {AT_ONCE} at once: {took:.1f} s; one BMC alone {alone:.2f} s, {waves} waves")
    print(f"multiple: {took / (alone * waves):.2f}")

    write_fault(estate.folder / "faults.json", estate.nodes[7]["node"], Fault(answer="silent", path="Systems"))
    hung, outputs = estate.refresh()
    unreachable = [each["name"] for each in outputs if not each["reachable"]]
    print(f"one hangs: {hung:.1f} s, {len(outputs) - len(unreachable)} done")
    assert unreachable == [estate.nodes[7]["node"]]
    (warning,) = estate.engine.warned
    assert "does not answer within" in warning
    return took / (alone * waves), hung - took


@pytest.mark.slow
@pytest.mark.parametrize("estate", [(200, 0.15)], indirect=True)
def test_two_hundred_nodes_take_what_their_bmcs_take(estate):
    multiple, more_s = figures(estate)
    assert multiple <= 1.5
    assert more_s <= TIMEOUT_S + 5


@pytest.mark.parametrize("estate", [(12, 0.0)], indirect=True)
def test_a_hung_bmc_stops_nobody_else(estate):
    write_fault(estate.folder / "faults.json", "node003", Fault(answer="silent"))
    with futures.ThreadPoolExecutor(AT_ONCE) as threads:
        reads = {node["node"]: threads.submit(estate.read, node) for node in estate.nodes}
        others = [read for name, read in reads.items() if name != "node003"]
        done, _ = futures.wait(others, timeout=25)
        assert len(done) == 11 and not reads["node003"].done()
        write_fault(estate.folder / "faults.json", "node003", None)
        estate.bmcs.terminate()  # it hangs no longer than its BMC
        assert reads["node003"].result(60)[1]["reachable"] is False
