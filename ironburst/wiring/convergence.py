"""What a converge works with: Ansible, ssh, the schedulers, what is remembered."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ironburst.adapters.ansible import REPOSITORY, Ansible
from ironburst.adapters.remote import ask, first_input, shell_prefix
from ironburst.convergence import inputs, watch
from ironburst.convergence.model import Tools
from ironburst.convergence.ports import Connection
from ironburst.convergence.receipts import Store, default_folder
from ironburst.document import ClusterDocument
from ironburst.ports.service import NodeService


def make_tools(
    document: ClusterDocument, path: Path, inventory: Path, state: Path | None, say: Callable[[str], None]
) -> Tools:
    """The real ones. `path`: of the document; `state`: the folder that --state names."""

    # imported at their use: an unchanged host needs neither
    def service(connection: Connection | None) -> NodeService:
        if connection is None:
            from ironburst.wiring.schedulers import nodes_of

            return nodes_of(document)
        from ironburst.adapters.slurm.scheduler import Slurm

        return Slurm(shell_prefix(connection), first=first_input(connection, resolve))

    resolve = secrets_of(document)
    store = Store(state / "receipts" if state else default_folder(document.cluster))
    decoded = document.model_dump(mode="json")
    sources = inputs.Sources(REPOSITORY, inventory.resolve(), decoded, store.salt(), resolve)
    return Tools(
        playbooks=Ansible(inventory, path),
        ask=partial(ask, secret=resolve),
        service=service,
        inputs=sources.of,
        role_watch=role_watch,
        store=store,
        say=say,
        clock=time.time,
        pause=time.sleep,
    )


def role_watch(role: str) -> watch.Watch | None:
    """What a role's meta/watch.yml names; None without one. Raises ValueError."""
    return watch.read_role(REPOSITORY / "playbooks" / "roles" / role)


def secrets_of(document: ClusterDocument) -> Callable[[str], str]:
    """The secret behind a reference; raises ValueError."""

    def secret(reference: str) -> str:
        from ironburst.system.secrets import SecretError, resolve_in

        try:
            return resolve_in(reference, document.regions)
        except SecretError as error:
            raise ValueError(str(error)) from None

    return secret
