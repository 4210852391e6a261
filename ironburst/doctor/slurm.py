"""Has a Slurm that isn't managed all that `ironburst slurm snippet` prints? Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple, Protocol

from ironburst import slurm_programs
from ironburst.config import spot_notice
from ironburst.doctor import topology
from ironburst.doctor.checks import CheckResult, answered
from ironburst.document import ClusterDocument, PoolDocument
from ironburst.nodes import naming
from ironburst.slurm_programs import snippet
from ironburst.software import slurm_upgrade

USER = "ironburst"
SPOOLS = {"/var/spool/ironburst": "775", "/var/spool/ironburst/leases": "755"}
JOIN = "join the lines of `ironburst slurm snippet` to slurm.conf and gres.conf, and restart slurmctld"
INSTALL = "run the install.sh of `ironburst slurm snippet STACK --folder FOLDER` on the head"


_AT_LEAST = ("ResumeTimeout", "SuspendTimeout")


@dataclass(frozen=True)
class Held:
    """A file or folder on the head: whose, its mode in octal, and a file's SHA-256."""

    owner: str
    mode: str
    sha256: str = ""


class SlurmHead(Protocol):
    """The head with slurmctld. Every question raises Unasked where it gets no answer."""

    def config(self) -> Mapping[str, str]:
        """`scontrol show config`, {key: value}."""

    def nodes(self) -> Mapping[str, Mapping[str, str]]:
        """`scontrol show node`, {name: {key: value}}."""

    def admin_level(self, user: str) -> str:
        """Of a user in the accounting database; empty: not there."""

    def held(self, paths: Sequence[str]) -> Mapping[str, Held]:
        """Those of these that are there, by path."""

    def addresses(self, names: Sequence[str]) -> Mapping[str, str]:
        """What its /etc/hosts says of these names."""


class UnmanagedSlurm(NamedTuple):
    """What is declared, and the head that somebody else manages."""

    cluster: ClusterDocument
    head: SlurmHead


def check(slurm: UnmanagedSlurm) -> Iterator[CheckResult]:
    """Each question is asked, whichever has no answer."""
    cluster, head = slurm
    yield from answered("slurm.conf", "settings", _settings(cluster, head))
    yield from answered("nodes", "nodes that may be rented", _nodes(cluster, head))
    yield from answered("names", "nodes that may be rented", _names(cluster, head))
    yield from answered("programs", "the head", _programs(cluster, head))
    yield from answered("topology", "the head", _topology(cluster, head))
    yield from answered("rights", USER, _rights(head))


def _settings(cluster: ClusterDocument, head: SlurmHead) -> Iterator[CheckResult]:
    config = head.config()
    for line in snippet.slurm_conf(cluster):
        key, _, wanted = line.partition("=")
        if line.startswith(("#", "NodeName", "PartitionName")):
            continue
        seen = config.get(key, "")
        if key in ("SlurmctldParameters", "GresTypes"):
            missing = [each for each in wanted.split(",") if each not in seen.split(",")]
        elif key in _AT_LEAST and seen.split()[:1] and seen.split()[0].isdigit():
            missing = [] if int(seen.split()[0]) >= int(wanted) else [f"the {wanted} that its pools need"]
        else:
            missing = [] if seen.split()[:1] == [wanted] else [wanted]
        if missing:
            yield CheckResult("slurm.conf", key, "fail", f"is {seen or 'not set'}, without {','.join(missing)}", JOIN)
        else:
            yield CheckResult("slurm.conf", key, "ok", seen)
    yield _release(cluster, config.get("SLURM_VERSION", ""))
    yield _mpi(config.get("MpiDefault", ""))
    if notice_s := spot_notice.shortest_s(
        pool.provider for pool in snippet.its_pools(cluster) if "spot" in pool.markets
    ):
        yield _kill_wait(cluster.burst.tick_s, notice_s, config.get("KillWait", ""))


def _mpi(default: str) -> CheckResult:
    """With `none`, `srun` of an MPI program starts as many programs of one process, and each ends well."""
    if default in ("", "none", "(null)"):
        seen = f"is {default or 'not set'}: `srun` of an MPI program runs N programs of one process, without an error"
        todo = "write MpiDefault=pmix where `srun --mpi=list` shows pmix on the head and all nodes"
        return CheckResult("slurm.conf", "MpiDefault", "warn", seen, todo)
    return CheckResult("slurm.conf", "MpiDefault", "ok", default)


def _kill_wait(tick_s: int, notice_s: int, said: str) -> CheckResult:
    """What a job has to save in, when a cloud takes its node back."""
    number = said.split()[0] if said else ""
    if not number.isdigit():
        return CheckResult("slurm.conf", "KillWait", "unknown", said or "not set", "look at `scontrol show config`")
    given_s, most_s = int(number), spot_notice.most_s(tick_s, notice_s)
    wanted_s = spot_notice.kill_wait_s(tick_s, notice_s)
    if given_s < wanted_s:
        seen = f"is {given_s} s: so long a job of a spot node may save, of the {notice_s} s of notice"
    elif given_s > most_s:
        seen = f"is {given_s} s, longer than the cloud's notice of {notice_s} s leaves: it ends before"
    else:
        return CheckResult("slurm.conf", "KillWait", "ok", said)
    return CheckResult("slurm.conf", "KillWait", "warn", seen, f"write KillWait={wanted_s}, and `scontrol reconfigure`")


def _release(cluster: ClusterDocument, version: str) -> CheckResult:
    """slurmctld takes a slurmd of its own release and of those that it reads, and none that is newer."""
    runs, wanted = ".".join(version.split(".")[:2]), cluster.software.slurm or ""
    seen = f"slurmctld is {version or 'of an unknown release'}, rented nodes get {wanted}"
    if runs not in slurm_upgrade.RELEASES:
        return CheckResult(
            "slurm.conf", "release", "unknown", seen, "look whether it takes this slurmd (`scontrol version`)"
        )
    if wanted in (takes := (*slurm_upgrade.reads(runs), runs)):
        return CheckResult("slurm.conf", "release", "ok", seen)
    todo = f"declare software.slurm as one of {', '.join(takes)}, then lock, publish and bake again"
    return CheckResult("slurm.conf", "release", "fail", seen, todo)


def _nodes(cluster: ClusterDocument, head: SlurmHead) -> Iterator[CheckResult]:
    known = head.nodes()
    for pool in snippet.its_pools(cluster):
        wrong = {name: said for name in pool.nodes if (said := _wrong(pool, known.get(name)))}
        if wrong:
            name, said = next(iter(wrong.items()))
            more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            yield CheckResult("nodes", f"pool {pool.name}", "fail", f"{name} {said}{more}", JOIN)
        else:
            yield CheckResult("nodes", f"pool {pool.name}", "ok", f"{len(pool.nodes)} in partition {pool.partition}")


def _wrong(pool: PoolDocument, node: Mapping[str, str] | None) -> str:
    """What of a node isn't as it is declared; empty: nothing."""
    if node is None:
        return "isn't there"
    gres = f"gpu:{naming.gpu_type(pool.gpu.model)}:{pool.gpu.count}"
    wanted = {"CPUTot": str(pool.slurm.cpus), "RealMemory": str(pool.slurm.memory_mb), "Gres": gres}
    for key, value in wanted.items():
        if node.get(key, "").partition("(")[0] != value:
            return f"has {key}={node.get(key, '')}, declared is {value}"
    if "CLOUD" not in node.get("State", "").split("+"):
        return f"is in state {node.get('State', '')}, not CLOUD"
    if pool.partition not in node.get("Partitions", "").split(","):
        return f"isn't in partition {pool.partition}"
    return ""


def _names(cluster: ClusterDocument, head: SlurmHead) -> Iterator[CheckResult]:
    names = [node for pool in snippet.its_pools(cluster) for node in pool.nodes]
    seen = head.addresses(names)
    if missing := [name for name in names if name not in seen]:
        said = f"/etc/hosts doesn't know {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
        yield CheckResult("names", "/etc/hosts", "warn", f"{said}: slurmctld waits for a resolver", INSTALL)
    else:
        yield CheckResult("names", "/etc/hosts", "ok", f"{len(names)} names")


def _programs(cluster: ClusterDocument, head: SlurmHead) -> Iterator[CheckResult]:
    texts = snippet.parts(cluster)
    wanted = {f"{snippet.FOLDER}/{name}": name for name in slurm_programs.NAMES}
    wanted |= {f"{snippet.FOLDER}/ironburst-resume-fail": "ironburst-suspend"}
    unit = f"/etc/systemd/system/{slurm_programs.UNIT}"
    held = head.held([*wanted, unit, *SPOOLS])
    for path, name in wanted.items():
        there = held.get(path)
        if there is None:
            yield CheckResult("programs", path, "fail", "isn't there", INSTALL)
        elif there.sha256 != hashlib.sha256(texts[name].encode()).hexdigest():
            yield CheckResult("programs", path, "fail", "is another one than this version's", INSTALL)
        elif not int(there.mode, 8) & 0o111:
            yield CheckResult("programs", path, "fail", f"can't be run (mode {there.mode})", INSTALL)
        else:
            yield CheckResult("programs", path, "ok", "is this version's")
    for path, mode in SPOOLS.items():
        there = held.get(path)
        seen = f"{there.owner}, mode {there.mode}" if there else "isn't there"
        if there is None or (there.owner, there.mode) != (USER, mode):
            yield CheckResult("programs", path, "fail", seen, INSTALL)
        else:
            yield CheckResult("programs", path, "ok", seen)
    if unit in held:
        yield CheckResult("programs", unit, "ok", "is there")
    else:
        yield CheckResult("programs", unit, "warn", "isn't there", f"{INSTALL}, or run the controller by another unit")


def _topology(cluster: ClusterDocument, head: SlurmHead) -> Iterator[CheckResult]:
    """Its administrator's, who may have taken the halls' as it is."""
    if not cluster.topology:
        return
    folder = str(PurePosixPath(head.config().get("SLURM_CONF") or f"{topology.FOLDER}/slurm.conf").parent)
    sums = {path: there.sha256 for path, there in head.held(topology.paths(folder)).items()}
    yield from topology.compared(cluster.topology, sums, "it is its administrator's to change", folder)


def _rights(head: SlurmHead) -> Iterator[CheckResult]:
    level = head.admin_level(USER)
    if level == "Administrator":
        yield CheckResult("rights", USER, "ok", "is an administrator of Slurm")
    else:
        seen = f"has AdminLevel {level}" if level else "isn't known to the accounting database"
        todo = f"{INSTALL}; changing nodes needs AdminLevel=Administrator"
        yield CheckResult("rights", USER, "fail", seen, todo)
