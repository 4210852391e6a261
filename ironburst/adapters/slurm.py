"""The Slurm side of the controller: `squeue` and `scontrol` through a command prefix.

The prefix is a list: [] on the head node, `["ssh", ..., "root@head"]` from elsewhere (then the command
is quoted for the remote shell). Permits are files in one folder of the head node, which Slurm's ResumeProgram
reads; there the folder is called `leases`.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from ironburst.adapters import slurm_json
from ironburst.ports import Claim, Observation, SchedulerError, SchedulerMissing, WrongShape
from ironburst.service import Occupancy

SPOOL = "/var/spool/ironburst"
# FILE OWNER STALE_S SAID: says the age and the text of the claim that is there, then makes it OWNER's if that may be.
# The file is replaced whole, under a lock. One from the future (the clock was put back) begins to age now; on a full
# disk an own claim is at least kept fresh.
_CLAIM = """
umask 022; exec 9>"$1.lock" && flock -w 10 9 || exit 75
age=0; owner=; said=
if [ -s "$1" ]; then
  read -r owner said <"$1"; age=$(($(date +%s) - $(stat -c %Y "$1")))
  [ "$age" -ge 0 ] || { touch "$1"; age=0; }
fi
if [ -n "$2" ] && { [ -z "$owner" ] || [ "$owner" = "$2" ] || [ "$age" -gt "$3" ]; }; then
  { printf '%s %s\\n' "$2" "${4:-$said}" >"$1.new" && mv "$1.new" "$1"; } ||
    { [ "$owner" = "$2" ] && touch "$1"; } || exit 74
fi
printf '%s %s %s\\n' "$age" "$owner" "$said"
"""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Slurm:
    """A Scheduler (ironburst.ports)."""

    def __init__(self, prefix: Sequence[str] = (), *, spool: str = SPOOL, timeout_s: float = 60.0):
        self._prefix, self._spool, self._timeout_s = list(prefix), spool, timeout_s

    # ---- reading
    def observe(self) -> Observation:
        """The queue, all nodes, and the permits."""
        # squeue also in states that still hold nodes;
        # nodes last: one that a just-ended job left is then seen idle, not vanished
        jobs = slurm_json.jobs(self._json("squeue", "--json"))
        nodes = slurm_json.nodes(self._json("scontrol", "show", "node", "--all", "--json"))
        permits = self._call(
            "find", f"{self._spool}/leases", "-mindepth", "1", "-maxdepth", "1", "-printf", "%f\\n"
        ).split()
        return Observation(tuple(jobs), tuple(nodes), frozenset(permits))

    def occupancy(self) -> dict[str, Occupancy]:
        """The nodes and the jobs on them (NodeService).
        Jobs first: one that starts in between shows in its node's state.
        """
        jobs = self._json("squeue", "--json")
        return slurm_json.occupancy(jobs, self._json("scontrol", "show", "node", "--all", "--json"))

    def calls(self) -> list[str]:
        """What Slurm asked of its ResumeProgram and SuspendProgram, oldest first: `TIME resume|suspend NODE ANSWER`."""
        return self._call(
            "find", self._spool, "-maxdepth", "1", "-name", "calls", "-exec", "cat", "{}", ";"
        ).splitlines()

    # ---- acting
    def claim(self, owner: str, said: str, stale_s: float) -> Claim:
        """As the file `controller` in the spool, one line: its owner and what that says; its age is the file's."""
        file, stale = f"{self._spool}/controller", str(math.floor(stale_s))
        words = ("sh", "-c", _CLAIM, "sh", file, owner and _checked(owner), stale, " ".join(said.split()))
        try:
            answer = self._call(*words)
        except SchedulerError as error:  # without the program's text
            raise type(error)(f"{file} on the head can't be claimed: {str(error).rpartition('` ')[2]}") from None
        age, _, before = answer.rstrip("\n").partition(" ")
        holder, _, told = before.partition(" ")
        if not age.isdigit():
            raise WrongShape(f"the claim in {file} can't be read: {answer[:80]!r}")
        return Claim(holder, float(age), told)

    def put_permit(self, nodes: Sequence[str]) -> None:
        """As empty files that ResumeProgram looks for."""
        self._call("touch", "--", *self._permit_files(nodes))

    def remove_permit(self, nodes: Sequence[str]) -> None:
        """Also of nodes that have none."""
        self._call("rm", "-f", "--", *self._permit_files(nodes))

    def power_up(self, nodes: Sequence[str]) -> None:
        """`state=power_up`: asks for it; handled within Slurm's power_save_interval."""
        self._update_nodes(nodes, "power_up")

    def resume(self, nodes: Sequence[str]) -> None:
        """`state=resume`: clears DRAIN and DOWN."""
        self._update_nodes(nodes, "resume")

    def drain(self, nodes: Sequence[str], reason: str) -> None:
        """`state=drain`."""
        self._update_nodes(nodes, "drain", reason)

    def release(self, nodes: Sequence[str]) -> None:
        """`state=power_down_asap`: drains, then powers down when the jobs have ended."""
        self._update_nodes(nodes, "power_down_asap", "release")

    def abandon(self, nodes: Sequence[str], reason: str) -> None:
        """`state=power_down_force`: cancels or requeues what runs there."""
        self._update_nodes(nodes, "power_down_force", reason)

    def heal(self, nodes: Sequence[str]) -> None:
        """Clears DOWN, and drains at once again."""
        self._update_nodes(nodes, "resume")
        self._update_nodes(nodes, "drain", "no lease")

    def place(self, job: int, partitions: Sequence[str], excluded: Sequence[str], *, begin_now: bool = False) -> None:
        """One update of a pending job."""
        partition, nodes = ",".join(map(_checked, partitions)), ",".join(map(_checked, excluded))
        begin = ["starttime=now"] if begin_now else []
        self._call("scontrol", "update", f"jobid={int(job)}", f"partition={partition}", f"excnodelist={nodes}", *begin)

    def requeue(self, job: int) -> None:
        """`scontrol requeue`."""
        self._call("scontrol", "requeue", str(int(job)))

    def beat(self, nodes: Mapping[str, int], at_s: float) -> None:
        """In the nodes' comment: one `scontrol` for all, with one update for those that have as long."""
        groups: dict[int, list[str]] = {}
        for node, left_s in nodes.items():
            groups.setdefault(int(left_s), []).append(_checked(node))
        updates = [
            f"update nodename={','.join(names)} comment=ironburst,at={int(at_s)},left={left_s}\n"
            for left_s, names in groups.items()
        ]
        if updates:
            self._call("scontrol", stdin="".join(updates))

    # ---- commands
    def _update_nodes(self, nodes: Sequence[str], state: str, reason: str = "") -> None:
        names = ",".join(map(_checked, nodes))
        if names:
            self._call(
                "scontrol", "update", f"nodename={names}", f"state={state}", *([f"reason={reason}"] if reason else [])
            )

    def _permit_files(self, nodes: Sequence[str]) -> list[str]:
        return [f"{self._spool}/leases/{_checked(node)}" for node in nodes]

    def _json(self, *command: str) -> Any:
        text = self._call(*command)
        try:
            return json.loads(text)
        except ValueError as error:
            raise WrongShape(
                f"`{shlex.join(command)}` answered something other than JSON ({error}): {text[:80]!r}"
            ) from None

    def _call(self, *command: str, stdin: str = "") -> str:
        argv = [*self._prefix, shlex.join(command)] if self._remote else [*self._prefix, *command]
        try:
            done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=self._timeout_s)
        except FileNotFoundError:
            hint = "run on the head node, or give --slurm-prefix 'ssh root@HEAD'"
            raise SchedulerError(f"there is no command {argv[0]!r} here: {hint}") from None
        except subprocess.TimeoutExpired:
            raise SchedulerError(f"`{shlex.join(command)}` gave no answer in {self._timeout_s:g} s") from None
        if done.returncode == 127:
            raise SchedulerMissing(f"there is no command {command[0]!r} on the machine that was asked")
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip()).splitlines()
            raise SchedulerError(
                f"`{shlex.join(command)}` failed with exit code {done.returncode}: {said[-1] if said else 'no message'}"
            )
        return done.stdout

    @property
    def _remote(self) -> bool:
        """ssh hands one string to a shell over there. It may stand behind others (nsenter ... ssh ...)."""
        return any(word.rsplit("/", 1)[-1] == "ssh" for word in self._prefix)


def _checked(name: str) -> str:
    """A node or partition name as Slurm's own syntax allows;
    anything else could be read as options or several names.
    """
    if not _NAME.fullmatch(name):
        raise SchedulerError(f"{name!r} is no name of a node or partition")
    return name
