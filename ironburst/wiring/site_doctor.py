"""What `ironburst doctor --from hall` and `--from cloud` look at beside AWS: hosts, packages, BMCs."""

from __future__ import annotations

import secrets as random
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ironburst.adapters import site_doctor
from ironburst.adapters.ansible import Ansible
from ironburst.adapters.redfish import client as redfish
from ironburst.adapters.redfish.client import BmcAccess
from ironburst.baremetal.declared import node_inputs
from ironburst.baremetal.node import NodeInputs
from ironburst.config.models import ClusterConfig
from ironburst.doctor import bmcs, hosts
from ironburst.doctor.checks import CheckResult
from ironburst.document import ClusterDocument
from ironburst.system import secrets


def examine_hosts(
    config: ClusterConfig, document: ClusterDocument, path: Path, inventory: Path
) -> Iterator[CheckResult]:
    """Every managed host over ssh, and its packages by validate.yml. `path`: of the document."""
    ansible, salt = Ansible(inventory, path), random.token_hex(16)
    asked = hosts.questions(document, salt)
    if not asked:
        return

    def resolve(reference: str) -> str:
        return secrets.resolve_in(reference, document.regions)

    said = site_doctor.ask_hosts(asked, ansible.connections(list(asked)), resolve)
    seen = hosts.Hosts(document, said, _munge_digest(document, salt), _links(config), time.time())
    yield from hosts.check(seen)
    yield from _packages(ansible, [name for name, each in said.items() if each.answer])


def examine_bmcs(config: ClusterConfig) -> Iterator[CheckResult]:
    """Every declared BMC, with the login that is declared."""
    yield from bmcs.check(site_doctor.ask_bmcs(accesses(config)))


def accesses(config: ClusterConfig, timeout_s: float = 30.0) -> dict[str, BmcAccess | str]:
    """How each managed node's BMC is reached, by node; a sentence where its password can't be had."""
    access: dict[str, BmcAccess | str] = {}
    for hall in config.halls:
        for nodes in hall.nodes:
            if nodes.bmc is None or not nodes.managed:
                continue
            try:
                password = secrets.resolve_in(nodes.bmc.password, config.regions)
            except secrets.SecretError as error:
                access |= dict.fromkeys(nodes.names, str(error))
                continue
            for given in node_inputs(nodes, config.regions):
                how = redfish.access_of(NodeInputs.model_validate(given), password)
                access[how.node] = replace(how, timeout_s=timeout_s)
    return access


def _links(config: ClusterConfig) -> dict[str, str]:
    return {link.hall: link.kind for cloud in config.clouds for link in cloud.network.links}


def _munge_digest(document: ClusterDocument, salt: str) -> str | None:
    slurm = document.scheduler_of_kind("slurm")
    if slurm is None or not slurm.munge_key:
        return None
    try:
        return hosts.digest(secrets.resolve_in(slurm.munge_key, document.regions).encode(), salt)
    except secrets.SecretError:
        return None


def _packages(ansible: Ansible, names: list[str]) -> Iterator[CheckResult]:
    """validate.yml asks each host's own solver whether the lock can be installed."""
    if not names:
        return
    run = ansible.play("validate.yml", hosts=names)
    if run.error:
        yield CheckResult("packages", "validate.yml", "unknown", run.error, "run `ironburst converge --check`")
        return
    wrong = defaultdict(list)
    for name, result in run.hosts.items():
        if result.failed or result.unreachable:
            wrong[result.error or "validate.yml failed there"].append(name)
    for error, where in wrong.items():
        yield CheckResult(
            "packages", ", ".join(where), "fail", error, "mend the repositories, or `ironburst lock` again"
        )
    if not wrong:
        yield CheckResult("packages", "lock", "ok", f"{len(names)} hosts can install what is locked")
