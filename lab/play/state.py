"""What runs in a kept lab, as values and as lines."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from lab.play import faults, prices
from lab.play.kept_lab import KeptLab


def gather(lab: KeptLab) -> dict[str, Any]:
    """As JSON values."""
    document = lab.document()
    hosts = [
        {"name": name, "kind": host.spec.kind, "address": host.spec.address, "state": host.state()}
        for name, host in lab.nodes().items()
    ]
    shown = ("node", "instance_id", "instance_type", "market", "zone", "state", "address")
    controller = lab.node("head").ssh("systemctl is-active ironburst", check=False).stdout.strip()
    return {
        "prefix": lab.site.prefix,
        "up": True,
        "up_s": round(time.time() - (lab.site.dir / "box.pid").stat().st_mtime),
        "engine": lab.engine,
        "document_serial": document.serial,
        "controller": controller or "unknown",
        "hosts": hosts,
        "instances": [{key: view[key] for key in shown} for view in lab.instances()],
        "prices": [asdict(price) for price in prices.prices(document)],
        "faults": faults.active(lab),
        "log": str(lab.site.dir / "log"),
    }


def lines(said: dict[str, Any]) -> list[str]:
    """What `gather` gathered, for people."""
    hours, minutes = divmod(said["up_s"] // 60, 60)
    since = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    controller = f"controller {said['controller']}, document serial {said['document_serial']}"
    out = [f"lab {said['prefix']}: up for {since}; {controller}; engine: {said['engine']}", "hosts"]
    by_node = {view["node"]: view for view in said["instances"]}
    for host in said["hosts"]:
        view = by_node.pop(host["name"], None)
        what = f"{view['instance_type']} {view['market']} {view['zone']} {view['instance_id']}" if view else "hall"
        out.append(f"  {host['name']:10} {host['state']:4} {host['address']:14} {what}")
    for view in by_node.values():
        what = f"{view['instance_type']} {view['market']} {view['zone']} {view['instance_id']}"
        out.append(f"  {view['node']:10} {view['state']:4} {view['address']:14} {what}")
    out.append("prices of an hour")
    for price in said["prices"]:
        usd = "unknown" if price["usd"] is None else f"${price['usd']:g}"
        out.append(f"  {price['pool']:10} {price['instance_type']} {price['market']}: {usd}")
    out.append("faults" if said["faults"] else "faults: none")
    out += [f"  {fault}" for fault in said["faults"]]
    out.append(f"logs: {said['log']}")
    return out
