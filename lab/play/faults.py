"""What can go wrong in a kept lab, on purpose. What is wrong now is read from where it is: nothing is written down."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab import names
from lab.bmc import faults as bmc
from lab.hosts import cabling, hardware
from lab.hosts.host import Host
from lab.play.kept_lab import BadInput, KeptLab

EC2_CALLS = ("RunInstances", "DescribeInstances", "DescribeInstanceStatus", "TerminateInstances")
TOO_MANY = {"code": "RequestLimitExceeded", "status": 503, "message": "Request limit exceeded."}
GPU_FILE = "/etc/lab-gpu.json"  # of the nvidia-smi stub
BAD_GPU = {"gpus": {"0": {"ecc.errors.uncorrected.volatile.total": "5"}}}
TERMINATE = "import boto3, sys; boto3.client('ec2').terminate_instances(InstanceIds=sys.argv[1:])"
MARKETS = ("spot", "on-demand")


@dataclass(frozen=True)
class Given:
    """The words behind the kind, and the options of the command line."""

    words: list[str]
    market: str | None = None
    notice_s: float = 30


def _one(given: Given, what: str) -> str:
    if len(given.words) != 1:
        raise BadInput(f"this fault wants {what}, and nothing else; `ironburst lab fault` lists them all")
    return given.words[0]


# --- the cloud ----------------------------------------------------------------------------------------------------


def no_capacity(lab: KeptLab, given: Given) -> str:
    """No zone, one zone or no zone of a pool sells any more; what runs goes on."""
    pools = lab.document().pools
    zones = sorted({zone for pool in pools for zone in pool.zone_names})
    where = _one(given, "a zone or a pool") if given.words else None
    chosen = [pool for pool in pools if where in (None, pool.name, *pool.zone_names)]
    if not chosen:
        there = f"zones {', '.join(zones)}, pools {', '.join(pool.name for pool in pools)}"
        raise BadInput(f"there is neither a zone nor a pool {where!r}; there are {there}")
    markets = (given.market,) if given.market else MARKETS
    for pool in chosen:
        types = [pool.instance_type, *(other.instance_type for other in pool.other_types)]
        for zone in [where] if where in zones else pool.zone_names:
            for kind in types:
                for market in markets:
                    none = {"instance_type": kind, "zone": zone, "market": market, "count": 0}
                    lab.control("POST", "/lab/capacity", **none)
    return f"no capacity ({', '.join(markets)}) in {where or 'any zone'}"


def spot_notice(lab: KeptLab, given: Given) -> str:
    view = lab.instance(_one(given, "a rented spot node"))
    lab.control("POST", "/lab/interrupt", instance_id=view["instance_id"], notice_s=given.notice_s)
    return f"AWS takes {view['node']} ({view['instance_id']}) back in {given.notice_s:g} s"


def terminate(lab: KeptLab, given: Given) -> str:
    view = lab.instance(_one(given, "an instance"))
    lab.inside.run([sys.executable, "-c", TERMINATE, view["instance_id"]])
    return f"{view['node']} ({view['instance_id']}) is terminated, and nobody told the controller"


def throttle(lab: KeptLab, given: Given) -> str:
    _none(given)
    for action in EC2_CALLS:
        lab.control("POST", "/lab/faults", action=action, times=-1, **TOO_MANY)
    return f"EC2 answers RequestLimitExceeded to {', '.join(EC2_CALLS)}"


def api_down(lab: KeptLab, given: Given) -> str:
    _none(given)
    lab.control("POST", "/lab/faults", action="*", times=-1, drop=True)
    return "every call of AWS breaks off without an answer"


def _none(given: Given) -> None:
    if given.words:
        raise BadInput(f"this fault takes no words, not {' '.join(given.words)!r}")


# --- hosts --------------------------------------------------------------------------------------------------------


def bmc_hangs(lab: KeptLab, given: Given) -> str:
    name = _one(given, "a host of the hall")
    lab.hall_host(name)
    bmc.write_fault(_bmc_file(lab), name, bmc.Fault(answer="silent"))
    return f"the BMC of {name} takes requests and never answers"


def link_down(lab: KeptLab, given: Given) -> str:
    name = _one(given, "a node of the hall")
    cabling.link_down(lab.node("head"), lab.hall_host(name))
    return f"the InfiniBand cable of {name} (mlx5_0) is unplugged"


def gpu_falls(lab: KeptLab, given: Given) -> str:
    name = _one(given, "a node with GPUs")
    host = lab.node(name)
    if not _gpus(host):
        raise BadInput(f"{name} has no GPU that could fall off its bus")
    return f"GPU {hardware.remove_gpu(host.hardware_dir)} of {name} fell off the bus"


def gpu_errors(lab: KeptLab, given: Given) -> str:
    name = _one(given, "a node with GPUs")
    host = lab.node(name)
    if not _gpus(host):
        raise BadInput(f"{name} has no GPU that could have errors")
    host.ssh(f"cat > {GPU_FILE}", stdin=json.dumps(BAD_GPU) + "\n")
    return f"GPU 0 of {name} counts 5 uncorrected ECC errors"


def power_cut(lab: KeptLab, given: Given) -> str:
    name = _one(given, "a host")
    lab.node(name).off()
    return f"{name} has no power any more"


def _bmc_file(lab: KeptLab) -> Path:
    return lab.site.dir / "bmc" / "faults.json"


def _gpus(host: Host) -> int:
    return len(hardware.gpus_on_the_bus(host.hardware_dir))


@dataclass(frozen=True)
class Kind:
    """One fault: what it wants to know, and what it does to whom."""

    wants: str
    does: str
    inject: Callable[[KeptLab, Given], str]


KINDS = {
    "no-capacity": Kind(
        "[ZONE|POOL] [--market M]", "the cloud sells nothing there: the controller asks elsewhere, later", no_capacity
    ),
    "spot-notice": Kind("NODE [--notice S]", "AWS takes a spot node back: its jobs are requeued", spot_notice),
    "terminate": Kind("NODE", "an instance is gone, as if somebody ended it in the console", terminate),
    "throttle": Kind("", "EC2 refuses calls: too many; the controller waits, and asks again", throttle),
    "api-down": Kind("", "AWS doesn't answer at all: nothing is rented or given back meanwhile", api_down),
    "bmc-hangs": Kind("HOST", "its BMC takes requests and never answers: who asks it gives up, or hangs", bmc_hangs),
    "link-down": Kind("NODE", "its InfiniBand port is down: the gate drains it", link_down),
    "gpu-falls": Kind("NODE", "one GPU less on the bus: the gate drains it", gpu_falls),
    "gpu-errors": Kind("NODE", "a GPU counts uncorrected ECC errors: the gate drains it", gpu_errors),
    "power-cut": Kind("HOST", "no power: Slurm finds it down, and requeues its jobs", power_cut),
}


def inject(lab: KeptLab, kind: str, given: Given) -> str:
    """Let it happen; what happened. BadInput for an unknown kind, and for what the fault can't be done to."""
    if kind not in KINDS:
        raise BadInput(f"no fault is called {kind!r}; there are {', '.join(KINDS)}")
    return KINDS[kind].inject(lab, given)


# --- what is wrong now, and the end of it -------------------------------------------------------------------------


def active(lab: KeptLab) -> list[str]:
    """What is wrong now, a line each. What was taken back or ended doesn't come back, so it isn't here."""
    sold_out = [
        f"no-capacity: {row['market']} {row['instance_type']} in {row['zone']}"
        for row in lab.control("GET", "/lab/capacity")
        if row["count"] == 0
    ]
    calls = [
        f"{'api-down' if fault['drop'] else 'throttle'}: {fault['action']}, met {fault['hits']} times"
        for fault in lab.control("GET", "/lab/faults")
        if fault["times"]
    ]
    bmcs = [f"bmc-hangs: {name}" for name, fault in bmc.read_faults(_bmc_file(lab)).items() if fault.answer]
    nodes = [line for name, host in lab.nodes().items() for line in _of_host(name, host)]
    return sold_out + calls + bmcs + nodes


def _of_host(name: str, host: Host) -> list[str]:
    if host.state() == "off":
        return [f"power-cut: {name}"]
    fell = hardware.gpus_of(host.spec.hardware) - hardware.gpus_on_the_bus(host.hardware_dir)
    down = hardware.links_down(host.hardware_dir)
    out = [f"gpu-falls: {address} of {name}" for address in sorted(fell)]
    out += [f"link-down: {device} of {name}" for device in down]
    if _gpus(host) and host.ssh(f"test -e {GPU_FILE}", check=False).returncode == 0:
        out.append(f"gpu-errors: {name}")
    return out


def clear(lab: KeptLab) -> list[str]:
    """End all that can be ended; what was wrong."""
    was = active(lab)
    for row in lab.control("GET", "/lab/capacity"):
        lab.control("POST", "/lab/capacity", **(row | {"count": None}))
    lab.control("DELETE", "/lab/faults")
    _bmc_file(lab).unlink(missing_ok=True)
    for host in lab.nodes().values():
        if host.state() == "off":
            if not names.is_instance(host.name):
                host.start()
            continue
        hardware.repair_gpus(host.hardware_dir, host.spec.hardware)
        if hardware.links_down(host.hardware_dir):
            cabling.link_up(lab.node("head"), host)
        if _gpus(host):
            host.ssh(f"rm -f {GPU_FILE}")
    return was
