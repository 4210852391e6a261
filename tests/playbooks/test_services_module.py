"""The module `services`, run as Ansible runs it, with a systemctl that keeps units in a file."""

import json
import os
import subprocess
import sys
import time

import pytest
from programs import PLAYBOOKS, command, load

MODULE = PLAYBOOKS / "plugins" / "modules" / "services.py"
SYSTEMCTL = r"""#!{python}
import json, sys, time
words = [word for word in sys.argv[1:] if word not in ("--no-pager", "--no-ask-password", "--no-reload", "--")]
path = {state!r}
state = json.load(open(path))
state["calls"].append(words)
if words[0] in ("enable", "disable", "mask", "unmask") and "--no-reload" not in sys.argv:
    state["calls"].append(["daemon-reload"])  # as systemctl(1) has it
units = state["units"]
NONE = dict(LoadState="not-found", ActiveState="inactive", UnitFileState="", NeedDaemonReload="no")
NONE["InactiveExitTimestampMonotonic"] = NONE["StateChangeTimestampMonotonic"] = "0"
NONE["DropInPaths"] = ""
code = 0
if words[0] == "show":
    names = [word for word in words[1:] if not word.startswith("--")]
    shown = [dict(NONE, **units.get(name, {{}})) for name in names]
    print("\n\n".join("\n".join("%s=%s" % pair for pair in unit.items()) for unit in shown))
elif words[0] == "daemon-reload":
    units.update(state.pop("new", {{}}))
    for unit in units.values():
        unit["NeedDaemonReload"] = "no"
else:
    verb, name = words
    unit = units.get(name)
    if name in state["broken"] or (unit is None and verb != "mask"):
        print("Job for %s failed." % name if unit else "Unit %s not found." % name, file=sys.stderr)
        code = 1
    else:
        unit = units.setdefault(name, {{}})
        now = str(int(time.monotonic() * 1e6))
        if verb in ("start", "restart"):
            unit.update(ActiveState="active", InactiveExitTimestampMonotonic=now, StateChangeTimestampMonotonic=now)
        elif verb == "reload":
            unit.update(StateChangeTimestampMonotonic=now)
        elif verb == "stop":
            unit.update(ActiveState="inactive")
        else:
            states = dict(enable="enabled", disable="disabled", mask="masked", unmask="disabled")
            unit.update(UnitFileState=states[verb])
            unit.update(LoadState="masked" if verb == "mask" else "loaded")
json.dump(state, open(path, "w"))
sys.exit(code)
"""


class Systemd:
    """Units on the disk, and the module that sees only them."""

    def __init__(self, folder):
        self.state = folder / "units.json"
        self.write(units={}, broken=[], calls=[])
        (folder / "systemctl").write_text(SYSTEMCTL.format(python=sys.executable, state=str(self.state)))
        (folder / "journalctl").write_text("#!/bin/sh\necho cannot open the device\n")
        for name in ("systemctl", "journalctl"):
            (folder / name).chmod(0o755)
        self.path = f"{folder}:{os.environ['PATH']}"

    def write(self, **changes):
        old = json.loads(self.state.read_text()) if self.state.exists() else {}
        self.state.write_text(json.dumps(old | changes))

    def unit(self, name, active=True, enabled=True, age=100.0, **more):
        begun = str(int((time.monotonic() - age) * 1e6)) if active else "0"
        state = {
            "LoadState": "loaded",
            "ActiveState": "active" if active else "inactive",
            "UnitFileState": "enabled" if enabled else "disabled",
            "InactiveExitTimestampMonotonic": begun,
            "StateChangeTimestampMonotonic": begun,
        }
        self.write(units=json.loads(self.state.read_text())["units"] | {name: state | more})

    def run(self, *services, check=False, **options):
        question = {"ANSIBLE_MODULE_ARGS": options | {"services": list(services), "_ansible_check_mode": check}}
        done = subprocess.run(
            command(MODULE),
            input=json.dumps(question),
            capture_output=True,
            text=True,
            env=os.environ | {"PATH": self.path},
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    @property
    def calls(self):
        """What systemctl was asked to do."""
        return [" ".join(words) for words in json.loads(self.state.read_text())["calls"] if words[0] != "show"]


@pytest.fixture
def systemd(tmp_path):
    return Systemd(tmp_path)


def test_in_order_and_once(systemd):
    systemd.unit("munge.service", active=False, enabled=False)
    systemd.unit("slurmd.service", active=False)
    wanted = [{"name": name, "enabled": True, "state": "started"} for name in ("munge", "slurmd.service")]
    told = systemd.run(*wanted, check=True)
    assert systemd.calls == []
    done = systemd.run(*wanted)
    assert (
        done["done"]
        == told["done"]
        == ["enable munge.service", "start munge.service", "start slurmd.service"]
        == systemd.calls
    )
    assert done["changed"] and done["active"] == {"munge": "active", "slurmd.service": "active"}
    again = systemd.run(*wanted)
    assert again["changed"] is False and again["done"] == [] and len(systemd.calls) == 3


@pytest.mark.parametrize(("age", "restarts"), [(50.0, False), (-1.0, True)])
def test_a_unit_older_than_a_file_that_it_reads_is_restarted_once(systemd, tmp_path, age, restarts):
    """`age`: of the file, in seconds before the unit's start."""
    systemd.unit("slurmd.service", age=100.0)
    file = tmp_path / "node.env"
    file.write_text("x\n")
    os.utime(file, (time.time() - 100.0 - age,) * 2)
    wanted = {"name": "slurmd", "state": "started", "reads": [str(tmp_path / "missing"), str(file)]}
    assert systemd.run(wanted)["done"] == (["restart slurmd.service"] if restarts else [])
    assert systemd.run(wanted)["changed"] is False


def test_a_unit_reads_a_younger_file_again_once_and_is_not_restarted(systemd, tmp_path):
    systemd.unit("prometheus.service", age=100.0)
    file = tmp_path / "prometheus.yml"
    file.write_text("x\n")
    wanted = {"name": "prometheus", "state": "started", "reloads": [str(file)]}
    assert systemd.run(wanted)["done"] == ["reload prometheus.service"], "written after the start"
    assert systemd.run(wanted)["changed"] is False, "a reload counts as a reading"
    os.utime(file, (time.time() + 5,) * 2)
    assert systemd.run({**wanted, "reads": [str(file)]})["done"] == ["restart prometheus.service"], "not both"
    os.utime(file, (time.time() - 500,) * 2)
    assert systemd.run(wanted)["changed"] is False


def test_a_clock_that_was_set_since_the_start_does_not_count():
    services = load("plugins/modules/services.py")
    unit = {"InactiveExitTimestampMonotonic": str(int(40e6))}
    assert services.started_at(unit, now=lambda: 1_000_000.0, monotonic=lambda: 100.0) == 1_000_000.0 - 60.0
    assert services.started_at({"InactiveExitTimestampMonotonic": "0"}) is None


def test_masked_stopped_and_disabled(systemd):
    systemd.unit("opensm.service")
    systemd.unit("old.timer")
    wanted = [
        {"name": "opensm.service", "masked": True, "state": "stopped"},
        {"name": "opensmd.service", "masked": True, "state": "stopped"},  # not there yet: its package must not start it
        {"name": "old.timer", "enabled": False, "state": "stopped"},
        {"name": "never.service", "enabled": False, "state": "stopped"},
    ]
    assert systemd.run(*wanted)["done"] == [
        "mask opensm.service",
        "stop opensm.service",
        "mask opensmd.service",
        "disable old.timer",
        "stop old.timer",
    ]
    assert systemd.run(*wanted)["changed"] is False
    expected = ["unmask opensm.service", "enable opensm.service"]
    assert systemd.run({"name": "opensm", "enabled": True})["done"] == expected


@pytest.mark.parametrize(("option", "reloads"), [({}, 1), ({"daemon_reload": "never"}, 0)])
def test_units_are_read_anew_where_needed(systemd, option, reloads):
    systemd.unit("slurmd.service", NeedDaemonReload="yes")
    assert systemd.run({"name": "slurmd", "state": "started"}, **option)["changed"] is False
    assert systemd.calls.count("daemon-reload") == reloads


def test_a_unit_whose_file_is_new_is_found(systemd):
    systemd.write(new={"fresh.service": {"LoadState": "loaded", "UnitFileState": "disabled"}})
    expected = ["enable fresh.service", "start fresh.service"]
    assert systemd.run({"name": "fresh", "enabled": True, "state": "started"})["done"] == expected
    assert systemd.calls == ["daemon-reload", *expected]


def test_units_are_not_read_anew_for_what_is_not_to_run(systemd):
    systemd.unit("old.service")
    services = [{"name": "old", "enabled": False, "state": "stopped"}, {"name": "nowhere", "state": "stopped"}]
    assert systemd.run(*services, {"name": "never", "enabled": False})["done"] == systemd.calls
    assert systemd.calls == ["disable old.service", "stop old.service"]


def test_refusals(systemd):
    systemd.unit("good.service", active=False)
    systemd.unit("bad.service", active=False)
    systemd.write(broken=["bad.service"])
    answer = systemd.run(*({"name": name, "state": "started"} for name in ("good", "bad")))
    assert answer["failed"] and answer["changed"] and answer["done"] == ["start good.service"]
    assert answer["msg"] == (
        "bad.service: systemctl start failed: Job for bad.service failed.; "
        "its journal ends with: cannot open the device"
    )
    missing = systemd.run({"name": "nowhere", "state": "started"})
    assert missing["failed"] and "Unit nowhere.service not found" in missing["msg"]
    assert systemd.run({"name": "nowhere", "state": "started"}, check=True)["done"] == ["start nowhere.service"]


def test_a_drop_in_in_a_new_folder_is_seen_though_systemd_says_nothing(tmp_path):
    """systemd 252 of EL 9 and Debian 12: NeedDaemonReload is no."""
    module = load("plugins/modules/services.py")
    folder = tmp_path / "nvidia-persistenced.service.d"
    folder.mkdir()
    ours, masked = folder / "ironburst.conf", folder / "other.conf"
    ours.write_text("[Service]\n")
    masked.symlink_to("/dev/null")
    unit = {"LoadState": "loaded", "ActiveState": "active", "NeedDaemonReload": "no", "DropInPaths": ""}
    unit |= {"UnitFileState": "enabled", "InactiveExitTimestampMonotonic": str(int(time.monotonic() * 1e6 + 1e9))}
    new = module.unread("nvidia-persistenced", unit, str(tmp_path))
    service = {"enabled": True, "masked": False, "state": "started", "reads": [str(ours)], "reloads": []}
    assert new == [str(ours)] and module.stale(service, unit, new)
    assert module.steps(service, unit, new) == ["restart"] and module.steps(service, unit) == []
    unit["DropInPaths"] = str(ours)
    assert not module.stale(service, unit, module.unread("nvidia-persistenced", unit, str(tmp_path)))
