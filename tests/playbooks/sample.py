"""The lab's ClusterDocument as the tests of the playbooks use it: from stacks/Pulumi.lab.yaml, with invented cloud
ids.
"""

from __future__ import annotations

from pathlib import Path

from ironburst import document
from ironburst.config import load
from ironburst.document import build
from ironburst.document.aws import AwsPlace
from lab import hall

REPOSITORY = Path(__file__).resolve().parents[2]
LAB_STACK = REPOSITORY / "stacks" / "Pulumi.lab.yaml"
FIXED_ADDRESS = "10.90.0.7"
POOL_ZONES = [
    document.PoolZone(zone=zone, place=AwsPlace(subnet_id=f"subnet-{zone}", launch_template_id=f"lt-{zone}"))
    for zone in ("us-east-1a", "us-east-1b")
]


def lab_document(
    munge_key: str = "env:LAB_MUNGE_KEY",
    names: tuple[str, ...] | None = None,
    driver: str | None = None,
    nodes: int | None = None,
    declare: dict[str, object] | None = None,
) -> document.ClusterDocument:
    """The lab's document. `names`: only these hosts are in it; `driver`: another driver; `nodes`: the head and so many
    nodes; `declare`: more of the stack file.
    """
    config = load.from_value(load.read_value(LAB_STACK) | (declare or {}))
    if driver:
        config = config.model_copy(update={"software": config.software.model_copy(update={"driver": driver})})
    observed = build.Observed(
        instances={"fixed-1": build.CloudInstance(id="i-0123456789abcdef0", address=FIXED_ADDRESS)},
        pool_zones={"p5": POOL_ZONES},
        notices={"p5": "http://10.78.0.1:5000/123456789012/p5"},
    )
    built = build.build(config, observed)
    if nodes is not None:
        built = hall.grown(built, nodes).model_copy(update={"pools": []})
    hosts = [host for host in built.hosts if names is None or host.name in names]
    return built.model_copy(
        update={"hosts": hosts, "scheduler": built.scheduler.model_copy(update={"munge_key": munge_key})}
    )


def publish(path: Path, **changes: object) -> Path:
    """Write lab_document(**changes) to `path`."""
    document.publish(lab_document(**changes), path)
    return path
