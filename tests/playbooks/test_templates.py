"""slurm.conf and its companions as the role slurm_head renders them from a document."""

import ipaddress
import os
import re
import socket
import subprocess
import sys
from email import message_from_bytes, policy
from pathlib import Path

import jinja2
import programs
import pytest
import templated
import yaml
from ansible.plugins.filter.urlsplit import split_url
from sample import lab_document

from ironburst import document as documents
from ironburst.burst import drains
from ironburst.document import SecondHead
from ironburst.slurm_programs import snippet

ROLE = Path(__file__).resolve().parents[2] / "playbooks/roles/slurm_head"
share_rules = programs.load("plugins/filter/shares.py").share_rules
slurm_kinds = programs.load("plugins/filter/slurm.py").slurm_kinds
FIXED = yaml.safe_load((ROLE / "vars/main.yml").read_text())


def render(name, document=None, **changes):
    """A template with the role's own defaults and vars, as far as they hold no lookups."""
    data = (document or lab_document()).model_dump(mode="json")
    loader = jinja2.FileSystemLoader(ROLE / "templates")
    environment = jinja2.Environment(
        loader=loader, trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    environment.filters["slurm_kinds"] = slurm_kinds
    environment.filters["urlsplit"] = split_url
    environment.tests["contains"] = lambda values, one: one in values  # Ansible's
    whose = FIXED["slurm_head_whose"]
    nodes = [host for host in data["hosts"] if host["role"] == "gpu" and host["scheduler"] in whose]
    home = data["scheduler"]["home_partition"]
    variables = yaml.safe_load((ROLE / "defaults/main.yml").read_text()) | {
        "cluster_name": data["cluster"],
        "slurm_head_pools": [pool for pool in data["pools"] if pool["scheduler"] in whose],
        "cluster_shares": data["shares"],
        "slurm_head_folders": data["burst"]["folders"] or [],
        "cluster_users": data["users"],
        "slurm_head_shares": share_rules(data["shares"]),
        "slurm_head_own": FIXED["slurm_head_own"],
        "slurm_head_scheduler": data["scheduler"],
        "slurm_head_nodes": nodes,
        "slurm_head_fixed_partitions": sorted({host["partition"] for host in nodes} - {home}),
        "slurm_head_waiting": FIXED["slurm_head_waiting"],
        "slurm_head_at_home": slurm_kinds([node for node in nodes if node["partition"] == home]),
        "slurm_head_controller_user": FIXED["slurm_head_controller_user"],
        "slurm_head_asks_for_addresses": False,
        "slurm_head_nss_slurm": False,
        "slurm_head_topology": data["topology"],
        "slurm_head_pmix": True,
        "slurm_head_mail": data["scheduler"]["mail"] or {},
        "slurm_head_second": data["scheduler"]["second_head"] or {},
        "slurm_head_accounting": (data["scheduler"]["second_head"] or {}).get("accounting", ""),
        "slurm_head_first": True,
        "slurm_head_mounts": FIXED["slurm_head_mounts"],
    }
    return environment.from_string((ROLE / "templates" / name).read_text()).render(variables | changes)


def settings(text):
    """{key: value} of the plain lines, and the lists of NodeName and PartitionName lines as {name: {key: value}}."""
    plain, nodes, partitions = {}, {}, {}
    for line in (line for line in text.splitlines() if line and not line.startswith("#")):
        words = dict(word.split("=", 1) for word in line.split())
        if "NodeName" in words:
            nodes[words.pop("NodeName")] = words
        elif "PartitionName" in words:
            partitions[words.pop("PartitionName")] = words
        else:
            key, value = line.split("=", 1)
            assert key not in plain, f"{key} twice"
            plain[key] = value
    return plain, nodes, partitions


def test_nodes_and_partitions():
    _, nodes, partitions = settings(render("slurm.conf.j2"))
    dgx = nodes["dgx01"]
    assert dgx == {
        "NodeAddr": "10.78.0.11",
        "CPUs": dgx["CPUs"],
        "RealMemory": "1000",
        "Gres": "gpu:h100:8",
        "State": "UNKNOWN",
    }
    assert nodes["fixed-1"]["NodeAddr"] == "10.90.0.7"
    assert nodes["p5-1,p5-2,p5-3"]["State"] == "CLOUD" and nodes["p5-1,p5-2,p5-3"]["Weight"] == "10"
    assert "NodeAddr" not in nodes["p5-1,p5-2,p5-3"]
    # a job that asks only for GPUs leaves the rest to others
    share = {
        "DefCpuPerGPU": str(int(dgx["CPUs"]) // 8),
        "DefMemPerGPU": "125",
    }
    assert (
        partitions["home"]
        == {"Nodes": "dgx01,dgx02", "Default": "YES", "DefaultTime": "60", "MaxTime": "10080"} | share
    )
    assert partitions["fixed"]["Nodes"] == "fixed-1" and "Default" not in partitions["fixed"]
    burst = partitions["burst-p5"]
    assert burst["SuspendTime"] == "86400" and burst["MaxTime"] == "60" and burst["DefaultTime"] == "60"
    assert all(share.items() <= partitions[name].items() for name in ("burst-p5", "fixed"))
    assert set(partitions) == {"home", "fixed", "burst-p5", "burst-any"}


def test_two_heads():
    """slurm.conf(5): the first SlurmctldHost is the primary; the state of both is one folder that both see."""
    second = {"head": "head2", "address": "10.78.0.9", "state": "/srv/heads", "ledger": "postgresql://i@db/i"}
    document = lab_document()
    document = document.model_copy(
        update={"scheduler": document.scheduler.model_copy(update={"second_head": SecondHead(**second)})}
    )
    lines = render("slurm.conf.j2", document).splitlines()
    hosts = [line for line in lines if line.startswith("SlurmctldHost=")]
    assert hosts == ["SlurmctldHost=head(10.78.0.10)", "SlurmctldHost=head2(10.78.0.9)"]
    assert not [line for line in render("slurm.conf.j2").splitlines() if "SlurmctldTimeout" in line]
    mounted = next(each for each in FIXED["slurm_head_mounts"] if each["unit"] == "var-lib-slurm-slurmctld")
    unit = render("heads.mount.j2", document, mounted=mounted)
    assert f"StateSaveLocation={mounted['at']}" in lines
    assert f"Where={mounted['at']}" in unit and "What=/srv/heads/slurmctld" in unit
    assert "AssertPathIsMountPoint=/srv/heads" in unit, "an empty folder in its place would be a cluster without jobs"
    assert f"RequiresMountsFor={mounted['at']} " in render("heads.service.j2", document)
    text = render("ledger.url.j2", document)
    assert [line for line in text.splitlines() if not line.startswith("#")] == ["postgresql://i@db/i"]
    assert "slurmdbd" not in render("slurmctld.service.j2", document, slurm_head_first=False)
    assert "AccountingStorageBackupHost" not in "".join(lines) and "Backup" not in render("slurmdbd.conf.j2", document)


@pytest.mark.skipif(os.geteuid() != 0, reason="who root is at a filer is played by another user")
@pytest.mark.parametrize(("squashed", "said"), [(False, "good"), (True, "squashed")])
def test_a_filer_at_which_root_is_nobody_is_refused(tmp_path, squashed, said):
    """exports(5): root_squash is the default; root's files are nobody's then, or there are none."""
    state, tools = tmp_path / "heads", tmp_path / "bin"
    state.mkdir()
    tools.mkdir()
    (tools / "mountpoint").write_text("#!/bin/sh\n")
    for path in (*tmp_path.parents[:3], tmp_path, tools, tools / "mountpoint"):
        path.chmod(0o755)
    as_nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if squashed else []
    look = [*as_nobody, "sh", "-c", FIXED["slurm_head_look_for_state"], "sh", state]
    for mode in (0o755, 0o777):
        state.chmod(mode)
        done = subprocess.run(look, env={"PATH": f"{tools}:/usr/bin:/bin"}, capture_output=True, text=True)
        assert done.stdout.split() == [said] and not list(state.iterdir())


def test_two_heads_with_a_database_elsewhere():
    """slurmdbd.conf(5), slurm.conf(5): DbdBackupHost, AccountingStorageBackupHost; both daemons have one database."""
    accounting = "mysql://slurm@db.example.org:3307/slurm_acct"
    second = {"head": "head2", "address": "10.78.0.9", "state": "/srv/heads", "ledger": "postgresql://i@db/i"}
    document = lab_document()
    scheduler = document.scheduler.model_copy(update={"second_head": SecondHead(**second, accounting=accounting)})
    document = document.model_copy(update={"scheduler": scheduler})
    lines = render("slurm.conf.j2", document).splitlines()
    assert {"AccountingStorageHost=10.78.0.10", "AccountingStorageBackupHost=10.78.0.9"} <= {*lines}
    daemon, _, _ = settings(render("slurmdbd.conf.j2", document))
    assert (daemon["DbdHost"], daemon["DbdBackupHost"]) == ("head", "head2")
    where = ("StorageHost", "StoragePort", "StorageUser", "StorageLoc")
    assert tuple(daemon[key] for key in where) == ("db.example.org", "3307", "slurm", "slurm_acct")
    assert "StoragePass" not in daemon
    # the second slurmdbd takes over when its connection to a dead host ends (slurmdbd/backup.c), and slurmctld,
    # which needs it, after SlurmctldTimeout; Slurm's own are 30 s and three times 30
    alive = {
        key: int(value)
        for key, _, value in (each.partition("=") for each in daemon["CommunicationParameters"].split(","))
    }
    (limit,) = (int(line.partition("=")[2]) for line in lines if line.startswith("SlurmctldTimeout="))
    assert alive["keepalivetime"] + alive["keepaliveprobes"] * alive["keepaliveinterval"] < limit <= 30
    assert "mariadb" not in render("slurmdbd.service.j2", document)
    assert "slurmdbd" in render("slurmctld.service.j2", document, slurm_head_first=False)


def test_the_ledger_is_copied_by_a_timer():
    unit = render("ironburst-backup.service.j2")
    assert "ExecStart=/opt/ironburst/.venv/bin/ironburst backup /var/backups/ironburst/ledger --keep 14\n" in unit
    assert "Environment=IRONBURST_BACKUP=/var/backups/ironburst/ledger\n" in render(
        "ironburst.service.j2", slurm_head_controller_document="/srv/ironburst/lab.json"
    )


def test_renting_settings():
    plain, _, _ = settings(render("slurm.conf.j2"))
    assert plain["SuspendTime"] == "INFINITE"
    assert plain["ResumeProgram"] == "/usr/local/sbin/ironburst-resume"
    assert plain["Prolog"] == "/usr/local/sbin/ironburst-prolog"
    assert "nohold_on_prolog_fail" in plain["SchedulerParameters"]
    parameters = plain["SlurmctldParameters"].split(",")
    assert {"enable_configless", "idle_on_node_suspend", "requeue_on_resume_failure"} <= set(parameters)
    assert not {"cloud_dns", "cloud_reg_addrs"} & set(parameters)  # the second is an error from 23.11 on
    older = settings(render("slurm.conf.j2", slurm_head_asks_for_addresses=True))[0]["SlurmctldParameters"]
    assert older.split(",") == [*parameters, "cloud_reg_addrs"]
    assert plain["TreeWidth"] == "65533" and plain["ReturnToService"] == "1"
    assert plain["SlurmctldHost"] == "head(10.78.0.10)"


def test_jobs_are_neither_roots_nor_submitted_to_burst_partitions():
    """RootOnly and AllowGroups on the partition would also keep out the jobs that the controller widened."""
    plain, _, partitions = settings(render("slurm.conf.j2"))
    assert plain["DisableRootJobs"] == "YES" and plain["JobSubmitPlugins"] == "lua"
    assert not {"RootOnly", "AllowGroups", "AllowAccounts", "State"} & set(partitions["burst-p5"])
    assert re.search(r"CLOSED = { (.*) }", render("job_submit.lua.j2"))[1] == '["burst-p5"] = true'
    own = settings(render("slurm.conf.j2", slurm_head_settings={"JobSubmitPlugins": "lua,require_timelimit"}))[0]
    assert own["JobSubmitPlugins"] == "lua,require_timelimit"
    assert "JobSubmitPlugins" not in render("slurm.conf.j2", lab_document().model_copy(update={"pools": []}))


def test_the_plugin_knows_which_folders_rented_nodes_have():
    """What it says of others, real Slurm says to alice (tests/lab/test_head.py)."""
    assert 'local FOLDERS = { "/shared" }' in render("job_submit.lua.j2")
    both = {"cluster_burst": {"folders": ["/shared/", "/home"]}, "cluster_pools": [{"scheduler": ""}]}
    assert templated.value("slurm_head", "slurm_head_folders", both) == ["/shared", "/home"]
    for none in ({"cluster_pools": []}, {"cluster_burst": {"folders": None}}):
        assert templated.value("slurm_head", "slurm_head_folders", both | none) == []
    assert "local FOLDERS = {  }" in render("job_submit.lua.j2", slurm_head_folders=[])


BRIDGE = {
    "api_server": "https://10.78.0.5:6443",
    "ca": "-----BEGIN CERTIFICATE-----",
    "kubeconfig": "file:/k",
    "join_token": "aws-secretsmanager:t",
    "cluster_dns": "10.96.0.10",
    "cluster_domain": "cluster.local",
    "namespace": "ironburst-system",
    "scheduler_name": "slurm-bridge-scheduler",
}


def test_slurm_bridge_submits_to_burst_partitions_and_gets_no_rented_node_by_itself():
    """Read as text: no machine of the tests has Lua beside a Slurm of 25.11."""
    raw = lab_document().model_dump(mode="json")
    bridged = documents.parse(raw | {"scheduler": raw["scheduler"] | {"bridge": BRIDGE}})
    text, plain = render("job_submit.lua.j2", bridged), render("job_submit.lua.j2")
    assert 'local BRIDGE = uid_of("slurm")' in text
    nodes = ",".join(node for pool in bridged.pools for node in pool.nodes)
    assert f'local RENTED = "{nodes}"' in text
    submit = text[text.index("function slurm_job_submit") : text.index("function slurm_job_modify")]
    assert submit.index("uid == BRIDGE") < submit.index("takes no jobs") and "job.exc_nodes = " in submit
    assert "if BRIDGE then MAY_MOVE[BRIDGE] = true end" in text[: text.index("function slurm_job_submit")]
    assert "BRIDGE" not in plain and "RENTED" not in plain and "function slurm_job_submit(job, _, _)" in plain


def test_a_node_that_is_not_there_is_nowhere():
    """The address answers nobody: a connection fails in the kernel, as to any address of multicast."""
    nowhere = ipaddress.ip_address(FIXED["slurm_head_nowhere"])
    assert nowhere.is_multicast and nowhere in ipaddress.ip_network("233.252.0.0/24")  # MCAST-TEST-NET, RFC 6676
    with socket.socket() as connection, pytest.raises(OSError, match="unreachable"):
        connection.settimeout(10)
        connection.connect((str(nowhere), 6818))


def test_the_controllers_unit_is_a_sandbox():
    """How open it is, systemd itself says on a real host (tests/lab/test_head.py)."""
    text = render("ironburst.service.j2", slurm_head_controller_document="/srv/ironburst/lab.json")
    assert "\nUser=ironburst\n" in text and "\nCapabilityBoundingSet=\n" in text and "\nProtectSystem=strict\n" in text
    assert re.findall(r"(?m)^ReadWritePaths=(.*)", text) == ["/var/spool/ironburst"]
    assert "\nExecStart=/opt/ironburst/.venv/bin/ironburst run\n" in text
    assert "Environment=IRONBURST_DOCUMENT=/srv/ironburst/lab.json\n" in text


def test_who_receives_from_outside_is_nobody_and_sees_no_credentials():
    text = render("ironburst-receive.service.j2", slurm_head_controller_document="/srv/ironburst/lab.json")
    assert "\nDynamicUser=yes\nSupplementaryGroups=ironburst\n" in text and "\nCapabilityBoundingSet=\n" in text
    assert "\nInaccessiblePaths=-/etc/ironburst/aws\n" in text and "\nUser=" not in text
    assert "\nExecStart=/opt/ironburst/.venv/bin/ironburst receive\n" in text


def test_production_confines_jobs_and_the_lab_says_that_it_does_not():
    assert settings(render("slurm.conf.j2"))[0]["ProctrackType"] == "proctrack/cgroup"
    assert "ConstrainDevices=yes" in render("cgroup.conf.j2")
    assert settings(render("slurm.conf.j2", slurm_head_cgroup=False))[0]["ProctrackType"] == "proctrack/linuxproc"
    assert "CgroupPlugin=disabled" in render("cgroup.conf.j2", slurm_head_cgroup=False)


def test_more_settings_come_from_the_inventory():
    text = render("slurm.conf.j2", slurm_head_settings={"SlurmdParameters": "config_overrides"})
    assert settings(text)[0]["SlurmdParameters"] == "config_overrides"


TREE = "# Written\nSwitchName=leaf1-leaf8 Nodes=dgx[01-02]\nSwitchName=p5 Nodes=p5-[1-3]\n"


def test_jobs_are_placed_by_a_declared_fabric_unless_the_site_does_it_itself():
    def role(name, text, **own):
        return templated.value("slurm_head", name, {"cluster_topology": text}, {"slurm_head_settings": own})

    assert role("slurm_head_topology", TREE) == TREE and role("slurm_head_switch", TREE) == "leaf1-leaf8"
    assert role("slurm_head_topology_file", TREE) == {"path": "/etc/slurm/topology.conf", "content": TREE}
    assert role("slurm_head_topology", "") == role("slurm_head_topology", TREE, TopologyPlugin="topology/flat") == ""
    document = lab_document().model_copy(update={"topology": TREE})
    assert settings(render("slurm.conf.j2", document))[0]["TopologyPlugin"] == "topology/tree"
    assert "TopologyPlugin" not in settings(render("slurm.conf.j2"))[0]
    own = render(
        "slurm.conf.j2", document, slurm_head_topology="", slurm_head_settings={"TopologyPlugin": "topology/flat"}
    )
    assert settings(own)[0]["TopologyPlugin"] == "topology/flat"
    # slurmctld is restarted by a drop-in that is another one
    assert render("slurmctld.service.j2", document) != render("slurmctld.service.j2")


def shared_document(*shares):
    """Of the lab, with these shares; the nodes of a team are in its own partition, as in a built document."""
    document = lab_document()
    given = [documents.Share(**{"weight": 1, "over_quota": True, "max_gpus": None} | share) for share in shares]
    own = {node: f"own-{share.account}" for share in given for node in share.nodes}
    hosts = [host.model_copy(update={"partition": own.get(host.name, host.partition)}) for host in document.hosts]
    return document.model_copy(update={"shares": given, "hosts": hosts})


VISION = {"account": "vision", "guaranteed_gpus": 8, "nodes": ["dgx02"]}
NLP = {"account": "nlp", "guaranteed_gpus": 0}
STRICT = {"account": "strict", "guaranteed_gpus": 4, "over_quota": False}


def test_shares_make_partitions_for_the_qos_of_teams():
    plain, _, partitions = settings(render("slurm.conf.j2", shared_document(VISION, NLP, STRICT)))
    assert partitions["home"]["Nodes"] == "dgx01" and partitions["own-vision"]["Nodes"] == "dgx02"
    assert partitions["home"]["AllowQos"].split(",") == [
        "nlp-over",
        "strict-guaranteed",
        "vision-guaranteed",
        "vision-over",
    ]
    own = partitions["own-vision"]
    assert (own["AllowAccounts"], own["AllowQos"], own["MaxTime"]) == ("vision", "vision-own", "10080")
    assert not {"AllowQos", "AllowAccounts"} & set(partitions["burst-p5"]) | set(partitions["fixed"]) & {"AllowQos"}
    assert (plain["PreemptType"], plain["PreemptMode"]) == ("preempt/qos", "REQUEUE")
    assert plain["PriorityType"] == "priority/multifactor" and plain["JobSubmitPlugins"] == "lua"
    assert {"limits", "qos"} <= set(plain["AccountingStorageEnforce"].split(","))


def test_without_shares_slurm_is_as_before():
    plain, _, partitions = settings(render("slurm.conf.j2"))
    assert not {"PreemptType", "PreemptMode", "PriorityType"} & set(plain)
    assert not any("AllowQos" in each for each in partitions.values())
    assert "local TRIED = {  }" in render("job_submit.lua.j2")


def test_a_job_is_tried_within_the_guarantee_first():
    text = render("job_submit.lua.j2", shared_document(VISION, NLP, STRICT))
    assert '["vision"] = { batch = "vision-guaranteed,vision-over", kept = "vision-guaranteed" }' in text
    assert '["nlp"] = { batch = "nlp-over", kept = "nlp-over" }' in text
    assert '["strict"] = { batch = "strict-guaranteed", kept = "strict-guaranteed" }' in text
    assert 'local OWN = { ["own-vision"] = "vision-own" }' in text
    taken = re.search(r"local SHARED = { (.*) }", text)[1]
    assert re.findall(r'"(.*?)"', taken) == ["nlp-over", "strict-guaranteed", "vision-guaranteed", "vision-over"]


def test_gres_names_the_devices():
    lines = render("gres.conf.j2").splitlines()
    assert "AutoDetect=off" in lines
    assert "NodeName=dgx01 Name=gpu Type=h100 File=/dev/nvidia[0-7]" in lines
    assert "NodeName=p5-1,p5-2,p5-3 Name=gpu Type=h100 File=/dev/nvidia[0-7]" in lines


def test_one_gpu_is_no_range():
    document = lab_document()
    single = document.pools[0].model_copy(update={"gpu": document.pools[0].gpu.model_copy(update={"count": 1})})
    assert "File=/dev/nvidia0\n" in render("gres.conf.j2", document.model_copy(update={"pools": [single]}))


def test_a_cluster_without_pools_and_without_nodes():
    document = lab_document().model_copy(update={"pools": []})
    _, nodes, partitions = settings(render("slurm.conf.j2", document))
    assert set(partitions) == {"home", "fixed"} and not any(node.get("State") == "CLOUD" for node in nodes.values())
    assert "sinfo" not in render("ironburst-guard.j2", document)


def test_what_is_kubernetes_in_a_site_with_both_is_not_slurms():
    document = lab_document()
    node, pool = next(host for host in document.hosts if host.role == "gpu"), document.pools[0]
    others = {"hosts": [*document.hosts, node.model_copy(update={"name": "k1", "scheduler": "kubernetes"})]}
    others["pools"] = [*document.pools, pool.model_copy(update={"partition": "g6e", "scheduler": "kubernetes"})]
    both = document.model_copy(update=others)
    for name in ("slurm.conf.j2", "gres.conf.j2", "ironburst-guard.j2", "job_submit.lua.j2"):
        assert render(name, both) == render(name, document) and "k1" not in render(name, both)


def test_the_guard_looks_at_every_burst_partition():
    assert re.findall(r"--partition=(\S+)", render("ironburst-guard.j2")) == ["burst-p5"]


def test_only_the_controllers_user_reads_its_credentials():
    """Its group is of the people who may ask for the status."""
    files = yaml.safe_load((ROLE / "vars/main.yml").read_text())["slurm_head_files"]
    (folder,) = [each for each in files if each["path"].startswith("/etc/ironburst/{{ cluster_provider")]
    assert (folder["owner"], folder["mode"]) == ("{{ slurm_head_controller_user }}", "0700")


@pytest.mark.parametrize("name", ["ironburst-resume.j2", "ironburst-suspend.j2"])
def test_the_programs_hold_no_credentials_and_write_down_what_was_asked(name):
    text = render(name)
    assert "/var/spool/ironburst/calls" in text
    assert "aws" not in text.lower()


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        ("", "no lease"),
        ("   Reason=no lease [slurm@2026-11-22T10:00:00]\n", "no lease"),
        ("   Reason=release [root@2026-11-22T10:00:00]\n", "no lease"),
        ("   Reason=ironburst: spot interruption [root@2026-11-22T10:00:00]\n", "no lease"),
        ("   Reason=Not responding [slurm@2026-11-22T10:00:00]\n", "no lease"),
        ("   Reason=GPU 3 is sick, ask Bob [root@2026-11-22T10:00:00]\n", "held: GPU 3 is sick, ask Bob"),
        ("   Reason=held: GPU 3 is sick, ask Bob [slurm@2026-11-22T10:00:00]\n", "held: GPU 3 is sick, ask Bob"),
        ("   Reason=GPU 3 is sick : Not responding [slurm@2026-11-22T10:00:00]\n", "held: GPU 3 is sick"),
        ("   Reason=held: GPU 3 is sick : Not responding [slurm@2026-11-22T10:00:00]\n", "held: GPU 3 is sick"),
        ("   Reason=no lease : Not responding [slurm@2026-11-22T10:00:00]\n", "no lease"),
        ("   Reason=Not responding : Not responding [slurm@2026-11-22T10:00:00]\n", "no lease"),
        ("   Reason=ironburst: spot : ResumeTimeout reached [slurm@2026-11-22T10:00:00]\n", "no lease"),
        ("   Reason=held: NHC: 7 GPUs of 8 [slurm@2026-11-22T10:00:00]\n", "no lease"),
        ("   Reason=Low priority, Bob [root@2026-11-22T10:00:00]\n", "held: Low priority, Bob"),
        *((f"   Reason={words}7 < 8 [root@2026-11-22T10:00:00]\n", "no lease") for words in drains.PROGRAMS),
        *((f"   Reason={words} [root@2026-11-22T10:00:00]\n", "no lease") for words in drains.OURS if words),
        ("   Reason=fan : loud [bob@2026-11-22T10:00:00]\n", "held: fan : loud"),
        ("   Reason=its fan [again] is loud [bob@2026-11-22T10:00:00]\n", "held: its fan [again] is loud"),
    ],
)
def test_the_suspend_program_keeps_a_persons_words(tmp_path, shown, said):
    """Powering down clears a drain, and the program drains again."""
    node, log = tmp_path / "node", tmp_path / "log"
    node.write_text("NodeName=p5-1 Arch=x86_64\n" + shown)
    (tmp_path / "scontrol").write_text(
        '#!/bin/sh\ncase "$2" in hostnames) echo p5-1 ;; node) cat ' + str(node) + " ;;\n"
        f'*) for word; do echo "$word"; done >> {log} ;; esac\n'
    )
    (tmp_path / "scontrol").chmod(0o755)
    program = tmp_path / "ironburst-suspend"
    program.write_text(render("ironburst-suspend.j2").replace("/var/spool/ironburst", str(tmp_path)))
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    subprocess.run(["/bin/sh", str(program), "p5-1"], check=True, env=path, timeout=10)
    assert log.read_text().splitlines() == ["update", "nodename=p5-1", "state=drain", f"reason={said}"]


def with_slurm(**said):
    """The lab's document, its first GPU host and its pool saying this of themselves."""
    document = lab_document()
    given = documents.SlurmNode(cpus=224, memory_mb=1000, **said)
    hosts = [host.model_copy(update={"slurm": given}) if host.name == "dgx01" else host for host in document.hosts]
    pools = [pool.model_copy(update={"slurm": given}) for pool in document.pools]
    return document.model_copy(update={"hosts": hosts, "pools": pools})


def test_slurm_is_told_of_sockets_and_cores_where_they_are_known():
    known = with_slurm(sockets=2, cores_per_socket=56, threads_per_core=2)
    for name, node in settings(render("slurm.conf.j2", known))[1].items():
        layout = {key: node.get(key) for key in ("CPUs", "Sockets", "CoresPerSocket", "ThreadsPerCore")}
        if name == "dgx01" or name.startswith("p5"):
            assert layout == {"CPUs": "224", "Sockets": "2", "CoresPerSocket": "56", "ThreadsPerCore": "2"}
        else:
            assert layout == {"CPUs": "16", "Sockets": None, "CoresPerSocket": None, "ThreadsPerCore": None}
    threads = settings(render("slurm.conf.j2", with_slurm(threads_per_core=2)))[1]["dgx01"]
    assert threads["ThreadsPerCore"] == "2" and "Sockets" not in threads


def test_each_gpu_names_the_cores_near_it():
    near = ["0-55"] * 4 + ["56-111"] * 4
    lines = render("gres.conf.j2", with_slurm(gpu_cores=near)).splitlines()
    assert [line for line in lines if line.startswith("NodeName=dgx01 ")] == [
        f"NodeName=dgx01 Name=gpu Type=h100 File=/dev/nvidia{number} Cores={cores}" for number, cores in enumerate(near)
    ]
    assert "NodeName=dgx02 Name=gpu Type=h100 File=/dev/nvidia[0-7]" in lines


def test_the_gate_looks_at_idle_nodes_and_behind_each_job():
    plain, _, _ = settings(render("slurm.conf.j2"))
    assert (plain["HealthCheckInterval"], plain["HealthCheckNodeState"]) == ("300", "IDLE")
    assert plain["HealthCheckProgram"].endswith("ironburst-health") and plain["Epilog"].endswith("ironburst-epilog")
    assert plain["SrunPortRange"] == "61001-64000" and "LaunchParameters" not in plain
    assert settings(render("slurm.conf.j2", slurm_head_nss_slurm=True))[0]["LaunchParameters"] == "enable_nss_slurm"


def test_mpi_starts_by_pmix_where_srun_loads_it():
    """With none each rank of `srun ./mpi` is a world of its own; with pmix and no plugin no srun starts at all."""
    assert settings(render("slurm.conf.j2"))[0]["MpiDefault"] == "pmix"
    assert settings(render("slurm.conf.j2", slurm_head_pmix=False))[0]["MpiDefault"] == "none"
    own = settings(render("slurm.conf.j2", slurm_head_settings={"MpiDefault": "pmi2", "KillWait": 45}))[0]
    assert (own["MpiDefault"], own["KillWait"]) == ("pmi2", "45")


def test_a_job_gets_the_declared_time_to_save():
    document = lab_document()
    for seconds in (20, 90):
        scheduler = document.scheduler.model_copy(update={"kill_wait_s": seconds})
        said = settings(render("slurm.conf.j2", document.model_copy(update={"scheduler": scheduler})))[0]
        assert said["KillWait"] == str(seconds)


def test_mail_is_sent_where_a_relay_is_declared():
    mail = {"relay": "mail.example.org:587", "sender": "slurm@hpc.example.org"}
    declared = settings(render("slurm.conf.j2", slurm_head_mail=mail))[0]
    assert declared["MailProg"].endswith("/ironburst-mail") and declared["MailDomain"] == "hpc.example.org"
    assert "relayhost = [mail.example.org]:587\n" in render("main.cf.j2", slurm_head_mail=mail)
    assert "MailProg" not in settings(render("slurm.conf.j2"))[0]


def test_the_mailer_hands_on_what_slurmctld_calls_it_with(tmp_path):
    """Its arguments are slurmctld 24.11's; the job's name is the user's own."""
    mail = {"relay": "mail.example.org", "sender": "slurm@hpc.example.org"}
    sendmail = tmp_path / "sendmail"
    sendmail.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\ncat > {tmp_path}/mail\n')
    sendmail.chmod(0o755)
    text = render("ironburst-mail.j2", slurm_head_mail=mail).replace("/usr/sbin/sendmail", str(sendmail))
    subject = "Slurm Job_id=4 Name=Größe\nBcc: x@y Requeued, Run time 00:00:09"
    called = [sys.executable, "-c", text, "-s", subject, "anna@example.org"]
    subprocess.run(called, check=True, env={"SLURM_JOB_ID": "4"})
    sent = message_from_bytes((tmp_path / "mail").read_bytes(), policy=policy.default)
    assert (tmp_path / "arguments").read_text().split() == ["-i", "-f", mail["sender"], "--", "anna@example.org"]
    assert (sent["To"], sent["From"], sent["Bcc"]) == ("anna@example.org", mail["sender"], None)
    assert sent["Subject"] == " ".join(subject.split()) and "ironburst explain 4" in sent.get_content()


@pytest.mark.parametrize(
    ("boot_s", "idle_s", "resume", "suspend"), [(900, 600, 1800, 86400), (3000, 172800, 3600, 345600)]
)
def test_slurm_is_as_patient_as_the_pools(boot_s, idle_s, resume, suspend):
    """Else it gives up a node that boots in time, or powers down one that may idle. The snippet says the same."""
    document = lab_document()
    pools = [pool.model_copy(update={"boot_s": boot_s, "idle_s": idle_s}) for pool in document.pools]
    document = document.model_copy(update={"pools": pools})
    for text in (render("slurm.conf.j2", document), "\n".join(snippet.slurm_conf(document))):
        assert re.findall(r"^ResumeTimeout=(\d+)", text, re.MULTILINE) == [str(resume)]
        burst = re.findall(r"^PartitionName=burst-p5 .*SuspendTime=(\d+)", text, re.MULTILINE)
        assert burst == [str(suspend)]


def test_slurm_without_pools_has_the_least():
    document = lab_document().model_copy(update={"pools": []})
    for text in (render("slurm.conf.j2", document), "\n".join(snippet.slurm_conf(document))):
        assert "\nResumeTimeout=1800\n" in text
