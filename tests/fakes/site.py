"""The document of a site as `pulumi up` exports it."""

from ironburst.document import parse


def document(**burst):
    """A ClusterDocument of a lab-like site: two nodes at home, pool p5 of up to three."""
    settings = {
        "usd_per_month": 20000.0,
        "markets": ["spot", "on-demand"],
        "zones": ["us-east-1a", "us-east-1b"],
        "boot_s": 120,
        "idle_s": 60,
    }
    settings |= {
        "max_run_s": 86400,
        "wait_limit_s": 60,
        "cool_down_s": 30,
        "tick_s": 2,
        "nodes": ["p5-1", "p5-2", "p5-3"],
    } | burst
    pool = {
        "name": "p5",
        "partition": "burst-p5",
        "nodes": settings["nodes"],
        "instance_type": "p5.48xlarge",
        "roles": ["base"],
        "gpu": {"model": "H100 SXM5 80GB", "count": 8},
        "fabric": "efa",
        "fabric_links": 32,
        "slurm": {"cpus": 2, "memory_mb": 1000},
        "markets": settings["markets"],
        "usd_per_hour": {"on-demand": 55.04, "spot": 24.0},
        "spot_max_usd_per_hour": {"p5.48xlarge": settings["spot_max"]} if "spot_max" in settings else {},
        "price_as_of": "2026-11-01",
        "prices_as_of": dict.fromkeys(settings["markets"], "2026-11-01"),
        "zones": [
            {"zone": zone, "place": {"subnet_id": f"subnet-{zone}", "launch_template_id": f"lt-{zone}"}}
            for zone in settings["zones"]
        ],
        "image": "/ironburst/lab/p5/image",
        "notices": "q",
        "boot_s": settings["boot_s"],
        "idle_s": settings["idle_s"],
        "max_run_s": settings["max_run_s"],
    }
    return parse(
        {
            "version": 6,
            "serial": settings.get("serial", 1),
            "cluster": "lab",
            "cloud": {"provider": "aws", "region": "us-east-1"},
            "ssh": {"user": "root"},
            "software": {
                "driver": "580.95.05",
                "kernel_module": "open",
                "cuda": "13.0",
                "container_toolkit": "1.18.0",
                "container_runtime": "containerd",
                "rdma": "inbox",
                "slurm": "24.11",
            },
            "scheduler": {
                "kind": "slurm",
                "head": "head",
                "head_address": "10.78.0.10",
                "home_partition": "home",
                "munge_key": "aws-secretsmanager:ironburst/lab/munge-key",
                "shared_filesystem": "/shared",
            },
            "hosts": [],
            "pools": [pool],
            "budget": {"usd_per_month": settings["usd_per_month"]},
            "burst": {key: settings[key] for key in ("tick_s", "wait_limit_s", "cool_down_s")},
        }
    )


def placed(zone, **changes):
    """A PoolZone whose place has these changes."""
    return zone.model_copy(update={"place": zone.place.model_copy(update=changes)})


def with_places(pool, **changes):
    """A pool, each of whose places has these changes."""
    return pool.model_copy(update={"zones": [placed(zone, **changes) for zone in pool.zones]})
