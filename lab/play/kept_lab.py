"""A lab that was kept, as its player sees it: every node by the name that Slurm has for it."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from ironburst import document
from ironburst.controller.ledger import Ledger
from ironburst.document import ClusterDocument
from lab import names
from lab.demo import kept
from lab.demo.burst import Head
from lab.demo.cloud import control
from lab.demo.inside import Inside
from lab.hosts.host import Host
from lab.site import Site
from lab.system import LabError

PEOPLE = "getent passwd | awk -F: '$3 >= 1000 && $3 < 60000 { print $1 }'"


class BadInput(LabError):
    """Something that was asked for isn't there, or can't be; one sentence that says what is."""


class KeptLab:
    """The lab `prefix`; LabError if it isn't up, or wasn't kept by a demo."""

    def __init__(self, prefix: str):
        self.site = Site(prefix)
        if not self.site.box.is_up():
            raise LabError(
                f"lab {prefix!r} is not up: `make demo KEEP=1` starts one to play with (LAB_PREFIX names it)"
            )
        self.engine = kept.engine_of(self.site.box)
        self.inside = Inside(self.site)
        self.head = Head(self.inside)

    def document(self) -> ClusterDocument:
        """What is published now."""
        return document.read(self.inside.document)

    @contextlib.contextmanager
    def ledger(self) -> Iterator[Ledger]:
        """The controller's, to read."""
        with closing(Ledger(self.inside.ledger, read_only=True)) as ledger:
            yield ledger

    def control(self, verb: str, path: str, **body: object) -> Any:
        """One call of the lab cloud's switchboard."""
        return control(self.inside, verb, path, **body)

    def instances(self) -> list[dict[str, Any]]:
        """The cloud's live instances, each with its `node`: the name that Slurm has for it, or its id."""
        published = self.document()
        by_id = {host.instance_id: host.name for host in published.hosts if host.instance_id}
        with self.ledger() as ledger:
            by_id |= {lease.instance_id: lease.node for lease in ledger.leases() if lease.instance_id}
        shown = [view for view in self.control("GET", "/lab/instances") if view["state"] != "terminated"]
        return [view | {"node": by_id.get(view["instance_id"], view["instance_id"])} for view in shown]

    def nodes(self) -> dict[str, Host]:
        """{name: host} of all that is there now: the hall's hosts, fixed and rented nodes."""
        by_id = {view["instance_id"]: view["node"] for view in self.instances()}
        return {by_id.get(host.name, host.name): host for host in self.site.hosts()}

    def node(self, name: str) -> Host:
        """BadInput, with those that are there, for another name."""
        there = self.nodes()
        if name not in there:
            raise BadInput(f"there is no host {name!r} now; there are {', '.join(there)}")
        return there[name]

    def hall_host(self, name: str) -> Host:
        """BadInput for what isn't a host of the hall."""
        host = self.node(name)
        if names.is_instance(host.name):
            hall = ", ".join(each for each, host in self.nodes().items() if not names.is_instance(host.name))
            raise BadInput(f"{name!r} is an instance of the cloud; of the hall are {hall}")
        return host

    def instance(self, name: str) -> dict[str, Any]:
        """BadInput for what isn't an instance."""
        there = {view["node"]: view for view in self.instances()}
        if name not in there:
            self.node(name)  # says so if there is no such host at all
            raise BadInput(f"{name!r} is not an instance of the cloud; instances are {', '.join(there) or 'none'}")
        return there[name]

    # --- commands on hosts ------------------------------------------------------------------------------------

    def as_user(self, host: Host, user: str, line: str) -> str:
        """The shell line that runs `line` as a user, in the submit folder. BadInput for a user that isn't there."""
        if user == "root":
            return line
        if host.ssh(f"id -u -- {shlex.quote(user)}", check=False).returncode:
            people = ", ".join(["root", *host.ssh(PEOPLE).stdout.split()])
            raise BadInput(f"{host.spec.hostname} has no user {user!r}; there are {people}")
        return f"cd /shared/{user} 2>/dev/null || cd /; exec runuser -u {user} -- sh -c {shlex.quote(line)}"

    def shell_argv(self, name: str, user: str, command: list[str], terminal: bool) -> list[str]:
        """The command line that runs `command` on a node, or opens a shell there."""
        host = self.node(name)
        line = command[0] if len(command) == 1 else shlex.join(command)
        line = self.as_user(host, user, line or "TERM=${TERM:-xterm} exec bash --login")
        argv = host.ssh_argv(line, tied=True)
        if terminal and argv[-2].startswith("root@"):
            argv.insert(-2, "-t")
        return argv

    def put_on_head(self, path: str, text: str, mode: str = "0644") -> None:
        """Replace a file of the head."""
        line = f"umask 077; cat > {path}.new && chmod {mode} {path}.new && mv {path}.new {path}"
        self.inside.run([*self.inside.head_prefix(), line], stdin=text)
