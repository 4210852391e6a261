"""Part of build.py: what is declared of monitoring, as the document has it."""

from __future__ import annotations

from ironburst import catalog
from ironburst.config.energy_models import IdleGpus
from ironburst.config.models import ClusterConfig
from ironburst.document.monitoring import NODE_OVER_GPUS, IdleDocument, MonitoringDocument, PlaceEnergy


def monitoring(config: ClusterConfig) -> MonitoringDocument:
    """With the figures of the catalogue, so that a reader needs none."""
    declared = config.monitoring
    carbon, pue = declared.carbon, declared.pue
    halls = {}
    for hall in config.halls:
        its_pue = pue.get(hall.name) if isinstance(pue, dict) else pue
        its = _emits(carbon.halls.get(hall.name) if carbon else None, its_pue)
        if its != PlaceEnergy():
            halls[hall.name] = its
    where = carbon.cloud if carbon else None
    if carbon and config.cloud and where is None:
        where = catalog.region(config.cloud.region).country
    return MonitoringDocument(
        url=declared.url,
        pue=None if isinstance(pue, dict) else pue,
        halls=halls,
        cloud=_emits(where, None) if where is not None and config.cloud else None,
        watts=_watts(config) if carbon else {},
        idle=_idle(declared.idle) if declared.idle else None,
    )


def _watts(config: ClusterConfig) -> dict[str, float]:
    types = sorted({name for pool in (config.cloud.pools if config.cloud else ()) for name in pool.types})
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
