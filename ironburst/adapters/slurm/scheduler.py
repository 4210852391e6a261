"""The Slurm side of the controller: `squeue` and `scontrol` through a command prefix.

The prefix is a list: [] on the head node, `["ssh", ..., "root@head"]` from elsewhere (then the command
is quoted for the remote shell). Permits are files in one folder of the head node, which Slurm's ResumeProgram
reads; there the folder is called `leases`.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm import arrays as slurm_arrays
from ironburst.adapters.slurm import asked as slurm_asked
from ironburst.adapters.slurm import bridge as slurm_bridge
from ironburst.adapters.slurm import comments as slurm_comments
from ironburst.adapters.slurm import defaults as slurm_defaults
from ironburst.adapters.slurm import fields as slurm_fields
from ironburst.adapters.slurm import occupancy as slurm_occupancy
from ironburst.adapters.slurm.answers import Read
from ironburst.adapters.slurm.narrow import AGAIN, MANY, WIDE, Narrow
from ironburst.adapters.slurm.rows import Rows
from ironburst.adapters.slurm.stream import Streamed, TooMuch
from ironburst.nodes import naming
from ironburst.ports import Claim, Observation, Quota, SchedulerError, SchedulerMissing, TeamShare, WrongShape
from ironburst.ports.service import Occupancy
from ironburst.shares import slurm as shared
from ironburst.system.kept import Kept

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
# `Requested operation is presently disabled for job 7`, or for a task `100_3: Job is pending execution`
_REFUSED_JOB = re.compile(r" for job (?P<job>[0-9_]+)\s*$|^(?:\S*: )?(?P<task>[0-9_]+): ")
_SIGNS = (
    "pgrep -x slurmctld; ls -d /opt/slurm*/bin/squeue /opt/slurm/*/bin/squeue /usr/local/bin/squeue "
    "/usr/local/slurm*/bin/squeue /usr/local/slurm/*/bin/squeue /cm/shared/apps/slurm/*/bin/squeue 2>/dev/null"
)
_FILTERS = ("SQUEUE_", "SLURM_CLUSTERS")  # a person's own: less of the queue, or another cluster's
Run = Callable[..., subprocess.CompletedProcess[bytes]]
_NAMED = 2000  # jobs that squeue is asked for by name; of more all are
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class _Silent(SchedulerError):
    """It said nothing in time."""


class Slurm:
    """A Scheduler (ironburst.ports)."""

    _narrows = True

    def __init__(
        self,
        prefix: Sequence[str] = (),
        *,
        spool: str = SPOOL,
        timeout_s: float = 60.0,
        first: str = "",
        cluster: str = "",
        jobs: int = 0,
    ):
        """`first`: what the prefix reads of stdin before the command does; `cluster`: the ClusterName whose occupancy
        is asked for, empty: any; `jobs`: how many are in the queue, as far as it is known.
        """
        self._prefix, self._spool, self._timeout_s, self._first = list(prefix), spool, timeout_s, first
        self._cluster = cluster
        self._rows = {"squeue": Rows("jobs", slurm_fields.job), "scontrol": Rows("nodes", slurm_fields.node)}
        self._job, self._node = Kept(slurm_json.job), Kept(slurm_json.node)
        self._defaults = Kept(slurm_defaults.of_row)
        self._narrow, self._narrow_in = Narrow(), int(jobs < MANY)  # looks that read a large answer, but the last one

    @property
    def rows_read(self) -> int:
        """Rows of jobs and nodes that were read since the start: those that were printed as before weren't."""
        return self._narrow.made + sum(rows.made for rows in self._rows.values())

    # ---- reading
    def observe(self) -> Observation:
        """The queue, all nodes, and the permits."""
        # squeue also in states that still hold nodes;
        # nodes last: one that a just-ended job left is then seen idle, not vanished
        queue = self._queue()
        nodes = slurm_json.read_nodes(self._json("scontrol", "show", "node", "--all", "--json"), self._node)
        asked, unread = self._with_exclusive(queue)
        jobs = self._read_jobs(slurm_defaults.applied(asked, nodes.items, self._defaults))
        for kept in (self._job, self._node, self._defaults):
            kept.look()
        permits = self._call(
            "find", f"{self._spool}/leases", "-mindepth", "1", "-maxdepth", "1", "-printf", "%f\\n"
        ).split()
        unreadable = (*jobs.unreadable, *nodes.unreadable, *unread)
        comments, together = slurm_comments.comments(queue)
        return Observation(
            tuple(jobs.items),
            tuple(nodes.items),
            frozenset(permits),
            unreadable,
            slurm_json.shares(queue),
            comments=comments,
            together=together,
            numbers=slurm_arrays.numbers(queue),
        )

    def _queue(self) -> Any:
        """As `squeue --json` says it. Where that is a lot, it is asked for what is read alone (Narrow)."""
        if self._narrows and self._narrow_in == 0:
            self._rows["squeue"].forget()
            streamed = Streamed(lambda text: self._narrow.read(text, self._rows_of))
            done = self._run(*self._narrow.command, run=streamed.run)
            if not done.returncode and not streamed.error:
                return {"jobs": streamed.answer}
            self._narrow_in = AGAIN
        most = WIDE if self._narrows and self._narrow_in == 1 else math.inf
        try:
            queue, size = self._json_and_size("squeue", "--json", most=most)
        except TooMuch:
            self._narrow_in = 0
            return self._queue()
        except _Silent:  # squeue has all of it in memory before its first byte: of a large queue that takes long
            self._narrow_in = int(self._narrow_in > 1)
            raise
        self._narrow_in = max(self._narrow_in - 1, 1) if size >= WIDE else 1
        return queue

    def _rows_of(self, ids: Sequence[int]) -> list[Any]:
        """Of these jobs as far as they are there; maybe of others."""
        which = [] if len(ids) > _NAMED else [f"--jobs={','.join(map(str, ids))}"]
        try:
            answer = self._json("squeue", "--json", *which)
        except SchedulerError as error:
            if "Invalid job id" in str(error):  # squeue says so of one alone
                return []
            raise
        return slurm_json.rows_of(answer, "jobs", "squeue")

    def _with_exclusive(self, queue: Any) -> tuple[Any, list[str]]:
        """The queue, with what it doesn't say of --exclusive; and why that isn't known (ironburst.burst.unstarted finds
        it out then).
        """
        if not slurm_asked.lacks_exclusive(queue):
            return queue, []
        try:
            return slurm_asked.with_exclusive(queue, self._call(*slurm_asked.EXCLUSIVE_COLUMNS)), []
        except SchedulerError as error:
            return queue, [f"which jobs want nodes of their own isn't known: {error}"]

    def _read_jobs(self, queue: Any) -> Read:
        """slurm-bridge's are known, and not rented for: nothing is declared of it."""
        return slurm_bridge.read_jobs(queue, None, self._job)

    def occupancy(self) -> dict[str, Occupancy]:
        """The nodes and the jobs on them (NodeService).
        Jobs first: one that starts in between shows in its node's state.
        """
        try:
            jobs = self._json_at_once("squeue", "--json", "--all")
        except SchedulerMissing as error:
            if self._run("sh", "-c", _SIGNS).stdout.strip():  # it is installed, where this shell doesn't look
                raise SchedulerError(f"{error}'s PATH, and Slurm is there all the same") from None
            raise
        nodes = self._json_at_once("scontrol", "show", "node", "--all", "--json")
        for said in (slurm_occupancy.cluster(jobs), slurm_occupancy.cluster(nodes)) if self._cluster else ():
            if said and said.lower() != self._cluster.lower():
                raise SchedulerError(f"the Slurm that answers is of cluster {said}, declared is {self._cluster}")
        return slurm_occupancy.occupancy(jobs, nodes)

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

    def admit(self) -> Sequence[str]:
        """The munge key is all that a node joins with."""
        return ()

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
        self._update_nodes(nodes, "power_down_asap")

    def abandon(self, nodes: Sequence[str], reason: str) -> None:
        """`state=power_down_force`: cancels or requeues what runs there."""
        self._update_nodes(nodes, "power_down_force", reason)

    def heal(self, nodes: Sequence[str]) -> None:
        """DOWN, which ends jobs that are COMPLETING there at once; then clears it, and drains at once again."""
        self._update_nodes(nodes, "down", "no lease")
        self._update_nodes(nodes, "resume")
        self._update_nodes(nodes, "drain", "no lease")

    def place(self, job: int, partitions: Sequence[str], excluded: Sequence[str], *, begin_now: bool = False) -> None:
        """One update of a pending job."""
        partition, nodes = ",".join(map(_checked, partitions)), ",".join(map(_checked, excluded))
        begin = ["starttime=now"] if begin_now else []
        self._call(
            "scontrol", "update", f"jobid={self._called(job)}", f"partition={partition}", f"excnodelist={nodes}", *begin
        )

    def requeue(self, *jobs: int) -> dict[int, str]:
        """`scontrol requeue Incomplete 1,2_3`: goes on after one that is refused, and says which those were. Without
        that word a job that has just ended, or was cancelled, would run again; with it nothing happens to it, and
        nothing is said.
        """
        if not jobs:
            return {}
        called = {self._called(job): job for job in jobs}
        done = self._run("scontrol", "requeue", "Incomplete", ",".join(called))
        if not done.returncode:
            return {}
        refused = {}
        for line in done.stderr.splitlines():
            if said := _REFUSED_JOB.search(line):
                job = called.get(said["job"] or said["task"])
                if job is not None and not line.rstrip().endswith(": No error"):
                    refused[job] = line.strip()
        if not refused:  # it is about none of them: slurmctld was not reached
            raise self._failed(("scontrol", "requeue", "Incomplete", ",".join(called)), done)
        return refused

    def limit(self, shares: Sequence[TeamShare], now: Mapping[str, Quota], gpus: int) -> None:
        """As GrpTRES of the teams' QOS."""
        del gpus  # the numbers come from them
        qos = shared.shown_qos(self._call(*shared.SHOW_QOS).splitlines())
        if lines := shared.limits(shares, now, qos):  # one that is refused keeps no other
            self._call("sh", "-c", "; ".join([*(f"{shlex.join(line)} || failed=$?" for line in lines), "exit $failed"]))
        if missing := sorted(set(shared.qos_of(shares, now)) - set(qos)):
            raise SchedulerError(f"Slurm has no QOS {', '.join(missing)}: converge the head, which makes them")

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

    def comment(self, said: Mapping[str, str]) -> None:
        """As AdminComment, which `scontrol show job` shows to everyone who sees the job. A job that has gone meanwhile
        is no error.
        """
        lines = [
            shlex.join(["scontrol", "update", f"jobid={job}", f"admincomment={text}"]) for job, text in said.items()
        ]
        if lines:  # one by one: scontrol keeps the quotes of what it reads from stdin
            self._call("sh", "-c", "; ".join([*lines, "true"]))

    def notify(self, job: int, text: str) -> None:
        """`scontrol notify`: to the standard error of a batch script, or of srun and salloc."""
        self._call("scontrol", "notify", self._called(job), text)

    def end_job(self, job: int) -> None:
        """`scancel`: SIGTERM, and KillWait later SIGKILL."""
        self._call("scancel", self._called(job))

    # ---- commands
    def _called(self, job: int) -> str:
        return naming.called(int(job))

    def _update_nodes(self, nodes: Sequence[str], state: str, reason: str = "") -> None:
        names = ",".join(map(_checked, nodes))
        if names:
            self._call(
                "scontrol", "update", f"nodename={names}", f"state={state}", *([f"reason={reason}"] if reason else [])
            )

    def _permit_files(self, nodes: Sequence[str]) -> list[str]:
        return [f"{self._spool}/leases/{_checked(node)}" for node in nodes]

    def _json(self, *command: str) -> Any:
        return self._json_and_size(*command)[0]

    def _json_and_size(self, *command: str, most: float = math.inf) -> tuple[Any, int]:
        """What it answers, read while it does, and how many bytes that were. Raises TooMuch."""
        streamed = Streamed(self._rows[command[0]].read, most)
        began = self._call(*command, run=streamed.run)
        if streamed.error:
            raise _no_json(command, streamed.error, began)
        return streamed.answer, streamed.bytes

    def _json_at_once(self, *command: str) -> Any:
        text = self._call(*command)
        try:
            return self._rows[command[0]].read([text.encode()])
        except ValueError as error:
            raise _no_json(command, error, text) from None

    def show(self, *command: str) -> str:
        """What a command there that changes nothing says. Raises SchedulerError."""
        return self._call(*command)

    def _call(self, *command: str, stdin: str = "", run: Run | None = None) -> str:
        done = self._run(*command, stdin=stdin, run=run)
        if done.returncode:
            raise self._failed(command, done)
        return done.stdout

    def _run(self, *command: str, stdin: str = "", run: Run | None = None) -> subprocess.CompletedProcess[str]:
        argv = [*self._prefix, shlex.join(command)] if self._remote else [*self._prefix, *command]
        try:
            done = (run or subprocess.run)(
                argv,
                input=(self._first + stdin).encode(),
                capture_output=True,
                timeout=self._timeout_s,
                env={key: value for key, value in os.environ.items() if not key.startswith(_FILTERS)},
            )
        except FileNotFoundError:
            hint = "run on the head node, or give --slurm-prefix 'ssh root@HEAD'"
            raise SchedulerError(f"there is no command {argv[0]!r} here: {hint}") from None
        except subprocess.TimeoutExpired:
            raise _Silent(f"`{shlex.join(command)}` gave no answer in {self._timeout_s:g} s") from None
        if done.returncode == 127:
            raise SchedulerMissing(f"there is no command {command[0]!r} on the machine that was asked")
        # users name their jobs as they like, in any encoding
        out, error = (said.decode("utf-8", "replace") for said in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, out, error)

    def _failed(self, command: Sequence[str], done: subprocess.CompletedProcess[str]) -> SchedulerError:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        why = said[-1] if said else "no message"
        return SchedulerError(f"`{shlex.join(command)}` failed with exit code {done.returncode}: {why}")

    @property
    def _remote(self) -> bool:
        """ssh hands one string to a shell over there. It may stand behind others (nsenter ... ssh ...)."""
        return any(word.rsplit("/", 1)[-1] == "ssh" for word in self._prefix)


def _no_json(command: Sequence[str], error: ValueError, text: str) -> WrongShape:
    return WrongShape(f"`{shlex.join(command)}` answered something other than JSON ({error}): {text[:80]!r}")


def _checked(name: str) -> str:
    """A node or partition name as Slurm's own syntax allows;
    anything else could be read as options or several names.
    """
    if not _NAME.fullmatch(name):
        raise SchedulerError(f"{name!r} is no name of a node or partition")
    return name
