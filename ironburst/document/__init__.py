"""The ClusterDocument: what the declaration became. The contract between Pulumi, the inventory and the controller.

The Pulumi program exports it as `cluster` with serial 0; `publish` puts it where the readers look and counts the serial
up. Readers ignore fields that they don't know, refuse versions that they don't know, and keep a last good copy.

- model: the document. Its parts: part (what they share), places with aws, azure and google, bridge, cloud_model,
  control_plane, hall_model, karpenter_model, monitoring, node_model, policy_model, pool_model, slurm_node, user_model
- build: from a declaration, with build_cloud, build_monitoring, build_nodes, build_policy, build_scheduler and
  build_users; of_stack: of a stack file, without a cloud; variables: Ansible's view of it
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ironburst.document.aws import of_before_6
from ironburst.document.bridge import Bridge
from ironburst.document.cloud_model import CloudDocument, DataSet, ImagesDocument, OtherCloud
from ironburst.document.hall_model import HallDocument
from ironburst.document.karpenter_model import KarpenterPool
from ironburst.document.model import (
    ClusterDocument,
    DocumentError,
    Filesystem,
    Host,
    NewerDocument,
    Scheduler,
    Software,
    Ssh,
    SubnetManager,
)
from ironburst.document.node_model import GpuDocument, MigDocument, NodeSoftware, Scratch
from ironburst.document.places import UNKNOWN
from ironburst.document.policy_model import BudgetDocument, Burst, Share, WaitTargetDocument
from ironburst.document.pool_model import PoolDocument, PoolType, PoolZone
from ironburst.document.slurm_node import SecondHead, SlurmMail, SlurmNode
from ironburst.system import files

__all__ = [
    "VERSIONS",
    "Bridge",
    "BudgetDocument",
    "Burst",
    "CloudDocument",
    "ClusterDocument",
    "DataSet",
    "DocumentError",
    "Filesystem",
    "GpuDocument",
    "HallDocument",
    "Host",
    "ImagesDocument",
    "KarpenterPool",
    "MigDocument",
    "NodeSoftware",
    "OtherCloud",
    "PoolDocument",
    "PoolType",
    "PoolZone",
    "Reader",
    "Scheduler",
    "Scratch",
    "SecondHead",
    "Share",
    "SlurmMail",
    "SlurmNode",
    "Software",
    "Ssh",
    "SubnetManager",
    "WaitTargetDocument",
    "has_place",
    "parse",
    "publish",
    "read",
    "removed",
]

VERSIONS = (1, 2, 3, 4, 5, 6)
"""that are read; the last is written"""
PROVIDERS = tuple(UNKNOWN)
"""clouds whose places are known"""


def removed(before: ClusterDocument, after: ClusterDocument) -> list[str]:
    """The pools, zones and nodes of pools that `after` has no more, for people. Pure."""
    gone = []
    for pool in before.pools:
        if (still := after.pool(pool.name)) is None:
            gone.append(f"pool {pool.name}")
            continue
        left = {zone.zone for zone in still.zones}
        gone += [f"zone {zone.zone} of pool {pool.name}" for zone in pool.zones if zone.zone not in left]
        gone += [f"node {node}" for node in pool.nodes if node not in still.nodes]
    return gone


def has_place(document: ClusterDocument, pool: str, node: str, zone: str) -> bool:
    """Whether a node that is rented there is declared. `zone` empty: not known yet. Pure."""
    declared = document.pool(pool)
    return (
        declared is not None and node in declared.nodes and (not zone or zone in {each.zone for each in declared.zones})
    )


# ---- publishing and reading


def parse(data: Any, where: str = "the document") -> ClusterDocument:
    """A ClusterDocument from decoded JSON. Raises DocumentError."""
    if not isinstance(data, dict) or "version" not in data:
        raise DocumentError(
            f"{where} is not a ClusterDocument: it has no version; publish one with `ironburst publish`"
        )
    if data["version"] not in VERSIONS:
        raise NewerDocument(
            f"{where} has version {data['version']!r}; this ironburst reads versions "
            f"{', '.join(map(str, VERSIONS))}: upgrade the reader or publish again"
        )
    if data["version"] < VERSIONS[-1]:
        data = of_before_6(data)
    others = data.get("other_clouds")
    for cloud in (data.get("cloud"), *(others if isinstance(others, list) else ())):
        if isinstance(cloud, dict) and cloud.get("provider") not in PROVIDERS:
            raise NewerDocument(
                f"{where} is of the cloud {cloud.get('provider')!r}; this ironburst knows {', '.join(PROVIDERS)}: "
                "upgrade the reader"
            )
    try:
        return ClusterDocument.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"])
        raise DocumentError(
            f"{where} is damaged at {path}: {first['msg']}; publish it again with `ironburst publish`"
        ) from None


def read(path: Path | str, last_good: Path | None = None) -> ClusterDocument:
    """The document at `path`. With `last_good`, a good one is copied there and used when `path` is gone or damaged.

    Raises DocumentError, also for an unknown version (which is no damage: an old copy would hide it).
    """
    path = Path(path)
    if last_good is None:
        return parse(_load(path), str(path))
    return Reader(path, last_good)()


class Reader:
    """Reads the document again at each call, with a last good copy: in a file, for a process that starts, and in
    memory, for a disk that takes nothing. `stale`: why what was read last may be old, a sentence; empty: it isn't.
    """

    def __init__(self, path: Path | str, last_good: Path):
        self._path, self._last_good, self.stale = Path(path), last_good, ""
        self._last: ClusterDocument | None = None

    def __call__(self) -> ClusterDocument:
        """Raises DocumentError where there is no good copy either, and for an unknown version as long as none was read:
        that is no damage, and an old copy would hide it.
        """
        self.stale = ""
        try:
            document = parse(_load(self._path), str(self._path))
        except DocumentError as error:
            document = self._good(error)
            self.stale = f"what was declared last can't be read, serial {document.serial} counts on: {error}"
        else:
            self._keep(document)
        self._last = document
        return document

    def _good(self, error: DocumentError) -> ClusterDocument:
        if self._last:
            return self._last
        if isinstance(error, NewerDocument) or not self._last_good.exists():
            raise error
        return parse(_load(self._last_good), str(self._last_good))

    def _keep(self, document: ClusterDocument) -> None:
        before = self._last
        try:
            before = before or (parse(_load(self._last_good)) if self._last_good.exists() else None)
            if document != before:
                _write(self._last_good, document.model_dump(mode="json"))
        except DocumentError as error:  # it is only needed on a worse day
            self.stale = f"no good copy is kept: {error}"
        if before and before.cluster == document.cluster and document.serial < before.serial:
            self.stale = f"{self._path} has serial {document.serial}, older than {before.serial} that was read before"


@contextmanager
def one_publishes(path: Path) -> Iterator[None]:
    """Who else publishes into this folder waits: what is looked at is what is replaced. Raises DocumentError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise DocumentError(
            f"{path} can't be written ({error.strerror}): give a place that may be written to"
        ) from None
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def publish(document: ClusterDocument, path: Path) -> ClusterDocument:
    """Write `document` to `path`, atomically, with the next serial if it differs
    from what is there. Raises DocumentError.
    """
    serial = 1
    if path.exists():
        before = parse(_load(path), str(path))
        if before.cluster != document.cluster:
            raise DocumentError(
                f"{path} is the document of cluster {before.cluster!r}, not of {document.cluster!r}: "
                "publish to another path"
            )
        # a commit that changes nothing here is no new declaration
        origin = {"serial": 0, "commit": "", "committed_s": None}
        same = before.model_copy(update=origin) == document.model_copy(update=origin)
        serial = before.serial if same else before.serial + 1
    published = document.model_copy(update={"serial": serial})
    _write(path, published.model_dump(mode="json"))
    return published


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise DocumentError(
            f"there is no ClusterDocument at {path}: run `pulumi up`, then `ironburst publish --to {path}`"
        ) from None
    except (OSError, ValueError) as error:
        raise DocumentError(
            f"{path} can't be read as JSON ({error}); publish it again with `ironburst publish`"
        ) from None


def _write(path: Path, data: Any) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # CI writes it, others read it; it holds no secret, only their names
        files.write(path, json.dumps(data, indent=1) + "\n", 0o644)
    except OSError as error:
        raise DocumentError(
            f"{path} can't be written ({error.strerror}): give a place that may be written to"
        ) from None
