"""No secret leaves its place: one is planted behind every reference that a declaration can have, by each scheme, and
then searched for in all that comes of it (tests/planted.py says how).

Here that is what needs no root: the program on the lab's cloud, CI's scripts, document, inventory,
controller, doctor. Hosts, images and Ansible: tests/lab/test_planted_secrets.py.
"""

import base64
import gzip
import io
import json
import os
import re
import sqlite3
import subprocess
import sys
import tarfile
import typing
import urllib.parse
import zipfile
from pathlib import Path
from types import SimpleNamespace

import azure.identity
import google.auth
import google.oauth2.credentials
import pytest
import yaml
from pydantic import AfterValidator, BaseModel

from ironburst import cli, document
from ironburst.cli import reap, run, status, tick
from ironburst.config import load, types
from ironburst.config.models import ClusterConfig
from ironburst.system import secrets
from lab.aws.cloud import Cloud
from lab.aws.testing import client
from lab.azure.key_vault import KeyVault
from lab.bmc import Bmc
from lab.google.iam import Binding, Iam
from lab.google.secret_manager import SecretManager
from lab.hosts.bmcs import machine_of
from lab.pulumi import binary
from tests import azure_stack
from tests.components import google_stack
from tests.components.conftest import lab_value, record, valid
from tests.components.projects import project
from tests.contract.emulator import MemoryPower
from tests.fakes import FakeClock, FakeCloud, FakeSlurm, connect_to
from tests.lab_cloud import allow_spot
from tests.planted import Plants, Processes
from tests.unit.kubernetes_stack import BRIDGE, on_both

ROOT = Path(__file__).parents[1]
KUBECONFIG = (
    "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
    "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]\n"
    "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {token: '{}'}}]\n"
)
TEXTS = {"kubeconfig": KUBECONFIG, "admin_kubeconfig": KUBECONFIG}  # others have every character that somebody changes
# What a role's variable refers to, which no declaration has; whoever sets it writes a reference
OF_ROLES = {"kubernetes_node_bootstrap_token", "kubernetes_head_ca_key", "shared_filesystem_beegfs_secret"}
KEYS = {"AWS_ACCESS_KEY_ID": "lab", "AWS_SECRET_ACCESS_KEY": "lab", "AWS_DEFAULT_REGION": "us-east-1"}
TOOLS = {  # ssh says what it was called with, and reaches nobody
    "ironburst": f'exec {sys.executable} -m ironburst.cli "$@"',
    "ssh": 'echo "$0 $*" >> "$SAID_TO_SSH"; exit 255',
    "scp": "exit 255",
}


# ---- the search


def packed(value):
    """The same secret as somebody may have left it."""
    text = f"before {value} after".encode()
    zipped, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as file:
        file.writestr("a", text)
    with tarfile.open(fileobj=tarred, mode="w:gz") as file:
        info = tarfile.TarInfo("a")
        info.size = len(text)
        file.addfile(info, io.BytesIO(text))
    return {
        "as it is": text,
        "JSON": json.dumps({"a": value}).encode(),
        "JSON in JSON": json.dumps(json.dumps({"a": value})).encode(),
        "a URL": urllib.parse.quote(value, safe="").encode(),
        "base64": base64.b64encode(text),
        "base64 in lines": base64.encodebytes(b"x" * 50 + text),
        "base64 for URLs": base64.urlsafe_b64encode(b"xx" + text),
        "base64 of base64": base64.b64encode(b"x" * 40 + base64.b64encode(text)),
        "hex": text.hex().encode(),
        "broken over lines": text[:25] + b"\n" + text[25:],
        "gzip": gzip.compress(text) + gzip.compress(b"more"),
        "base64 of gzip, as user data": b"{'u': '" + base64.b64encode(gzip.compress(text)) + b"'}",
        "zip": zipped.getvalue(),
        "tar": tarred.getvalue(),
    }


def test_the_search_finds_what_is_there_and_nothing_else(tmp_path):
    plants = Plants()
    value = plants.plant("key")
    for how, data in packed(value).items():
        assert plants.found(how, data), how
    for how, data in packed("nobody's").items():
        assert plants.found(how, data) == [], how
    db = sqlite3.connect(tmp_path / "a.sqlite")
    db.execute("CREATE TABLE a (b TEXT, c BLOB)")
    db.execute("INSERT INTO a VALUES (?, ?)", ("x" * 10000, gzip.compress(value.encode())))
    db.commit()
    db.close()
    (tmp_path / f"of-{plants.words['key']}").write_text("")
    said = plants.in_folder(tmp_path)
    assert len(said) == 2 and all(text.endswith(": key") for text in said) and "sqlite) (gzip" in said[1]
    assert plants.in_folder(tmp_path, tmp_path) == plants.found("names of files", "")
    with Processes() as processes, subprocess.Popen([sys.executable, "-c", "input()", value], stdin=-1) as sleeping:
        while not any(b"input()" in line for line in set(processes.seen)):
            assert sleeping.poll() is None
        sleeping.kill()
    assert plants.found("processes", b"\n".join(processes.seen)) == ["processes: key"]


# ---- every reference


def fields_of(kind, seen=None):
    """`Model.field` of every reference to a secret that a model, or one below it, has: by type."""
    seen = set() if seen is None else seen
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in seen:
        seen.add(kind)
        for name, field in kind.model_fields.items():
            if _is_reference(field.annotation, field.metadata):
                yield f"{kind.__name__}.{name}"
            yield from fields_of(field.annotation, seen)
    for inner in typing.get_args(kind):
        yield from fields_of(inner, seen)


def _is_reference(annotation, metadata=()):
    mine = [each for each in metadata if isinstance(each, AfterValidator) and each.func is types._reference]
    return bool(mine) or any(
        _is_reference(inner, getattr(annotation, "__metadata__", ())) for inner in typing.get_args(annotation)
    )


def references_in(model):
    """`Model.field` -> what is written there, of each reference that a declaration has."""
    of_mine = set(fields_of(type(model)))
    for name in type(model).model_fields:
        value = getattr(model, name)
        if f"{type(model).__name__}.{name}" in of_mine and isinstance(value, str):
            yield f"{type(model).__name__}.{name}", value
        elif f"{type(model).__name__}.{name}" in of_mine and isinstance(value, dict):  # reference: its copy
            yield from ((f"{type(model).__name__}.{name}", copy) for copy in value.values())
        for inner in value if isinstance(value, list | tuple) else [value]:
            if isinstance(inner, BaseModel):
                yield from references_in(inner)


class Planted:
    """Secrets behind references of one scheme; what rented nodes read, behind their cloud's store."""

    READ_BY_NODES = ("join_token", "munge_key", "secrets")

    def __init__(self, scheme, folder, monkeypatch, url, google_store, vaults):
        self.scheme, self.folder, self.url, self.google_store, self.plants = scheme, folder, url, google_store, Plants()
        self.monkeypatch, self.environment, self.vaults = monkeypatch, {}, vaults
        folder.mkdir()

    def reference(self, name, store="aws-secretsmanager"):
        """To a new secret, of `Model.field`; `store`: of the rented nodes' cloud; None: there are none."""
        key = name.partition(".")[2]
        scheme = store if key in self.READ_BY_NODES and store else self.scheme
        value = self.plants.plant(f"{name} by {scheme}", TEXTS.get(key, "p\"l/a+n&t <{}> '%\\"))
        if scheme == "file":
            path = self.folder / name
            path.write_text(value + "\n")
            return f"file:{path}"
        if scheme == "env":
            variable = f"SECRET_{name.replace('.', '_').upper()}"
            self.environment[variable] = value
            self.monkeypatch.setenv(variable, value)
            return f"env:{variable}"
        stored, said = (json.dumps({"k": value}), "#k") if key == "password" else (value, "")
        if scheme == "google-secretmanager":
            self.google_store.held[f"projects/lab/secrets/{name.replace('.', '_')}"] = stored.encode()
            return f"google-secretmanager:lab/{name.replace('.', '_')}{said}"
        if scheme == "azure-keyvault":
            stored_as = f"lab-vault/{name.replace('.', '-').replace('_', '-')}"
            self.vaults.held[stored_as] = stored
            return f"azure-keyvault:{stored_as}{said}"
        manager = client(self.url, "secretsmanager")
        if name in [each["Name"] for each in manager.list_secrets()["SecretList"]]:
            manager.put_secret_value(SecretId=name, SecretString=stored)
        else:
            manager.create_secret(Name=name, SecretString=stored)
        return f"aws-secretsmanager:{name}{said}"


def on_slurm(value, planted):
    """The lab's stack: Slurm, with users of a directory, and a login that sudo asks for a password."""
    value["ssh"] = {"user": "anna", "sudo_password": planted.reference("Ssh.sudo_password"), "key_name": "lab"}
    for nodes in value["halls"][0]["nodes"]:
        nodes["bmc"]["password"] = planted.reference("Bmc.password")
    value["scheduler"]["munge_key"] = planted.reference("Slurm.munge_key")
    directory = {"uri": "ldaps://ldap.example.org", "base": "dc=example,dc=org", "bind_dn": "cn=sssd,dc=example"}
    directory["bind_password"] = planted.reference("Directory.bind_password")
    value["users"] = {"homes": "/shared/home", "directory": directory, "rented": "nss_slurm"}
    relay = {"host": "mail.example.org:587", "sender": "a@example.org", "user": "anna"}
    told = {"audience": "operators", "service": "slack", "secret": planted.reference("Told.secret")}
    logs = {"url": "https://logs.example.org", "user": "anna", "password": planted.reference("Logs.password")}
    relay |= {"password": planted.reference("Relay.password")}
    value["monitoring"] = {"relay": relay, "tell": [told], "logs": logs}


def on_one_hall(value, planted):
    """No cloud: the munge key may lie anywhere."""
    on_slurm(value, planted)
    for key in ("cloud", "budget", "burst"):
        value.pop(key, None)
    del value["ssh"]["key_name"]
    value["scheduler"]["munge_key"] = planted.reference("Slurm.munge_key", store=None)


def on_slurm_and_kubernetes(value, planted):
    on_slurm(value, planted)
    on_both(value)
    keys = ("kubeconfig", "admin_kubeconfig", "join_token")
    value["other_schedulers"][0] |= {key: planted.reference(f"Kubernetes.{key}") for key in keys}


def on_a_bridge(value, planted):
    on_slurm(value, planted)
    keys = ("kubeconfig", "admin_kubeconfig", "join_token")
    value["scheduler"]["bridge"] = BRIDGE | {key: planted.reference(f"Bridge.{key}") for key in keys}
    value["software"] |= {"slurm": "25.11", "kubernetes": "1.35"}


def on_two_heads(value, planted):
    nodes = value["halls"][0]["nodes"]
    head = next(each for each in nodes if each.get("role") == "head")
    its = {"names": "head2", "units": [39], "addresses": "10.78.0.9", "macs": ["52:54:00:4e:00:09"]}
    its |= {"serials": ["LAB-HEAD2"], "bmc": head["bmc"] | {"addresses": "http://10.78.8.9"}}
    nodes.append(head | its)
    on_slurm(value, planted)
    database = {"ledger": "postgresql://ironburst@db.example.org/ironburst", "state": "/srv/heads", "head": "head2"}
    database["ledger_password"] = planted.reference("SecondHead.ledger_password")
    database["accounting_password"] = planted.reference("SecondHead.accounting_password")
    value["scheduler"]["second_head"] = database


def in_google_cloud(value, planted):
    on_slurm(value, planted)
    del value["ssh"]["key_name"]
    value["cloud"] = google_stack.cloud()
    value["cloud"]["network"]["hall_link"]["shared_secret"] = planted.reference("GoogleHallLink.shared_secret")
    value["scheduler"]["munge_key"] = planted.reference("Slurm.munge_key", store="google-secretmanager")


def in_three_clouds(value, planted):
    """The munge key is the hall's, and each cloud has a copy."""
    on_slurm(value, planted)
    value["ssh"]["cloud_user"] = "ironburst"
    value["scheduler"]["munge_key"] = munge_key = planted.reference("Slurm.munge_key", store=None)
    value["cloud"]["secrets"] = {munge_key: planted.reference("AwsCloud.secrets")}
    google, azure = google_stack.cloud(), azure_stack.cloud()
    google["network"]["cidr"], azure["network"]["cidr"] = "10.91.0.0/16", "10.92.0.0/16"
    google["secrets"] = {munge_key: planted.reference("GoogleCloud.secrets", store="google-secretmanager")}
    azure["secrets"] = {munge_key: planted.reference("AzureCloud.secrets", store="azure-keyvault")}
    for cloud, kind in (google, "GoogleHallLink"), (azure, "AzureHallLink"):
        cloud["network"]["hall_link"]["shared_secret"] = planted.reference(f"{kind}.shared_secret")
        for nodes in cloud["groups"] + cloud["pools"]:
            nodes["name"] = f"{cloud['provider']}-{nodes['name']}"
    value["other_clouds"] = [google, azure]
    del value["budget"]["total_usd_per_month"]  # what links to a hall cost isn't known of all


DECLARATIONS = (
    on_slurm,
    on_one_hall,
    on_slurm_and_kubernetes,
    on_a_bridge,
    on_two_heads,
    in_google_cloud,
    in_three_clouds,
)
SCHEMES = [
    pytest.param(scheme, marks=[] if scheme == "aws-secretsmanager" else [pytest.mark.slow])
    for scheme in secrets.SCHEMES
]


@pytest.fixture(scope="module")
def cloud():
    """With what an account has before."""
    made = Cloud(seed=7)
    made.register_image("base", "ami-0ba5e0000000000a1", root_gb=30)
    fields = (b"ssh-ed25519", bytes(32))
    key = base64.b64encode(b"".join(len(field).to_bytes(4) + field for field in fields))
    client(made.url).import_key_pair(KeyName="lab", PublicKeyMaterial=b"ssh-ed25519 " + key + b" lab")
    allow_spot(client(made.url, "iam"))
    yield made
    made.close()


@pytest.fixture
def google_store(monkeypatch):
    iam = Iam([Binding("serviceAccount:a@b", frozenset({"secretmanager.versions.access"}))], {"token": "a@b"})
    store = SecretManager(iam)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER", store.url)
    monkeypatch.setattr(google.auth, "default", lambda scopes: (google.oauth2.credentials.Credentials("token"), None))
    yield store
    store.shutdown()
    store.server_close()


@pytest.fixture
def vaults(monkeypatch):
    """Key Vault."""
    store = KeyVault(lambda token: token == "token")
    monkeypatch.setenv("AZURE_KEYVAULT_URL", f"http://127.0.0.1:{store.server_port}")
    signed_in = SimpleNamespace(get_token=lambda scope: SimpleNamespace(token="token"))
    monkeypatch.setattr(azure.identity, "DefaultAzureCredential", lambda: signed_in)
    yield store
    store.shutdown()
    store.server_close()


@pytest.fixture
def planted(request, tmp_path, monkeypatch, cloud, google_store, vaults):
    for name, value in (KEYS | {"AWS_ENDPOINT_URL": cloud.url}).items():
        monkeypatch.setenv(name, value)
    return Planted(request.param, tmp_path / "secrets", monkeypatch, cloud.url, google_store, vaults)


def declared(change, planted):
    value = lab_value()
    change(value, planted)
    return value


@pytest.mark.parametrize("planted", secrets.SCHEMES, indirect=True)
def test_every_reference_that_a_declaration_can_have_is_planted(planted):
    """Whoever adds one to the models adds it here, or this fails."""
    there = {}
    for change in DECLARATIONS:
        there |= dict(references_in(load.from_value(declared(change, planted))))
    assert set(there) == set(fields_of(ClusterConfig)) and len(there) >= 10
    for name, reference in there.items():
        planted_there = planted.plants.values[f"{name} by {reference.partition(':')[0]}"]
        assert secrets.resolve(reference, region="us-east-1").rstrip("\n") == planted_there.rstrip("\n")
    of_document = {name.rpartition(".")[2] for name in set(there)} - {"sudo_password", "password", "admin_kubeconfig"}
    looked_up = set()
    for path in (ROOT / "playbooks").rglob("*"):
        if path.suffix in (".yml", ".j2", ".py") and path.is_file():
            looked_up |= set(re.findall(r"lookup\('secret', ([\w.]+)", path.read_text()))
    names = {name.rpartition(".")[2] for name in looked_up} - OF_ROLES
    assert names <= of_document | {"node_sudo_secret", "logs_password"} and looked_up >= OF_ROLES


# ---- what comes of it


@pytest.mark.parametrize("change", DECLARATIONS, ids=lambda change: change.__name__)
@pytest.mark.parametrize("planted", SCHEMES, indirect=True)
def test_no_resource_output_log_or_document_has_one(planted, change, monkeypatch, tmp_path, capfd):
    from components.cluster import Cluster

    stack = valid(declared(change, planted))
    recording = record(lambda: Cluster(stack.config.name, stack.config, stack.software).document, monkeypatch)
    hidden = {(kind, name) for kind, names in recording.secrets for name in names}  # Pulumi's secrets, encrypted
    inputs = [
        (
            each.token,
            each.name,
            {name: value for name, value in each.inputs.items() if (each.token, name) not in hidden},
        )
        for each in recording.resources
    ]
    made = document.parse(recording.result)
    path = tmp_path / "document.json"
    document.publish(made, path)
    seen = [inputs, recording.outputs, recording.logged, recording.result]
    said = planted.plants.found("program", repr(seen) + json.dumps(seen, default=str))
    said += planted.plants.found("document", path.read_bytes())
    inventory = [str(Path(sys.executable).with_name("ansible-inventory")), "-i", "inventory/lab", "--list"]
    listed = subprocess.run(
        inventory, cwd=ROOT, env={**os.environ, "IRONBURST_DOCUMENT": str(path)}, capture_output=True, text=True
    )
    assert listed.returncode == 0, listed.stderr
    out, err = capfd.readouterr()
    said += planted.plants.found("inventory", listed.stdout + listed.stderr)
    said += planted.plants.found("what was printed", out + err)
    assert said == []
    assert "cluster_scheduler" in listed.stdout and len(inputs) > 3


@pytest.fixture
def bmcs(planted):
    """The lab's machines, whose password is the planted one -> node name: URL."""
    planted.reference("Bmc.password")
    (password,) = [value for name, value in planted.plants.values.items() if name.startswith("Bmc.")]
    running = {name: Bmc(machine_of(name), MemoryPower(), password, port=0) for name in ("head", "dgx01", "dgx02")}
    for bmc in running.values():
        bmc.__enter__()
    yield {name: bmc.url for name, bmc in running.items()}
    for bmc in running.values():
        bmc.__exit__()


@pytest.fixture
def site(tmp_path, planted, bmcs, cloud):
    """A checkout with the lab's stack on loopback, and what a runner of CI has; `site(...)` runs a command there."""
    value = declared(on_slurm, planted)
    hall = value["halls"][0]
    hall["bmc_cidr"] = "127.0.0.0/24"
    for nodes, names in zip(hall["nodes"], (["head"], ["dgx01", "dgx02"]), strict=True):
        nodes["bmc"]["addresses"] = [bmcs[name] for name in names]
    tools, here = tmp_path / "tools", tmp_path / "project"
    tools.mkdir()
    for name, text in {**TOOLS, "pulumi": f'exec {binary.path()} "$@"'}.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    project(tmp_path, "lab")
    for name in ("ci", "playbooks", "inventory", "ansible.cfg"):
        (here / name).symlink_to(ROOT / name)
    stack = yaml.safe_load((ROOT / "stacks/Pulumi.lab.yaml").read_text())
    stack["config"]["aws:endpoints"] = [dict.fromkeys(stack["config"]["aws:endpoints"][0], cloud.url)]
    stack["config"]["ironburst:cluster"] = value
    (here / "stacks/Pulumi.lab.yaml").write_text(yaml.safe_dump(stack))
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("IRONBURST_")},
        **binary.environment(tmp_path, tools, Path(sys.executable).parent),
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "STACK": "lab",
        "DOCUMENT": str(tmp_path / "published.json"),
        "HEAD_SSH": "head",
        "IRONBURST_STATE": str(tmp_path / "receipts"),
        "SAID_TO_SSH": str(tmp_path / "ssh.log"),
    }
    printed = []

    def call(*command, ok=(0,)):
        done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=600)
        printed.append(f"{command}\n{done.stdout}{done.stderr}")
        (tmp_path / "printed").write_text("\n".join(printed))
        assert done.returncode in ok, printed[-1]
        return done.stdout

    call.document = Path(environment["DOCUMENT"])
    yield call
    ec2 = client(cloud.url)  # an account has five addresses, and the next test takes some
    for gateway in ec2.describe_nat_gateways()["NatGateways"]:
        ec2.delete_nat_gateway(NatGatewayId=gateway["NatGatewayId"])
    for address in ec2.describe_addresses()["Addresses"]:
        ec2.release_address(AllocationId=address["AllocationId"])


SIGNED_IN = ("google-secretmanager", "azure-keyvault")


@pytest.mark.slow  # those stores need a process that is signed in, and here many ask
@pytest.mark.parametrize("planted", [each for each in secrets.SCHEMES if each not in SIGNED_IN], indirect=True)
def test_neither_state_nor_ci_nor_doctor_nor_converge_has_one(planted, site, tmp_path, capfd):
    with Processes() as processes:
        site("git", "init", "--quiet", "--initial-branch", "main")
        person = ("-c", "user.name=anna", "-c", "user.email=anna@example.org")
        site("git", *person, "commit", "--quiet", "--allow-empty", "--message", "declared")
        site("pulumi", "stack", "init", "--stack", "lab", "--non-interactive")
        site("ironburst", "lock", "stacks/Pulumi.lab.yaml")
        site("ci/up.sh", ok=(0, 4))
        assert site.document.exists()
        site("pulumi", "stack", "export", "--stack", "lab", "--show-secrets", ok=(0, 1, 2))
        site("ci/drift.sh", ok=(0, 1, 2, 4))
        site("ironburst", "diff", "stacks/Pulumi.lab.yaml", "stacks/Pulumi.lab.yaml", "--all", ok=(0, 2))
        for place in ("hall", "cloud", "ci"):
            options = ("--from", place, "--json", "--inventory", "inventory/lab", "--document", str(site.document))
            told = site("ironburst", "doctor", "stacks/Pulumi.lab.yaml", *options, ok=(0, 1, 2, 3))
            assert len(told) > 100, (place, (tmp_path / "printed").read_text()[-900:])
        site("ironburst", "converge", "--document", str(site.document), "--inventory", "inventory/lab", ok=(1, 2, 3, 4))
    printed = (tmp_path / "printed").read_text()
    assert "dgx01" in printed and "Pulumi.lab" in printed and (tmp_path / "project/build/ci/preview.json").exists()
    said = planted.plants.in_folder(tmp_path, tmp_path / "secrets")
    assert said + planted.plants.found("processes", b"\n".join(processes.seen)) == []


@pytest.fixture
def controlled(tmp_path, monkeypatch, planted):
    """The verbs of the controller on in-memory ports, with the document of a declaration."""
    stack = valid(declared(on_slurm, planted))
    from components.cluster import Cluster

    recording = record(lambda: Cluster(stack.config.name, stack.config, stack.software).document, monkeypatch)
    path = tmp_path / "document.json"
    made = document.publish(document.parse(recording.result), path)
    clock = FakeClock()
    burst = {pool.partition: list(pool.nodes) for pool in made.pools}
    slurm = FakeSlurm(clock, home=2, burst=burst)
    cloud = FakeCloud(clock, slurm)
    cloud.images = {pool.image: "ami-1" for pool in made.pools}
    connect_to(cloud, monkeypatch)
    for module in (tick, run, reap):
        monkeypatch.setattr(module, "SystemClock", lambda: clock)
    monkeypatch.setattr(status.schedulers, "Slurm", lambda prefix, jobs=0: slurm)
    monkeypatch.setattr(f"{status.__name__}.time.time", clock.now)
    monkeypatch.setenv("IRONBURST_DOCUMENT", str(path))
    monkeypatch.setenv("IRONBURST_LEDGER", str(tmp_path / "ledger.sqlite"))
    return clock, slurm, cloud


@pytest.mark.parametrize("planted", SCHEMES, indirect=True)
def test_neither_ledger_nor_record_nor_what_the_controller_tells_has_one(planted, controlled, tmp_path, capfd):
    clock, slurm, cloud = controlled
    slurm.submit(nodes=2, limit_s=7200, runs_s=7200)
    job = slurm.submit(limit_s=600, runs_s=300)
    for _ in range(40):
        assert cli.main(["tick"]) == 0
        clock.at += 10
    assert cloud.all and slurm.jobs[job].started
    for verb in (["status", "--json"], ["status"], ["explain", str(job)], ["reap", "--dry-run"]):
        assert cli.main(verb) == 0
    (tmp_path / "jobs.txt").write_text("")
    cli.main(["report", "--jobs", str(tmp_path / "jobs.txt"), "--json"])
    cli.main(["replay", str(tmp_path / "ticks")])
    out, err = capfd.readouterr()
    said = planted.plants.in_folder(tmp_path, tmp_path / "secrets")
    said += planted.plants.found("launches", repr([vars(each) for each in cloud.requests]))
    assert said + planted.plants.found("what was printed", out + err) == []
    assert len(out) > 1000 and "munge_key" in cloud.requests[0].user_data + repr(planted.plants.values)
