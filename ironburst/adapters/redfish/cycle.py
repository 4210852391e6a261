"""One node's life cycle, as the plugin and the command line take it: its BMC, its host by ssh, and the record."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ironburst.adapters.redfish import boot as redfish_boot
from ironburst.adapters.redfish.client import BmcAccess
from ironburst.baremetal import cycle, install_scripts
from ironburst.baremetal.cycle import Panel, Standing
from ironburst.baremetal.install_inputs import InstallInputs
from ironburst.baremetal.lifecycle import NodeFacts

ANOTHER = "(none of ironburst's)"
"""the mark of a host that answers, and that no medium of this node has installed"""


@dataclass(frozen=True)
class InstallRecord:
    """What is remembered of a node: the mark that its host reported last, and since when (seconds since 1970) an
    installation goes on. A record is only ever a reason to do less.
    """

    installed: str | None = None
    since: float | None = None


def advance(
    bmc: BmcAccess,
    install: InstallInputs,
    record: InstallRecord,
    *,
    asked: Literal["service", "maintenance", "retiring"] = "service",
    as_declared: bool = True,
    act: bool = True,
    panel: Panel | None = None,
    pause: Callable[[], None] = lambda: time.sleep(1),
) -> tuple[Standing, InstallRecord]:
    """Where the node stands, after all that could be done by now; without `act` nothing is done. `panel`: what its BMC
    has just shown, with nothing done since; it is asked again before anything is. Raises BmcError.
    """
    overdue = record.since is not None and time.time() - record.since > install.timeout_seconds
    known = NodeFacts(
        asked=asked,
        hardware="declared" if as_declared else "differs",
        record="none" if record.installed is None else "wanted" if record.installed == install.mark else "other",
        time="over" if overdue else "left",
    )

    def told(shown: Panel) -> str | None:
        on = shown.power != "off" and asked == "service"
        return ask_host(install, bmc.node, timeout_s=bmc.timeout_s) if on else None

    if panel:
        said = told(panel)
        standing = cycle.seen(install.wanted(), known, panel, said, act=act)
        if standing:
            return standing, _recorded(standing, record, said)
    with redfish_boot.console(bmc, by_http=install.boot == "http") as console:
        said = told(console.look())
        if act:
            standing = cycle.advance(install.wanted(), known, console, said, pause)
        else:
            standing = cycle.standing(install.wanted(), known, console, said)
    return standing, _recorded(standing, record, said)


def _recorded(standing: Standing, record: InstallRecord, said: str | None) -> InstallRecord:
    since = (record.since or time.time()) if standing.state == "installing" else None
    return InstallRecord(said or record.installed, since)


def ask_host(install: InstallInputs, node: str, *, timeout_s: float) -> str | None:
    """The mark that the host says it was installed with; ANOTHER: it answers, with none of this node's; None: it does
    not answer, or not with its own key.
    """
    settings = ["BatchMode=yes", "StrictHostKeyChecking=yes", "ControlPath=none"]
    settings += [f"UserKnownHostsFile={Path(install.known_hosts).expanduser().absolute()}"]
    settings += [f"ConnectTimeout={max(1, round(min(10, timeout_s)))}", "LogLevel=ERROR"]
    options = [word for setting in settings for word in ("-o", setting)]
    command = "cat /etc/ironburst/install.json 2>/dev/null; exit 0"
    argv = ["ssh", "-T", *options, "-l", install.ssh_user, install.host_address, command]
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, text=True, capture_output=True, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    return install_scripts.mark_in(done.stdout, node) or ANOTHER
