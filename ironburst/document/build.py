"""From a declaration to the ClusterDocument that the Pulumi program exports. Its readers don't load this."""

from __future__ import annotations

from dataclasses import asdict

from ironburst import catalog
from ironburst.config import gpu_models, halls
from ironburst.config import software as declared_software
from ironburst.config.models import ClusterConfig, Hall, Nodes
from ironburst.document import (
    ClusterDocument,
    DocumentError,
    Filesystem,
    GpuDocument,
    HallDocument,
    Host,
    ImagesDocument,
    Software,
    Ssh,
    SubnetManager,
)
from ironburst.document.build_cloud import (
    CloudInstance,
    Observed,
    burst_pool,
    cloud_of,
    data,
    fixed,
    karpenter,
    other_cloud,
)
from ironburst.document.build_monitoring import monitoring
from ironburst.document.build_nodes import OfSoftware, of_software, roles, whose
from ironburst.document.build_policy import budget, burst, share
from ironburst.document.build_scheduler import HostedCluster, declared_node, scheduler
from ironburst.document.build_users import users
from ironburst.document.hall_model import FabricCable
from ironburst.nodes import naming
from ironburst.software.solve import Solution

__all__ = ["CloudInstance", "HostedCluster", "Observed", "build"]

TOP_PRIORITY = 14


def build(config: ClusterConfig, observed: Observed, solution: Solution | None = None) -> ClusterDocument:
    """The document of a valid declaration. `solution`: its software (config.stack); None: solved here, whatever is
    locked. Pure. Raises DocumentError for a conflict.
    """
    solution = solution or declared_software.solved(config)
    if solution.conflicts:
        raise DocumentError("; ".join(str(hit) for hit in solution.conflicts))
    declared_halls = halls.declared(config)
    devices = {device.name: device for hall in declared_halls for device in hall.devices}
    hosts = [
        host.model_copy(update={"power_w": devices[host.name].power_w, "gpu_w": devices[host.name].gpu_w})
        for hall in config.halls
        for nodes in hall.nodes
        for host in _bare_metal(config, hall, nodes, solution)
    ]
    hosts += [host for group in config.groups for host in fixed(config, group, observed, solution)]
    return ClusterDocument(
        version=6,
        serial=0,
        cluster=config.name,
        cloud=cloud_of(config.cloud) if config.cloud else None,
        other_clouds=[other_cloud(config, each) for each in config.other_clouds],
        software=_cluster_software(config, solution),
        ssh=Ssh(
            user=config.ssh.user,
            cloud_user=config.ssh.cloud_user,
            sudo_secret=config.ssh.sudo_password or "",
        ),
        scheduler=scheduler(config, config.scheduler, hosts, observed.hosted),
        other_schedulers=[scheduler(config, each, hosts, observed.hosted) for each in config.other_schedulers],
        hosts=hosts,
        halls={
            hall.name: HallDocument(
                breaker_share=hall.breaker.share,
                drain_after_s=int(hall.breaker.drain_after),
                other_w=halls.other_w(of_it),
                nightly_stress=hall.nightly_stress,
                cables=[FabricCable(**each) for each in halls.fabric_cables(of_it)],
            )
            for hall, of_it in zip(config.halls, declared_halls, strict=True)
        },
        pools=[burst_pool(config, pool, observed, solution) for pool in config.pools],
        karpenter=[karpenter(config.name, cloud, pool) for cloud in config.clouds for pool in cloud.karpenter],
        budget=budget(config),
        burst=burst(config),
        monitoring=monitoring(config),
        filesystem=Filesystem(**config.filesystem.model_dump()) if config.filesystem else None,
        subnet_managers={hall.name: _subnet_managers(hall) for hall in config.halls if hall.subnet_managers},
        topology=halls.slurm_topology(config),
        data_science=list(config.data_science),
        data=data(config.cloud) if config.cloud else {},
        images=ImagesDocument(**config.cloud.images.model_dump()) if config.cloud else ImagesDocument(),
        shares=[share(each) for each in config.shares],
        users=users(config),
        names=config.names or "",
    )


def _cluster_software(config: ClusterConfig, solution: Solution) -> Software:
    """The first GPU group's versions stand for the cluster."""
    first = next((name for name, group in solution.groups.items() if group.gpu), "")
    chosen = solution.sets.get(first)
    # of a scheduler's own version Slurm's stands here; each node has kubelet's
    wish = declared_software.wish(config, None, None, "slurm" if config.slurm else config.scheduler.kind)
    return Software(
        driver=chosen.driver if chosen else None,
        kernel_module=chosen.kernel_module if chosen else None,
        cuda=chosen.cuda if chosen else None,
        container_toolkit=chosen.container_toolkit if chosen else None,
        container_runtime=wish.container_runtimes[0],
        container_runtimes=list(wish.container_runtimes),
        rdma=wish.rdma,
        slurm=wish.slurm,
    )


def _subnet_managers(hall: Hall) -> list[SubnetManager]:
    """opensm's priorities, from 14 downwards in the declared order (15 is left for a switch in an emergency)."""
    return [SubnetManager(host=host, priority=TOP_PRIORITY - n) for n, host in enumerate(hall.subnet_managers)]


def _bare_metal(config: ClusterConfig, hall: Hall, nodes: Nodes, solution: Solution) -> list[Host]:
    gpu = None
    if nodes.role == "gpu":
        assert nodes.platform is not None  # config.checks.metal
        platform = catalog.platform(nodes.platform)
        gpu = GpuDocument(count=platform.gpu_count, **asdict(gpu_models.of(platform.gpu)), pcie_width=0)
    links = nodes.infiniband_links or 0
    its: OfSoftware = {"os": nodes.os, "software": None, "mig": None, "scratch": None}
    if nodes.managed:
        its = of_software(solution, declared_software.nodes_group(hall.name, nodes), nodes.scratch)
    opensm = {manager: ["infiniband_fabric"] for manager in hall.subnet_managers}
    server = {config.monitoring.server: ["prometheus"]}
    own = {node: naming.own_partition(share.name) for share in config.shares for node in share.nodes or []}
    return [
        Host(
            name=name,
            scheduler=whose(config, nodes),
            kind="bare_metal",
            role=nodes.role,
            address=address,
            hall=hall.name,
            rack=nodes.rack,
            managed=nodes.managed,
            gpu=gpu,
            gpu_power_limit_w=nodes.gpu_power_limit_w,
            serial=nodes.serials[n] if nodes.serials else None,
            node_object=nodes.node_objects[n] if nodes.node_objects else "",
            partition=own.get(name, config.scheduler_of(nodes).home_partition) if gpu else None,
            fabric="infiniband" if links else "none",
            fabric_links=links,
            slurm=declared_node(nodes.slurm) if nodes.slurm else None,
            usd_per_gpu_hour=nodes.usd_per_gpu_hour.usd if nodes.usd_per_gpu_hour else None,
            roles=roles(config, nodes, its, gpu=gpu is not None, here=opensm.get(name, []) + server.get(name, []))
            if nodes.managed
            else [],
            **its,
        )
        for n, (name, address) in enumerate(zip(nodes.names, nodes.addresses or [""] * len(nodes.names), strict=True))
    ]
