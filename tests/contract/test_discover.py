"""`ironburst discover` and `ironburst node show` against the lab's BMCs on the loopback."""

import json
import socket
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from ironburst.cli import main
from ironburst.config import load
from lab.bmc import Bmc, Fault, write_fault
from tests.contract.emulator import MACHINE, PASSWORD, MemoryPower

ROOT = Path(__file__).parents[2]
ADDRESSES = {"127.0.0.9": "dell", "127.0.0.10": "hpe-ilo6", "127.0.0.11": "lenovo-xcc2"}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture
def hall(tmp_path, monkeypatch):
    """(port, requests) of three BMCs in 127.0.0.8/29, and one outside of it."""
    monkeypatch.setenv("BMC_PASSWORD", PASSWORD)
    port = free_port()
    with ExitStack() as running:
        for n, (address, vendor) in enumerate({**ADDRESSES, "127.0.0.17": "dell"}.items(), 1):
            machine = replace(
                MACHINE, name=f"n{n}", serial=f"S{n}", uuid=f"8b1e7f0e-0000-4000-8000-00000000000{n}", vendor=vendor
            )
            bmc = Bmc(
                machine,
                MemoryPower(),
                PASSWORD,
                address=address,
                port=port,
                faults=tmp_path / "faults.json",
                log=tmp_path / f"{address}.jsonl",
            )
            running.enter_context(bmc)

        def requests(address):
            log = tmp_path / f"{address}.jsonl"
            return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

        yield port, requests


def discover(capsys, port, *more, cidr="127.0.0.8/29"):
    code = main(["discover", cidr, "--port", str(port), "--plain-http", "--per-second", "500", *more])
    out, err = capsys.readouterr()
    assert PASSWORD not in out + err
    return code, out, err


LOGIN = ("--user", "admin", "--password", "env:BMC_PASSWORD", "--insecure")


def test_without_a_login_only_what_everybody_may_read_is_asked(hall, capsys):
    port, requests = hall
    code, out, _ = discover(capsys, port)
    assert code == 0
    nodes = yaml.safe_load(out)
    assert [each["bmc"]["addresses"] for each in nodes] == [f"http://{address}:{port}" for address in ADDRESSES]
    for address in ADDRESSES:
        assert [(each["method"], each["path"]) for each in requests(address)] == [("GET", "/redfish/v1")]
    assert requests("127.0.0.17") == []


def test_with_a_login_it_proposes_what_the_bmcs_report(hall, capsys):
    port, requests = hall
    _, out, _ = discover(capsys, port, *LOGIN)
    nodes = yaml.safe_load(out)
    assert [each["serials"] for each in nodes] == [["S1"], ["S2"], ["S3"]]
    assert nodes[0]["macs"] == ["52:54:00:4e:00:0b"] and nodes[0]["platform"] == "dell-poweredge-xe9680"
    assert nodes[1]["platform"] == "generic-hgx-h100-8-gpu"
    assert {each["method"] for address in ADDRESSES for each in requests(address)} == {"GET", "POST", "DELETE"}
    assert requests("127.0.0.17") == []
    _, out, _ = discover(capsys, port, *LOGIN, "--json")
    found = json.loads(out)
    assert [each["hardware"]["serial"] for each in found] == ["CNS1", "S2", "S3"] and found[0]["maker"] == "Dell"
    assert found[0]["hardware"]["service_tag"] == "S1"


def test_what_has_a_bmc_and_is_no_node_is_listed_as_such(tmp_path, monkeypatch, capsys):
    """As recorded of BlueField-3 and of an NVLink switch."""
    monkeypatch.setenv("BMC_PASSWORD", PASSWORD)
    port = free_port()
    card = replace(MACHINE, model="BlueField-3 SmartNIC Main Card", cpus=0, gpus=0, memory_gib=0, dimms=0)
    tray = replace(MACHINE, vendor="nvidia-gb200", gpus=4, uuid="8b1e7f0e-0000-4000-8000-00000000000c")
    with ExitStack() as running:
        for address, machine in (("127.0.0.9", card), ("127.0.0.10", tray)):
            running.enter_context(Bmc(machine, MemoryPower(), PASSWORD, address=address, port=port))
        _, out, _ = discover(capsys, port, *LOGIN)
        _, listed, _ = discover(capsys, port, *LOGIN, "--json")
    said = (
        "not a node: it lists no CPUs of a host; a server that never started may list them later (lab BMC (emulated), "
    )
    assert f"# 127.0.0.9: {said}BlueField-3 SmartNIC Main Card)" in out
    (node,) = yaml.safe_load(out)
    assert node["serials"] == ["LAB-DGX01"] and "# of its chassis: the system says none" in out
    assert [bool(each["no_node"]) for each in json.loads(listed)] == [True, False]


def test_a_login_needs_a_certificate_that_is_known(hall, capsys):
    port, requests = hall
    _, out, _ = discover(capsys, port, *LOGIN[:-1])
    assert out.count("not read: no CA known here signed its certificate") == 3
    assert all(len(requests(address)) == 1 for address in ADDRESSES)


def test_a_wrong_password_is_tried_once_at_each_bmc(hall, capsys, monkeypatch, tmp_path):
    port, requests = hall
    write_fault(tmp_path / "faults.json", "n3", Fault(documents={"/redfish/v1": {"UUID": MACHINE.uuid[:-1] + "1"}}))
    monkeypatch.setenv("BMC_PASSWORD", "wrong")
    code, out, _ = discover(capsys, port, *LOGIN)
    assert (
        code == 0 and out.count("refuses the login of user 'admin'") == 2 and "the same BMC as another address" in out
    )
    refused = [[each for each in requests(address) if each["status"] == 401] for address in ADDRESSES]
    assert [len(each) for each in refused] == [1, 1, 0]


def test_an_answer_leads_nobody_out_of_the_network(hall, capsys, tmp_path):
    port, requests = hall
    away = {"@odata.id": f"http://127.0.0.17:{port}/redfish/v1/Systems"}
    write_fault(tmp_path / "faults.json", "n1", Fault(documents={"/redfish/v1": {"Systems": away, "Chassis": away}}))
    _, out, _ = discover(capsys, port, *LOGIN)
    assert "leads off this BMC" in out and requests("127.0.0.17") == []


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["10.0.9.0/33"], "is no IPv4 network"),
        (["10.0.0.0/8"], "at most 4096 are asked: give a part"),
        (["8.8.8.0/24"], "is a public network"),
        (["10.0.9.0/30", "--user", "admin"], "belong together"),
        (["10.0.9.0/30", "--user", "admin", "--password", "env:NOT_SET"], "--password: the secret reference"),
        (["10.0.9.0/30", "--per-second", "0"], "--per-second above 0"),
        (["127.0.0.8/30", "--ca-file", "/no/such.pem"], "--ca-file /no/such.pem: No such file"),
    ],
)
def test_bad_input_is_one_sentence(argv, words, capsys):
    assert main(["discover", *argv]) == 2
    out, err = capsys.readouterr()
    assert words in err and err.count("\n") == 1 and out == ""


# ---- node show


@pytest.fixture
def stack(tmp_path, monkeypatch):
    """A stack file whose dgx01 has a BMC here."""
    declared = load.read_value(ROOT / "stacks/Pulumi.lab.yaml")
    monkeypatch.setenv("LAB_BMC_PASSWORD", PASSWORD)
    machine = replace(MACHINE, macs=("52:54:00:4e:00:0b",), model="HGX-8H100")
    with Bmc(machine, MemoryPower(), PASSWORD, port=0, faults=tmp_path / "faults.json") as bmc:
        nodes = declared["halls"][0]["nodes"][1]
        nodes["bmc"] = {"addresses": [bmc.url, "http://10.78.8.12"], "username": "admin"}
        nodes["bmc"]["password"] = "env:LAB_BMC_PASSWORD"
        del declared["halls"][0]["nodes"][0]["bmc"]
        nodes |= {"serials": ["LAB-DGX01", "LAB-DGX02"], "macs": None}
        declared["halls"][0]["bmc_cidr"] = "127.0.0.0/8"
        nodes["bmc"]["addresses"][1] = "http://127.0.0.99"
        path = tmp_path / "Pulumi.test.yaml"

        def write():
            path.write_text(yaml.safe_dump({"config": {"ironburst:cluster": declared}}))
            return str(path)

        yield write, declared, tmp_path / "faults.json"


def show(capsys, *argv):
    code = main(["node", "show", *argv])
    out, err = capsys.readouterr()
    assert PASSWORD not in out + err
    return code, out, err


def test_a_node_as_declared(stack, capsys):
    write, _, _ = stack
    code, out, err = show(capsys, "dgx01", write())
    assert (code, err) == (0, "")
    for words in (
        "serial LAB-DGX01",
        "8 x NVIDIA H100 80GB HBM3",
        "GPU_SXM_1: x16, OK",
        "Inlet: 24.5 Cel",
        "BIOS: 1.0",
    ):
        assert words in out
    assert "not as declared" not in out


def test_what_is_not_as_declared_and_who_answers_for_it(stack, capsys):
    write, declared, faults = stack
    write_fault(faults, "dgx01", Fault(hardware={"lost_gpus": [2], "dead_psus": [1, 2, 3, 4]}))
    code, out, _ = show(capsys, "dgx01", write(), "--json")
    shown = json.loads(out)
    assert code == 4
    assert [each["mismatch"] for each in shown["mismatches"]] == ["gpu_count", "psu_input", "psu_redundancy"]
    until = {"reason": "ordered", "by": "ops", "until": str(datetime.now(UTC).date() + timedelta(days=10))}
    declared["allow"] = [
        {"rule": "hardware", "of": f"dgx01/{each['mismatch']}", **until} for each in shown["mismatches"]
    ]
    code, out, _ = show(capsys, "dgx01", write())
    assert code == 0 and "not as declared, allowed:\n  - dgx01: 8 x H100 SXM5 80GB GPUs are declared" in out


def test_an_unknown_node_and_a_dead_bmc(stack, capsys):
    write, _, faults = stack
    code, _, err = show(capsys, "dgx99", write())
    assert code == 2 and "'dgx99' is no managed node with a bmc" in err and "dgx01" in err
    write_fault(faults, "dgx01", Fault(answer="garbled"))
    code, out, err = show(capsys, "dgx01", write())
    assert code == 3 and out == "" and "not a complete Redfish document" in err
