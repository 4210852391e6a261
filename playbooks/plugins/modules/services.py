#!/usr/bin/python3
"""Ansible module `services`: several units of systemd in one call on the host.

`systemd_service` costs a call a unit, and a handler one more; here it is one for all. A unit that `reads` a file which
is younger than its own start is restarted: so a restart isn't lost with a run that was cancelled between the file and
the handler.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: services
short_description: several units of systemd in one call
description:
  - Masks, enables, starts, restarts and stops units, in the order of I(services).
  - systemd reads its units anew where one of the named ones needs it, once, unless I(daemon_reload) is C(never).
options:
  services:
    description:
      - Units. One that the host doesn't have is an error where it is to be enabled or started (not in check mode);
        it counts as stopped.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {description: name of the unit; without a suffix a service, type: str, required: true}
      enabled: {description: whether it starts at boot; left as it is if not given, type: bool}
      masked: {description: whether nothing can start it, type: bool, default: false}
      state:
        description: whether it runs; left as it is if not given
        type: str
        choices: [started, restarted, stopped]
      reads:
        description: files that it reads at its start; one that is younger than the start is a restart
        type: list
        elements: path
        default: []
      reloads:
        description: files that it reads again at a reload; one that is younger than its last start or reload is one
        type: list
        elements: path
        default: []
  daemon_reload:
    description: whether systemd may read its units anew
    type: str
    choices: [auto, never]
    default: auto
  free_for:
    description:
      - What a stop or restart of these units is called in a sentence. Right before the first one the host is looked at,
        and nothing is done where somebody uses it (not in check mode).
    type: str
extends_documentation_fragment: [free_for]
author: ironburst
"""

EXAMPLES = r"""
- name: Services of the node run
  services:
    services:
      - {name: munge, enabled: true, state: started, reads: [/etc/munge/munge.key]}
      - {name: slurmd, enabled: true, state: started}
"""

RETURN = r"""
done:
  description: what was (or would be) done, in order, such as "restart slurmd.service"
  returned: always
  type: list
active:
  description: ActiveState of each unit at the end, by the name as given
  returned: success
  type: dict
"""

import os  # noqa: E402
import subprocess  # noqa: E402
import time  # noqa: E402

from ansible.module_utils import occupants  # noqa: E402
from ansible.module_utils.basic import AnsibleModule  # noqa: E402

PROPERTIES = (
    *("LoadState", "ActiveState", "UnitFileState", "NeedDaemonReload", "DropInPaths"),
    *("InactiveExitTimestampMonotonic", "StateChangeTimestampMonotonic"),
)
OURS = "/etc/systemd/system"
SUFFIXES = (".service", ".socket", ".timer", ".path", ".mount", ".target", ".slice")
# `systemctl is-enabled` says yes
ENABLED = ("enabled", "enabled-runtime", "static", "alias", "indirect", "generated", "transient")
DISTURBING = ("stop", "restart")
# Links for the next boot; for each systemd would read all units anew and run its generators, a tenth of a CPU second
WITHOUT_RELOAD = {"enable": ["--no-reload"], "disable": ["--no-reload"]}
RUNNING = ("active", "activating", "reloading", "refreshing")


class Failed(Exception):
    """systemd refuses; the text is one sentence."""


def full_name(name):
    """A unit's name with its suffix."""
    return name if name.endswith(SUFFIXES) else name + ".service"


def run(command):
    """The command, ended, with what it wrote."""
    pipe = subprocess.PIPE
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, universal_newlines=True)


def systemctl(*words):
    """Output of systemctl; raises Failed with what it said."""
    command = ["systemctl", "--no-pager", "--no-ask-password", *words]
    done = run(command)
    if done.returncode:
        raise Failed(" ".join((done.stderr or done.stdout).split()))
    return done.stdout


def blocks(text):
    """What `systemctl show` says of several units: a dict each, in their order."""
    return [dict(line.partition("=")[::2] for line in block.splitlines()) for block in text.strip("\n").split("\n\n")]


def look(names):
    """{name: properties} of units."""
    said = systemctl("show", "--property=" + ",".join(PROPERTIES), "--", *(full_name(name) for name in names))
    return dict(zip(names, blocks(said)))  # noqa: B905 (Python 3.9 on EL 9)


def started_at(unit, now=time.time, monotonic=time.monotonic, of="InactiveExitTimestampMonotonic"):
    """When the unit's last start began, on the present clock: the clock may have been set since. None if it never
    started. `of`: another moment.
    """
    microseconds = int(unit.get(of) or 0)
    return now() - (monotonic() - microseconds / 1e6) if microseconds else None


def younger(paths, moment):
    """The first of the files that was written after `moment`; None if there is none."""
    for path in paths:
        try:
            if os.stat(path).st_mtime > moment:
                return path
        except FileNotFoundError:
            continue
    return None


def unread(name, unit, folder=OURS):
    """The unit's drop-ins that systemd has not read yet. Of a folder that is new systemd before 253 (EL 9, Debian 12,
    Ubuntu 22.04) doesn't say so itself.
    """
    own, read = os.path.join(folder, full_name(name) + ".d"), unit.get("DropInPaths", "").split()
    try:
        there = [os.path.join(own, file) for file in os.listdir(own) if file.endswith(".conf")]
    except OSError:
        return []
    return [path for path in there if path not in read and os.path.realpath(path) != "/dev/null"]


def stale(service, unit, new):
    """Whether systemd must read its units anew for this one, which has the unread drop-ins `new`. What is not there
    needs no reading where it isn't to run.
    """
    wanted = service["enabled"] or service["state"] in ("started", "restarted")
    return bool(new) or unit.get("NeedDaemonReload") == "yes" or (wanted and unit.get("LoadState") == "not-found")


def steps(service, unit, new=()):
    """systemctl's verbs that make the unit as wanted, in order. `new`: drop-ins that it was started without."""
    there, running = unit.get("LoadState") not in ("not-found", ""), unit.get("ActiveState") in RUNNING
    masked = unit.get("LoadState") == "masked" or unit.get("UnitFileState") == "masked"
    verbs = []
    if masked and not service["masked"] and (service["enabled"] or service["state"] in ("started", "restarted")):
        verbs.append("unmask")
    if service["enabled"] is True and unit.get("UnitFileState") not in ENABLED:
        verbs.append("enable")
    if service["enabled"] is False and there and unit.get("UnitFileState") in ("enabled", "enabled-runtime"):
        verbs.append("disable")
    if service["masked"] and not masked:
        verbs.append("mask")
    if service["state"] == "stopped" and running:
        verbs.append("stop")
    if service["state"] == "restarted":
        verbs.append("restart")
    elif service["state"] == "started":
        moment = started_at(unit) if running else None
        if not running:
            verbs.append("start")
        elif moment is not None and (younger(service["reads"], moment) or set(new) & set(service["reads"])):
            verbs.append("restart")
        elif service["reloads"]:
            last = started_at(unit, of="StateChangeTimestampMonotonic")  # its start, or a reload
            if last is not None and younger(service["reloads"], last):
                verbs.append("reload")
    return verbs


def refusal(parameters, services, seen):
    """Why a stop or restart that is due may not be done now; "" where none is due, or nobody uses the host."""
    due = any(
        verb in DISTURBING and seen[service["name"]].get("ActiveState") in RUNNING
        for service in services
        for verb in steps(service, seen[service["name"]])
    )
    return occupants.why_not(parameters) if due else ""


def why_not(name, verb, said):
    """One sentence about a step that systemd refused, with the unit's last words."""
    command = ["journalctl", "--no-pager", "--quiet", "--lines=3", "--output=cat", "--unit", full_name(name)]
    done = run(command)
    last = " | ".join(line.strip() for line in done.stdout.splitlines() if line.strip())
    return f"{full_name(name)}: systemctl {verb} failed: {said}" + (f"; its journal ends with: {last}" if last else "")


def main():
    """Make every unit of `services` as wanted, in order."""
    entry = {
        "name": {"type": "str", "required": True},
        "enabled": {"type": "bool"},
        "masked": {"type": "bool", "default": False},
        "state": {"type": "str", "choices": ["started", "restarted", "stopped"]},
        "reads": {"type": "list", "elements": "path", "default": []},
        "reloads": {"type": "list", "elements": "path", "default": []},
    }
    module = AnsibleModule(
        argument_spec={
            "services": {"type": "list", "elements": "dict", "required": True, "options": entry},
            "daemon_reload": {"type": "str", "choices": ["auto", "never"], "default": "auto"},
            **occupants.OPTIONS,
        },
        supports_check_mode=True,
    )
    services, done = module.params["services"], []
    names = [service["name"] for service in services]
    if not names:
        module.exit_json(changed=False, done=[], active={})
    try:
        seen = look(names)
        new = {name: unread(name, unit) for name, unit in seen.items()}
        due = any(stale(service, seen[service["name"]], new[service["name"]]) for service in services)
        if due and module.params["daemon_reload"] == "auto" and not module.check_mode:
            systemctl("daemon-reload")
            seen = look(names)
    except (Failed, OSError) as error:
        module.fail_json(msg=f"systemctl show failed: {error}", done=[])
    why = "" if module.check_mode else refusal(module.params, services, seen)
    if why:
        module.fail_json(msg=why, changed=False, done=[])
    for service in services:
        name = service["name"]
        for verb in steps(service, seen[name], new[name]):
            if not module.check_mode:
                try:
                    systemctl(verb, *WITHOUT_RELOAD.get(verb, ()), full_name(name))
                except Failed as error:
                    module.fail_json(msg=why_not(name, verb, error), changed=bool(done), done=done)
            done.append(f"{verb} {full_name(name)}")
    after = look(names) if done and not module.check_mode else seen
    module.exit_json(
        changed=bool(done), done=done, active={name: unit.get("ActiveState") for name, unit in after.items()}
    )


if __name__ == "__main__":
    main()
