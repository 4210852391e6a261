"""Role prometheus, templated by Ansible: it writes what `ironburst monitoring` writes, and both programs accept it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import templated
import yaml
from programs import PLAYBOOKS, command, load
from rendered import rendered

from ironburst.document import of_stack
from ironburst.monitoring import site_files
from tests import prometheus

STACK = PLAYBOOKS.parent / "stacks/Pulumi.lab.yaml"
FOLDER = "/etc/prometheus/ironburst"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """(document, variables of the role on the head)"""
    folder = tmp_path_factory.mktemp("site")
    (folder / "hook").write_text("http://127.0.0.1:1/{{ x }}\n")
    stack = yaml.safe_load(STACK.read_text())
    stack["config"]["ironburst:cluster"] |= {
        "metrics": True,
        "monitoring": {
            "server": "head",
            "tell": [{"audience": "operators", "service": "webhook", "secret": f"file:{folder}/hook"}],
        },
    }
    (folder / "Pulumi.x.yaml").write_text(yaml.safe_dump(stack))
    document = of_stack.document(folder / "Pulumi.x.yaml")
    (folder / "lab.json").write_text(document.model_copy(update={"serial": 1}).model_dump_json())
    made = rendered("lab", folder / "lab.json")
    assert [name for name, its in made.items() if any(key.startswith("prometheus_") for key in its)] == ["head"]
    return document, made["head"]


def test_it_is_what_the_verb_writes(site):
    document, made = site
    place = site_files.PrometheusPlace(FOLDER, {"head": "127.0.0.1:8643"}, "127.0.0.1:9093", "127.0.0.1:9090")
    wanted = site_files.of_prometheus("lab", document.hosts, place)
    written = {each["path"].removeprefix(f"{FOLDER}/"): each["content"] for each in made["prometheus_site_files"]}
    assert written == wanted
    assert list(written)[-1] == "prometheus.yml", "last: it names the others"
    told = made["prometheus_alertmanager_file"]
    assert told["content"] == site_files.of_alertmanager(document.monitoring, lambda _: "http://127.0.0.1:1/{{ x }}")
    assert (told["owner"], told["mode"]) == ("prometheus", "0400")


def test_neither_listens_on_every_address(site):
    files = {each["path"]: each.get("content", "") for each in site[1]["prometheus_unit_files"]}
    assert "--web.listen-address=127.0.0.1:9090 " in files["/etc/default/prometheus"]
    assert "--storage.tsdb.retention.time=30d --storage.tsdb.retention.size=20GB" in files["/etc/default/prometheus"]
    alertmanager = files["/etc/default/prometheus-alertmanager"]
    assert "--web.listen-address=127.0.0.1:9093 " in alertmanager and '--cluster.listen-address="' in alertmanager
    assert "MemoryMax=" in files["/etc/systemd/system/prometheus.service.d/ironburst.conf"]


def run_module(entries, folder):
    """Module `files` with the role's entries below `folder`, for whoever runs this."""
    mine = {"owner": owner(), "group": owner()}
    files = [each | {"path": f"{folder}{each['path']}"} | mine for each in entries]
    question = {"ANSIBLE_MODULE_ARGS": {"files": files, "_ansible_check_mode": False, "_ansible_diff": False}}
    module = PLAYBOOKS / "plugins/modules/files.py"
    done = subprocess.run(command(module), input=json.dumps(question), capture_output=True, text=True)
    return json.loads(done.stdout)


def owner():
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def test_nothing_that_they_refuse_takes_a_files_place(site, tmp_path, monkeypatch):
    programs = {prometheus.program(name): name for name in ("promtool", "amtool")}
    (tmp_path / "bin").mkdir()
    for path, name in programs.items():
        (tmp_path / "bin" / name).symlink_to(path)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    made = json.loads(json.dumps(site[1]).replace(FOLDER, f"{tmp_path}{FOLDER}"))
    entries = [*made["prometheus_site_files"], made["prometheus_alertmanager_file"]]
    entries = [each | {"path": each["path"].removeprefix(str(tmp_path))} for each in entries]
    (tmp_path / FOLDER[1:] / "targets").mkdir(parents=True)
    first = run_module(entries, tmp_path)
    assert first["changed"] and len(first["changed_paths"]) == len(entries)
    assert run_module(entries, tmp_path)["changed"] is False
    for number, name in ((0, "ironburst-alerts.yml"), (-2, "prometheus.yml"), (-1, "alertmanager.yml")):
        broken = entries[number] | {"content": "groups: [{name: x, rules: [{alert: A, expr: 'sum('}]}]\nroute: {}\n"}
        before = (tmp_path / FOLDER[1:] / name).read_text()
        refused = run_module([broken], tmp_path)
        assert refused.get("failed") and "stays as it was" in refused["msg"] and name in refused["msg"]
        assert (tmp_path / FOLDER[1:] / name).read_text() == before
        assert [path for path in (tmp_path / FOLDER[1:]).iterdir() if path.name.startswith(".ironburst-")] == []


def test_dashboards_are_those_of_the_verb_and_none_without_the_sdk(site, monkeypatch):
    made = {Path(each["path"]).name: each["content"] for each in site[1]["prometheus_dashboards"]}
    assert made == {Path(name).name: text for name, text in site_files.of_grafana().items()} and len(made) == 6
    monkeypatch.setitem(__import__("sys").modules, "grafana_foundation_sdk.builders", None)
    assert load("plugins/filter/monitoring.py").monitoring_dashboards("/x") == []
    source = next(each for each in site[1]["prometheus_grafana_files"] if "datasources/" in each["path"])
    assert yaml.safe_load(source["content"])["datasources"][0]["url"] == "http://127.0.0.1:9090"


@pytest.mark.parametrize("distribution", ["Debian 13", "Rocky 9", "Ubuntu 24.04"])
def test_a_system_without_its_packages_is_refused(distribution):
    name, version = distribution.split()
    facts = {"distribution": name, "distribution_version": version, "distribution_major_version": version.split(".")[0]}
    known = {"ansible_facts": facts | {"os_family": "RedHat" if name == "Rocky" else "Debian"}}
    packages = templated.value("prometheus", "prometheus_packages", known)
    assert packages == ([] if name == "Rocky" else ["prometheus", "prometheus-alertmanager"])
    (asked, *_) = yaml.safe_load((PLAYBOOKS / "roles/prometheus/tasks/preflight.yml").read_text())
    assert asked["ansible.builtin.assert"]["that"] == "prometheus_packages | length > 0"
    message = templated.expression(
        asked["ansible.builtin.assert"]["fail_msg"], known | {"inventory_hostname": "head", "prometheus_packages": []}
    )
    assert "name a host with Debian or Ubuntu" in message and "ironburst monitoring STACK_FILE" in message
