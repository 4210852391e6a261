"""What the inventory declares of a GPU node for its gate: the decoded /etc/ironburst/gate.json."""

from typing import Any, Dict, NamedTuple, Optional, Tuple

from .aws import LAYERS as OF_ONE_CLOUD
from .expectation import Expectation
from .findings import Unreadable
from .google import LAYERS as OF_ANOTHER
from .tables import Tables

# link_layer in /sys/class/infiniband/*/ports/*, or the driver of network cards
LAYERS = dict({"infiniband": "InfiniBand"}, **dict(OF_ONE_CLOUD, **OF_ANOTHER))
NUMBER = (int, float)
# name -> type of its JSON value
REQUIRED: Dict[str, type] = {
    "driver": str,
    "gpu_model": str,
    "gpu_count": int,
    "fabric": str,
    "fabric_links": int,
    "mounts": list,
}
OPTIONAL: Dict[str, Any] = {
    "not_applicable": list,
    "fabric_manager": bool,
    "fabric_rate_gb_s": NUMBER,
    "pcie_width": int,
    "mig": bool,
    "accepted_uncorrectable": int,
    "power_limit_w": NUMBER,
    "memory_gib": NUMBER,
    "disks": list,
    "dcgm_level": int,
    "burn_in_dcgm_level": int,
    "nccl_command": list,
    "nccl_threshold": str,
    "rdma_threshold": str,
    "platform": str,
    "baseline_tolerance": float,
}


class Settings(NamedTuple):
    """gate.json. not_applicable: names of checks that this kind of machine cannot answer; fabric_rate_gb_s: Gb/s of
    each link; pcie_width: lanes, 0: all that a GPU has, None: not known; mig: its GPUs may be cut up;
    baseline_tolerance: a share of the baseline.
    """

    driver: str
    gpu_model: str
    gpu_count: int
    fabric: str
    fabric_links: int
    mounts: Tuple[str, ...] = ()
    not_applicable: Tuple[str, ...] = ()
    fabric_manager: bool = False
    fabric_rate_gb_s: Optional[float] = None
    pcie_width: Optional[int] = None
    mig: bool = False
    accepted_uncorrectable: int = 0
    power_limit_w: Optional[float] = None
    memory_gib: Optional[float] = None
    disks: Tuple[str, ...] = ("/",)
    dcgm_level: int = 2
    burn_in_dcgm_level: int = 4
    nccl_command: Tuple[str, ...] = ()
    nccl_threshold: Optional[str] = None
    rdma_threshold: Optional[str] = None
    platform: Optional[str] = None
    baseline_tolerance: float = 0.05


def settings_from(data: Any, checks: Tuple[str, ...]) -> Settings:
    """Settings from the decoded gate.json; `checks`: the names that may be not applicable. Raises Unreadable for
    anything missing, of a wrong type or unknown, and for what would let every node pass.
    """
    if not isinstance(data, dict):
        raise Unreadable("the gate's settings are not a JSON object")
    values = {name: _value(data, name, kind) for name, kind in REQUIRED.items()}
    _refuse_what_any_node_passes(values)
    given = {name: kind for name, kind in OPTIONAL.items() if data.get(name) is not None}
    values.update({name: _value(data, name, kind) for name, kind in given.items()})
    settings = Settings(**values)
    unknown = sorted(set(data) - set(Settings._fields))
    wrong = [name for name in settings.not_applicable if name not in checks]
    if unknown or wrong:
        raise Unreadable(f"the gate's settings name {(unknown + wrong)[0]!r}, which is unknown")
    if not 0 < settings.baseline_tolerance < 0.5:
        raise Unreadable(f"the gate's settings have no usable baseline_tolerance: {settings.baseline_tolerance!r}")
    return settings


def _value(data: Dict[str, Any], name: str, kind: Any) -> Any:
    value = data.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise Unreadable(f"the gate's settings have no usable {name}: {value!r}")
    return tuple(value) if isinstance(value, list) else value


def _refuse_what_any_node_passes(values: Dict[str, Any]) -> None:
    fabric = values["fabric"]
    if values["gpu_count"] < 1 or not values["gpu_model"] or not values["driver"]:
        raise Unreadable("the gate's settings expect no GPU: it is for GPU nodes")
    if fabric not in (*LAYERS, "none"):
        raise Unreadable(f"the gate's settings name an unknown fabric: {fabric!r}")
    if fabric != "none" and values["fabric_links"] < 1:
        raise Unreadable(f"the gate's settings expect {fabric} but no link of it")


def expectation(settings: Settings, tables: Tables) -> Expectation:
    """What the parsers are to hold an output against."""
    return Expectation(
        gpu_model=settings.gpu_model,
        gpus=settings.gpu_count,
        driver=settings.driver,
        pcie_width=settings.pcie_width,
        mig=settings.mig,
        accepted_uncorrectable=settings.accepted_uncorrectable,
        power_limit_w=settings.power_limit_w,
        platform=settings.platform,
        models=tables.models,
        thresholds=tables.thresholds,
    )
