"""Part of build.py: what is declared of monitoring, as the document has it."""

from __future__ import annotations

from typing import Any

from ironburst import catalog
from ironburst.config.cloud_models import Cloud
from ironburst.config.energy_models import IdleGpus
from ironburst.config.models import ClusterConfig
from ironburst.config.scheduler_models import Slurm
from ironburst.document.monitoring import (
    CONTROLLER_PORT,
    NODE_OVER_GPUS,
    PORT,
    IdleDocument,
    MonitoringDocument,
    PlaceEnergy,
)

LOOPBACK = "127.0.0.1"
_OF_SERVER = {"retention", "retention_gb"}


def monitoring(config: ClusterConfig) -> MonitoringDocument:
    """With the URL of its own server, unless another one is declared, and the figures of the catalogue."""
    declared = config.monitoring
    carbon, pue = declared.carbon, declared.pue
    halls = {}
    for hall in config.halls:
        its_pue = pue.get(hall.name) if isinstance(pue, dict) else pue
        its = _emits(carbon.halls.get(hall.name) if carbon else None, its_pue)
        if its != PlaceEnergy():
            halls[hall.name] = its
    figured = {
        "pue": None if isinstance(pue, dict) else pue,
        "halls": halls,
        "cloud": emitted(config, config.cloud) if config.cloud else None,
        "watts": _watts(config) if carbon else {},
        "idle": _idle(declared.idle) if declared.idle else None,
    }
    kept = declared.model_dump(exclude={"pue", "carbon", "idle"} | (set() if declared.server else _OF_SERVER))
    return MonitoringDocument.model_validate(kept | figured | (_server(config) if declared.server else {}))


def emitted(config: ClusterConfig, cloud: Cloud) -> PlaceEnergy | None:
    """What a cloud emits: as declared for all, else by its region's country; None: it isn't to be said."""
    if not (carbon := config.monitoring.carbon):
        return None
    where = carbon.cloud
    return _emits(catalog.region(cloud.region, cloud.provider).country if where is None else where, None)


def _server(config: ClusterConfig) -> dict[str, Any]:
    """Of the only head it is the loopback: Prometheus has no password and shows what is rented for how much, and who
    asks it is there. Another host has to be reached from each head, and reaches the controller there.
    """
    declared = config.monitoring
    of = next((each for each in config.schedulers if each.head_node), None)
    second = of.second_head.head if isinstance(of, Slurm) and of.second_head else ""
    heads = [name for name in (of.head_node if of else "", second) if name]
    alone = heads == [declared.server]
    address = LOOPBACK if alone else _address(config, str(declared.server))
    controllers = [f"{LOOPBACK if alone else _address(config, name)}:{CONTROLLER_PORT}" for name in heads]
    first, other = [*controllers, "", ""][:2] if config.pools else ("", "")
    url = declared.url or f"http://{address}:{PORT}"
    return {"address": address, "url": url, "controller": first, "second_controller": other}


def _watts(config: ClusterConfig) -> dict[str, float]:
    types = sorted({name for pool in config.pools for name in pool.types})
    kinds = [catalog.instance_type(name) for name in types]
    return {
        kind.name: round(kind.gpu.tdp_w * kind.gpu_count * (kind.gpu_fraction or 1.0) * NODE_OVER_GPUS, 1)
        for kind in kinds
        if kind.gpu and kind.gpu.tdp_w
    }


def _emits(declared: str | float | None, pue: float | None) -> PlaceEnergy:
    """`declared`: grams, or a country."""
    if declared is None:
        return PlaceEnergy(pue=pue)
    if not isinstance(declared, str):
        return PlaceEnergy(pue=pue, gco2_per_kwh=declared, origin="declared")
    known = catalog.electricity(declared)
    return PlaceEnergy(pue=pue, gco2_per_kwh=known.gco2_per_kwh, origin=f"{known.name} {known.year}, Ember")


def _idle(declared: IdleGpus) -> IdleDocument:
    return IdleDocument(
        after_s=int(declared.after),
        team_s=int(declared.team),
        end=declared.end,
        end_after_s=int(declared.end_after),
        grace_s=int(declared.grace),
        watts=declared.watts,
    )


def _address(config: ClusterConfig, name: str) -> str:
    """Of an owned host."""
    owned = (nodes for hall in config.halls for nodes in hall.nodes if name in nodes.names)
    return next((nodes.addresses[nodes.names.index(name)] for nodes in owned), "")  # config.checks.monitoring
