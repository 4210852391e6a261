"""What the lab's control plane is made of, without starting it."""

import base64
import ipaddress
import os
import re
import socket
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from lab import go as lab_go
from lab.hosts.box import Box
from lab.kubernetes import access, authority, binaries, commands, nodes, stages
from lab.kubernetes.access import Account
from lab.kubernetes.binaries import KUBERNETES, MODULES, PROGRAMS
from lab.kubernetes.commands import ALIVE, LISTENERS, NOBODYS, ORDER, Layout, Options
from lab.kubernetes.control_plane import ControlPlane, free_ports
from lab.kubernetes.instance import PROGRAMS as NODE_PROGRAMS
from lab.kubernetes.instance import Machine, Times
from lab.kubernetes.nodes import DEVICES, NodeSpec
from lab.kubernetes.relay import Relay
from lab.system import CHECKOUT, LabError

LAYOUT = Layout(Path("/lab/k"), Path("/cache/k"), {name: 20000 + n for n, name in enumerate(LISTENERS)})


def flags(program, options=None):
    argv = commands.command(program, LAYOUT, options or Options())
    assert argv[0] == f"/cache/k/{program}"
    pairs = [argument.removeprefix("--").partition("=") for argument in argv[1:]]
    assert len({name for name, _, _ in pairs}) == len(pairs)
    return {name: value for name, _, value in pairs}


# --- command lines ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", ORDER)
def test_every_program_listens_on_loopback_at_its_own_port(program):
    port = f"{LAYOUT.ports[program]}"
    given = flags(program)
    if program in ("etcd", "kwok"):
        heard = {name: value for name, value in given.items() if "listen" in name or name == "server-address"}
        assert heard and all(re.search(r"(^|//)127\.0\.0\.1:\d+$", value) for value in heard.values())
        assert any(value.endswith(port) for value in heard.values())
    else:
        assert (given["bind-address"], given["secure-port"]) == ("127.0.0.1", port)
    assert f"127.0.0.1:{port}/" in commands.health(LAYOUT, program)


def test_the_api_refuses_what_a_real_one_refuses():
    given = flags("kube-apiserver")
    assert given["authorization-mode"] == "Node,RBAC"
    assert given["enable-admission-plugins"] == "NodeRestriction"
    assert not {"disable-admission-plugins", "anonymous-auth", "insecure-port"} & set(given)


def test_a_stranger_gets_in_by_a_bootstrap_token_and_is_signed_by_the_authority():
    api, manager = flags("kube-apiserver"), flags("kube-controller-manager")
    authority = str(LAYOUT.authority)
    assert api["enable-bootstrap-token-auth"] == "true"
    assert api["client-ca-file"] == manager["cluster-signing-cert-file"] == manager["root-ca-file"] == authority
    assert manager["controllers"] == "*,bootstrapsigner,tokencleaner"  # as kubeadm has it


def test_the_api_alone_listens_elsewhere_if_it_is_told_so():
    there = replace(LAYOUT, address="10.78.0.1")
    heard = {program: " ".join(commands.command(program, there, Options())) for program in ORDER}
    assert [program for program, argv in heard.items() if "10.78.0.1" in argv] == ["kube-apiserver"]
    assert there.server == "https://10.78.0.1:20002" and commands.health(there, "kube-apiserver").startswith(
        there.server
    )
    assert "127.0.0.1" in commands.health(there, "kube-scheduler")


# --- the authority ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [False, True])
def test_the_servers_certificate_is_signed_for_its_address(known):
    made = authority.files("10.78.0.1", known)
    root, leaf = (x509.load_pem_x509_certificate(made[f"{name}.crt"].encode()) for name in ("ca", "apiserver"))
    leaf.verify_directly_issued_by(root)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ipaddress.ip_address("10.78.0.1") in names.get_values_for_type(x509.IPAddress)
    key = serialization.load_pem_private_key(made["ca.key"].encode(), None)
    assert key.public_key() == root.public_key()


def test_the_known_authority_is_the_one_that_the_labs_stack_names_and_others_are_new():
    stack = yaml.safe_load((CHECKOUT / "stacks/Pulumi.lab-kubernetes.yaml").read_text())
    named = stack["config"]["ironburst:cluster"]["scheduler"]["ca"]
    assert named == authority.files("127.0.0.1", known_authority=True)["ca.crt"]
    assert len({named, authority.files("127.0.0.1")["ca.crt"], authority.files("127.0.0.1")["ca.crt"]}) == 3


# --- instances -------------------------------------------------------------------------------------------------


def test_a_relay_goes_on_from_the_instances_address():
    with socket.create_server(("127.0.0.1", 0)) as target:
        port = int(Relay("127.0.0.9", target.getsockname()[:2]).url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), 5) as near:
            near.sendall(b"question")
            near.shutdown(socket.SHUT_WR)
            far, (address, _) = target.accept()
            with far:
                assert (address, far.recv(100), far.recv(100)) == ("127.0.0.9", b"question", b"")
                far.sendall(b"answer")
            assert near.recv(100) == b"answer"


def test_an_image_has_the_programs_as_the_roles_have_them(tmp_path):
    Machine(tmp_path, "http://aws", "http://imds", Times()).image()
    for name, source in NODE_PROGRAMS.items():
        there, own = ((path.read_text().partition("\n")) for path in (tmp_path / "usr/local/sbin" / name, source))
        assert there[2] == own[2] and (own[0] == "#!/usr/bin/python3" or (name.endswith(".py") and there == own))
        assert os.access(tmp_path / "usr/local/sbin" / name, os.X_OK)


def test_gates_and_versions_reach_the_programs_that_know_them():
    options = Options(feature_gates={"A": True, "B": False}, runtime_config={"scheduling.k8s.io/v1alpha2": "true"})
    gated = [program for program in ORDER if flags(program, options).get("feature-gates") == "A=true,B=false"]
    assert gated == ["kube-apiserver", "kube-controller-manager", "kube-scheduler"]
    assert flags("kube-apiserver", options)["runtime-config"] == "scheduling.k8s.io/v1alpha2=true"
    assert not any("feature-gates" in flags(program) for program in ORDER)


def test_a_silent_node_is_noticed_in_time():
    assert flags("kube-controller-manager", Options(grace_s=5))["node-monitor-grace-period"] == "5s"
    assert flags("kube-apiserver", Options(toleration_s=7))["default-unreachable-toleration-seconds"] == "7"
    renewed_s = int(flags("kwok")["node-lease-duration-seconds"]) / 4
    assert renewed_s * 4 <= Options().grace_s  # a late heartbeat or two doesn't matter


# --- stages ----------------------------------------------------------------------------------------------------


def test_no_stage_of_a_pod_is_played_late_on_an_unreachable_node():
    written = list(yaml.safe_load_all(stages.text()))
    late = [each["spec"] for each in written if each["spec"]["resourceRef"]["kind"] == "Pod"]
    late = [spec for spec in late if "delay" in spec or {"delete": True} in spec["steps"]]
    assert len(late) == 5
    for spec in late:
        template = spec["steps"][0]["patch"]["template"]
        assert template.startswith(stages.REACHABLE)
    assert flags("kwok")["node-ip"] == NOBODYS
    assert ipaddress.ip_address(NOBODYS) not in nodes.ADDRESSES


# --- who may sign in -------------------------------------------------------------------------------------------


def test_a_kubeconfig_verifies_the_server():
    text = access.kubeconfig("lab-x", "https://127.0.0.1:20002", b"PEM", Account("alice", "t0ken", ()))
    config = yaml.safe_load(text)
    (cluster,), (user,), (context,) = config["clusters"], config["users"], config["contexts"]
    assert set(cluster["cluster"]) == {"server", "certificate-authority-data"}
    assert base64.b64decode(cluster["cluster"]["certificate-authority-data"]) == b"PEM"
    assert user == {"name": "alice", "user": {"token": "t0ken"}}
    assert context == {"name": config["current-context"], "context": {"cluster": "lab-x", "user": "alice"}}


def test_tokens_and_groups_come_back():
    accounts = [Account("alice", "t1", ("a", "b")), Account("system:kube-scheduler", "t2", ())]
    text = access.token_file(accounts)
    assert text == 't1,alice,alice,"a,b"\nt2,system:kube-scheduler,system:kube-scheduler\n'
    assert access.accounts_of(text) == accounts


@pytest.mark.parametrize("name", ["", "a,b", "a\nb", "../a", "-a"])
def test_a_name_that_breaks_the_token_file_is_refused(name):
    with pytest.raises(LabError, match="use letters, digits and : @"):
        access.check_name("user", name)


# --- nodes -----------------------------------------------------------------------------------------------------


def test_a_node_registers_without_its_devices():
    node = nodes.manifest(NodeSpec("gpu-1", {"a": "b"}, {"cpu": "192", "nvidia.com/gpu": "8"}, ["x=y:NoSchedule"]))
    assert node["status"]["capacity"]["cpu"] == "192" and "nvidia.com/gpu" not in node["status"]["capacity"]
    assert node["metadata"]["annotations"][DEVICES] == '{"nvidia.com/gpu": "8"}'
    assert node["metadata"]["labels"].items() >= {"a": "b", ALIVE: "true"}.items()
    assert [condition["status"] for condition in node["status"]["conditions"]] == ["False"]
    assert node["spec"] == {"taints": [{"key": "x", "value": "y", "effect": "NoSchedule"}]}
    assert "stand-in" in node["status"]["nodeInfo"]["osImage"]  # what `kubectl get nodes -o wide` shows


def test_a_node_without_devices_waits_for_none():
    assert DEVICES not in nodes.manifest(NodeSpec("cpu-1"))["metadata"]["annotations"]


def test_addresses_are_nobodys_and_stay():
    addresses = {nodes.address_of(f"gpu-{n}") for n in range(100)}
    assert len(addresses) == 100 and all(ipaddress.ip_address(each) in nodes.ADDRESSES for each in addresses)
    assert nodes.address_of("gpu-1") == nodes.address_of("gpu-1")


def test_taints():
    assert nodes.taint_of("a/b:NoExecute") == {"key": "a/b", "effect": "NoExecute"}
    for wrong in ("a", "a=b", ":NoSchedule", "a=b:Never"):
        with pytest.raises(LabError, match="write key=value:Effect"):
            nodes.taint_of(wrong)


# --- the build -------------------------------------------------------------------------------------------------


def test_one_version_of_kubernetes_everywhere():
    text = (MODULES / "kubernetes" / "go.mod").read_text()
    assert re.search(rf"^\tk8s\.io/kubernetes v{re.escape(KUBERNETES)}\b", text, re.MULTILINE)
    staged = re.findall(r"^\t(k8s\.io/\S+) => (\S+) v0\.(\S+)$", text, re.MULTILINE)
    assert staged and {(name == of, version) for name, of, version in staged} == {(True, KUBERNETES.removeprefix("1."))}
    built = [program for program in PROGRAMS if program.module == "kubernetes"]
    assert len(built) == 4 and all(f"gitVersion=v{KUBERNETES}" in program.link for program in built)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_is_a_tool_of_its_module(program):
    text = (MODULES / program.module / "go.mod").read_text()
    assert re.search(rf"^(tool |\t){re.escape(program.package)}$", text, re.MULTILINE)
    assert (MODULES / program.module / "go.sum").stat().st_size > 0


def fake_go(tmp_path, monkeypatch, script, version="go1.26.0"):
    """A `go` of a version that does what the script says: $target is what it shall write."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir(exist_ok=True)
    version = f'[ "$1" != env ] || {{ echo {version}; exit; }}'
    target = 'for a; do [ "$b" = -o ] && target=$a; b=$a; done\nname=${target##*/}'
    go.write_text(f"#!/bin/sh\n{version}\n{target}\n{script}\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}/usr/bin{os.pathsep}/bin")


def test_a_build_goes_on_where_it_was_and_is_done_only_at_its_end(tmp_path, monkeypatch):
    fake_go(
        tmp_path,
        monkeypatch,
        'echo "go: downloading x" >&2; [ $name != kwok ] || { echo lost >&2; exit 1; }\n: >$target',
    )
    with pytest.raises(LabError, match=r"^building kwok failed: lost \("):
        list(binaries.build(tmp_path))
    assert not binaries.built(tmp_path)
    fake_go(tmp_path, monkeypatch, "echo fmt >&2; echo k8s.io/api/core/v1 >&2; : >$target")
    compiled = []
    told = binaries.build(tmp_path, lambda package, count: compiled.append((package, count)))
    assert list(told) == [program.name for program in PROGRAMS]
    assert compiled[:2] == [("fmt", 1), ("k8s.io/api/core/v1", 2)]  # what `go build -v` says of each
    assert {path.name for path in binaries.folder(tmp_path).iterdir()} == {program.name for program in PROGRAMS}
    assert binaries.built(tmp_path) and list(binaries.build(tmp_path)) == []


@pytest.mark.parametrize("version", [None, "go1.25.11"])
def test_without_a_go_that_is_new_enough_pypis_is_installed_once(tmp_path, monkeypatch, version):
    def pip(command):
        assert "--require-hashes" in command
        (Path(command[command.index("--target") + 1]) / "go" / "bin").mkdir(parents=True)
        asked.append(command)

    asked = []
    monkeypatch.setattr(lab_go, "run", pip)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    if version:
        fake_go(tmp_path, monkeypatch, ": >$target", version)
    assert [lab_go.go(tmp_path) for _ in range(2)] == [f"{tmp_path}/cache/go/go/bin/go"] * 2 and len(asked) == 1


# --- the plane -------------------------------------------------------------------------------------------------


def test_what_is_not_there_is_said(tmp_path):
    plane = ControlPlane("t-kube", tmp_path)
    with pytest.raises(LabError, match="built: run 'make kubernetes'"):
        plane.up()
    with pytest.raises(LabError, match=r"no control plane: start it with .* up --prefix t-kube'"):
        plane.api()
    assert plane.down() == [] and plane.status()["up"] is False
    assert [path.name for path in tmp_path.iterdir()] == ["locks"]


def test_a_box_of_the_same_prefix_lets_it_be(tmp_path):
    plane = ControlPlane("t-kube", tmp_path)
    plane.folder.mkdir(parents=True)
    Box("t-kube", tmp_path).down()
    assert plane.folder.is_dir()


def test_a_user_of_no_valid_name_stops_nothing_half_way(tmp_path):
    with pytest.raises(LabError, match="group 'a,b'"):
        ControlPlane("t-kube", tmp_path).up(Options(users={"alice": ["a,b"]}))
    assert list(tmp_path.iterdir()) == []


def test_ports_are_free_and_different():
    ports = free_ports(50)
    assert len(set(ports)) == 50 and all(20000 <= port < 30000 for port in ports)
