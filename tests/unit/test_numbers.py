"""Numbers that stand in two places: derived where that is possible, else compared here. Every number of a role's
defaults, of the document's, of a component and every `default(N)` of a playbook is in one of the lists: a new one fails
until somebody has looked where else it stands.
"""

import ast
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from ironburst import document
from ironburst.adapters.google import launching
from ironburst.burst import unstarted
from ironburst.config import spot_notice
from ironburst.config.burst_models import Burst
from ironburst.config.cloud_models import Images
from ironburst.config.google.models import GoogleCloud
from ironburst.config.hall_models import Breaker
from ironburst.config.scheduler_models import Slurm
from ironburst.controller import records
from ironburst.doctor import hosts
from ironburst.document import build_scheduler, monitoring
from ironburst.slurm_programs import snippet
from tests.fakes import dead_man
from tests.fakes import document as published

ROOT = Path(__file__).parents[2]
ROLES = ROOT / "playbooks/roles"
SLURM_CONF = (ROLES / "slurm_head/templates/slurm.conf.j2").read_text()
_DEFAULT = re.compile(r"([a-z_][a-z_.]*) *(?:\| *default\(|or )(['\"]?)(\d+[a-zA-Z%]*)\2(?:, *true)?(?:\)| *\}\})")


def numbers(value, name):
    """(name, number) of all in it; a text that is a number with a unit is one."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from numbers(each, f"{name}.{key}")
    elif isinstance(value, str):
        if re.fullmatch(r"[0-9.]+[a-zA-Z%]{0,3}", value):
            yield name, value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def of_roles():
    found = {}
    for file in sorted(ROLES.glob("*/defaults/main.yml")):
        for key, value in yaml.safe_load(file.read_text()).items():
            found |= dict(numbers(value, key))
    return found


def of_document():
    """Field by field, with its model."""
    found = {}
    for each in pkgutil.walk_packages(document.__path__, "ironburst.document."):
        module = importlib.import_module(each.name)
        for name, model in inspect.getmembers(module, inspect.isclass):
            if issubclass(model, BaseModel) and model.__module__ == module.__name__:
                found |= {
                    f"{name}.{field}": info.default
                    for field, info in model.model_fields.items()
                    if isinstance(info.default, int | float) and not isinstance(info.default, bool)
                }
    return found


def of_playbooks():
    """{(file, what): the number that it has where nobody says it}"""
    files = [file for kind in ("*.yml", "*.j2") for file in sorted((ROOT / "playbooks").rglob(kind))]
    return {
        (str(file.relative_to(ROOT / "playbooks")), what): number if quoted else int(number)
        for file in files
        for what, quoted, number in _DEFAULT.findall(file.read_text())
        if number not in ("0", "1")  # nothing, or a failure
    }


def of_components():
    """`module.NAME`, or `module.keyword=` of a call, where a component has a number of its own."""
    found = set()
    for file in sorted((ROOT / "components").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.isupper():
                name, value = node.targets[0].id, node.value
            elif isinstance(node, ast.keyword):
                name, value = f"{node.arg}=", node.value
            else:
                continue
            inside = ast.walk(value) if name.isupper() else [value]
            consts = [each.value for each in inside if isinstance(each, ast.Constant)]
            if any(number not in (0, 1) for const in consts for _, number in numbers(const, name)):
                found.add(f"{file.stem}.{name}")
    return found


ROLE, MODEL, PLAY = of_roles(), of_document(), of_playbooks()
SNIPPET = dict(part.partition("=")[::2] for part in snippet.ADDED)
# what must be the same, by what it is
SAME = {
    "time to boot": (ROLE["slurm_head_resume_timeout"], snippet.RESUME_S),
    "time to rest": (ROLE["slurm_head_suspend_timeout"], snippet.SUSPEND_S),
    "backstop of burst partitions": (ROLE["slurm_head_burst_suspend_time"], snippet.BACKSTOP_S),
    "a job without --time": (ROLE["slurm_head_default_time"], snippet.DEFAULT_S),
    "power save's round": (ROLE["slurm_head_power_save_interval"], int(SNIPPET["power_save_interval"])),
    "uid of slurm": (
        Slurm.model_fields["slurm_uid"].default,
        MODEL["Scheduler.slurm_uid"],
        PLAY["roles/slurm_host/vars/main.yml", "cluster_scheduler.slurm_uid"],
    ),
    "images kept": (Images.model_fields["keep"].default, MODEL["ImagesDocument.keep"]),
    "the hall's share": (Breaker().share, MODEL["HallDocument.breaker_share"]),
    "a hall's event": (Breaker().drain_after, MODEL["HallDocument.drain_after_s"]),
    "dead man's switch": (Burst().dead_man, MODEL["Burst.dead_man_s"], dead_man.program.UNDECLARED["dead_man_s"]),
    "its look": (ROLE["cloud_node_dead_man_look"], dead_man.LOOK_S),
    "KillWait": (
        spot_notice.kill_wait_s(10, 120),
        MODEL["Scheduler.kill_wait_s"],
        PLAY["roles/slurm_head/templates/slurm.conf.j2", "slurm_head_scheduler.kill_wait_s"],
    ),
    "jobs of a node that is given up": (records.STOP_S, spot_notice.GIVEN_UP_S),
    "Google's notice": (launching.LEAD_S, GoogleCloud.spot_notice_s),
    "a reboot": (
        ROLE["base_reboot_timeout"],
        ROLE["nvidia_driver_reboot_timeout"],
        PLAY["roles/rdma/tasks/reload.yml", "base_reboot_timeout"],
    ),
    "reboots at once": (
        ROLE["base_reboot_at_once"],
        PLAY["roles/nvidia_driver/tasks/reload.yml", "base_reboot_at_once"],
        PLAY["roles/rdma/tasks/reload.yml", "base_reboot_at_once"],
    ),
    "looks at the fabric": (
        ROLE["infiniband_fabric_check_interval"],
        PLAY["roles/infiniband_fabric/templates/ironburst-fabric.timer.j2", "infiniband_fabric_check_interval"],
    ),
    "port of Prometheus": (ROLE["prometheus_port"], monitoring.PORT),
    "how long slurmctld may be away": tuple(
        ROLE[f"slurm_{role}_controller_timeout"] for role in ("host", "node", "login")
    ),
}
USED = """slurm_head_resume_timeout slurm_head_suspend_timeout slurm_head_burst_suspend_time slurm_head_default_time
slurm_head_power_save_interval cloud_node_dead_man_look base_reboot_timeout nvidia_driver_reboot_timeout
slurm_host_controller_timeout slurm_node_controller_timeout slurm_login_controller_timeout
slurm_head_sched_interval node_health_settle base_reboot_at_once infiniband_fabric_check_interval prometheus_port"""
ALONE = {
    "read nowhere but in this role": """
        base_hugepages container_runtime_docker_log_size container_runtime_docker_log_files
        container_runtime_namespaces data_sets_seconds infiniband_fabric_sweep_interval infiniband_fabric_limits
        infiniband_fabric_min_width infiniband_fabric_min_lane_gbps infiniband_fabric_settle
        kubernetes_head_backups_kept kubernetes_head_renew_days kubernetes_node_gate_interval
        kubernetes_node_api_timeout kubernetes_node_join_tries logs_journal_max metrics_node_port metrics_dcgm_port
        metrics_cluster_interval node_health_fabric_rate node_health_accepted_uncorrectable node_health_memory_gib
        metrics_links_interval metrics_push_interval
        node_health_dcgm_level node_health_burn_in_dcgm_level node_health_baseline_tolerance scratch_mode
        prometheus_alertmanager_port prometheus_memory_max shared_filesystem_timeout slurm_head_health_interval
        slurm_head_max_time slurm_head_database_memory
        slurm_head_backup_keep slurm_head_conversion_timeout slurm_head_ledger_backup_keep users_cache_time""",
}
DOCUMENT_ALONE = {
    "GooglePlace.local_ssds": "none are asked for",
    "Burst.carbon_usd_per_tonne": "a document from before the key: it weighs nothing",
    "Burst.settle_s": "a document from before the key: nobody waited then",
    "PoolDocument.checkpoint_s": "a document from before the key",
}
PLAYS_ALONE = {
    ("validate.yml", "validate_connection_timeout"): "a person's, on the command line",
    ("validate.yml", "validate_disk_bytes"): "a person's, on the command line",
}
COMPONENTS_ALONE = {
    "access.SESSION_S": "of a hall's certificate: who holds it asks again before its end, which the answer names",
    "budget.ALARMS": "AWS's own alarms, in per cent of the stack's budget",
    "hall_links._ASNS": "private ASNs, of which the halls' are left out",
    "hall_links.ike_version=": "of the tunnels; Google's other one is for devices of before",
    "hall_links.new_prefix=": "two ends of a tunnel",
    "hall_links._ZONES": "all zones of a region of Azure, which its gateways' SKUs are in",
    "network._LAST": "the last priority of a rule in Azure",
    "reaper.EVERY_MIN": "between two looks of the reaper in Azure; declared times have it (docs/adr/0134)",
    "names.MOST": "characters of a name in Google Cloud",
    "names._ACCOUNT": "characters of a service account's id there",
    "cluster_kinds.ANSWER_S": "how long one look at a cluster may take",
    "eks.ZONES": "what EKS asks for at least",
    "interruptions.RETENTION_S": "notices that nobody fetched",
    "karpenter.CLOSED": "a pool that may have no nodes",
}


@pytest.mark.parametrize("what", SAME)
def test_a_number_in_two_places_is_one(what):
    assert len(set(SAME[what])) == 1, SAME[what]


def test_every_number_of_a_roles_defaults_has_been_looked_at():
    listed = {*USED.split(), *" ".join(ALONE.values()).split()}
    found = {name.partition(".")[0] for name in ROLE}
    assert sorted(found - listed) == [], "where else does it stand? Derive it, or compare it above; else it is ALONE"
    assert sorted(listed - found) == []


@pytest.mark.parametrize("name", sorted(" ".join(ALONE.values()).split()))
def test_what_is_alone_stands_in_no_other_role_or_program(name):
    """By its name: who reads it elsewhere with a default of his own has a second number."""
    role = next(path.parts[-3] for path in ROLES.glob("*/defaults/main.yml") if f"{name}:" in path.read_text())
    elsewhere = re.compile(rf"\b{name}\b *\| *default\(")
    for path in [*(ROOT / "playbooks").rglob("*.yml"), *(ROOT / "playbooks").rglob("*.j2")]:
        assert path.is_relative_to(ROLES / role) or not elsewhere.search(path.read_text()), path


def test_every_number_of_the_document_has_been_looked_at():
    compared = {"Scheduler.slurm_uid", "Scheduler.kill_wait_s", "ImagesDocument.keep", "Burst.dead_man_s"}
    compared |= {"HallDocument.breaker_share", "HallDocument.drain_after_s"}
    assert sorted(MODEL.keys() - compared - DOCUMENT_ALONE.keys()) == []


def test_every_default_in_a_playbook_has_been_looked_at():
    source = Path(__file__).read_text()
    compared = {key for key in PLAY if f'PLAY["{key[0]}", "{key[1]}"]' in source}
    assert sorted(PLAY.keys() - compared - PLAYS_ALONE.keys()) == []


def test_every_number_of_a_component_has_been_looked_at():
    assert sorted(of_components() - COMPONENTS_ALONE.keys()) == [], "where else does it stand? Derive it from there"
    assert sorted(COMPONENTS_ALONE.keys() - of_components()) == []


def test_the_snippet_says_what_the_heads_template_says():
    """Every Key=NUMBER of the one that the other has as a number, too."""
    text = "\n".join(snippet.slurm_conf(published()))
    ours = dict(re.findall(r"\b([A-Z]\w+)=(\d+)\b", text))
    theirs = dict(re.findall(r"\b([A-Z]\w+)=(\d+)\b(?!\{)", SLURM_CONF))
    both = ours.keys() & theirs.keys()
    assert {"ResumeRate", "SuspendRate", "Weight"} <= both
    assert {key: ours[key] for key in both} == {key: theirs[key] for key in both}


def test_ports_are_what_the_roles_open():
    opened = {
        int(port)
        for path in ROLES.glob("slurm_*/tasks/configure.yml")
        for line in path.read_text().splitlines()
        if "slurm_host_ports" in line
        for port in re.findall(r"\b(\d+)/tcp", line)
    }
    assert {hosts.SLURMCTLD, hosts.SLURMD} <= opened
    waited = re.findall(r"/dev/tcp/\$at/(\d+)", (ROLES / "slurm_host/vars/main.yml").read_text())
    assert set(map(int, waited)) == {hosts.SLURMCTLD}
    for role in ("slurm_node", "slurm_login"):
        assert "tasks_from: answers" in (ROLES / role / "tasks/runtime.yml").read_text(), role
    docs = (ROOT / "docs/how-to/hall-link.md").read_text()
    assert f"slurmctld ({hosts.SLURMCTLD}/tcp" in docs and f"slurmd ({hosts.SLURMD}/tcp)" in docs
    assert build_scheduler.API_PORT == 6443
    assert f"port {build_scheduler.API_PORT}" in (ROOT / "ironburst/config/scheduler_models.py").read_text()


def test_patience_covers_the_rounds_of_slurms_scheduler():
    assert 5 * max(60, ROLE["slurm_head_sched_interval"]) <= unstarted.PATIENCE_S


def test_the_gates_unit_waits_longer_than_its_program():
    unit = (ROLES / "node_health/templates/ironburst-gate.service.j2").read_text()
    program = (ROLES / "node_health/files/ironburst-gate.py").read_text()
    (more,) = re.findall(r"TimeoutStartSec=\{\{ node_health_settle \+ (\d+) \}\}", unit)
    (tool,) = re.findall(r'"IRONBURST_GATE_TOOL_TIMEOUT", "(\d+)"', program)
    assert int(more) >= 2 * int(tool) and "--settle {{ node_health_settle }}" in unit


UNITS = {"h": 3600, "hours": 3600, "hour": 3600, "min": 60, "s": 1, "days": 1, "day": 1, "%": 1, "": 1}
_SAID = re.compile(
    r"`([a-z_]+)`(?: \| (?:\w+ \| )?|, | \(|: | = )`?([0-9][0-9.]*)`? ?(hours?|h|min|s|days?|%)?(?![\w])"
)


def said_in_docs():
    """(file, variable, number) wherever a page says a role's number behind its name."""
    pages = [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "playbooks").rglob("*.md"))]
    for page in pages:
        for name, number, unit in _SAID.findall(page.read_text()):
            if name in ROLE:
                yield str(page.relative_to(ROOT)), name, float(number) * UNITS[unit]


def test_docs_say_the_roles_numbers():
    found = list(said_in_docs())
    assert len(found) > 30 and {"docs/policy.md", "docs/how-to/sysadmin/storage.md"} <= {file for file, _, _ in found}
    for file, name, number in found:
        assert number == float(str(ROLE[name]).rstrip("%")), f"{file}: {name}"
