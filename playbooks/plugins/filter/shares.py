"""Filters over the document's shares: what Slurm's accounting database lacks, and who may use which partition."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # ansible's own process does not know the repository
from ironburst.shares import TeamShare, accounts, slurm


def _shares(written: list[dict]) -> list[TeamShare]:
    return [TeamShare.of(each) for each in written]


def share_changes(
    written: list[dict], hosts: list[dict], cluster: str, qos: list[str], associations: list[str], in_use: list[str]
) -> list[list[str]]:
    """The sacctmgr commands that are missing; none where the database is as declared. `written`: the document's shares;
    `qos`, `associations`: lines of sacctmgr (ironburst.shares.slurm says which); `in_use`: QOS that jobs run in.
    """
    shares = _shares(written)
    gpus = {host["name"]: host["gpu"]["count"] for host in hosts if host["gpu"]}
    own = {share.account: sum(gpus.get(node, 0) for node in share.nodes) for share in shares}
    return slurm.changes(
        cluster, shares, own, slurm.shown_qos(qos), slurm.shown_accounts(associations, cluster), in_use
    )


def share_rules(written: list[dict]) -> dict:
    """{home: QOS that the home partition takes; own: {account: QOS of its own partition}; tried: {account: {batch,
    kept}}: the QOS that a job of it is tried in, and those of a job that can't be put back into the queue}.
    """
    shares = _shares(written)
    names = slurm.qos_of(shares)
    own = {share.account: slurm.own_qos(share.account) for share in shares if share.nodes}
    tried = {}
    for share in shares:
        sure, over = slurm.guaranteed_qos(share.account), slurm.over_qos(share.account)
        mine = [name for name in (sure, over) if name in names]
        if mine:
            tried[share.account] = {"batch": ",".join(mine), "kept": mine[0]}
    return {"home": sorted(set(names) - set(own.values())), "own": own, "tried": tried}


def account_changes(
    declared: dict, group_vars: list[dict], cluster: str, associations: list[str], users: list[str], qos: list[str]
) -> list[list[str]]:
    """Likewise of the document's `users`. `group_vars`: accounts of the inventory, whose users stay."""
    also = {account["name"]: account["users"] for account in group_vars}
    merged = [each | {"users": [*each["users"], *also.get(each["name"], [])]} for each in declared["accounts"]]
    return accounts.changes(cluster, declared | {"accounts": merged}, associations, users, qos)


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"share_changes": share_changes, "share_rules": share_rules, "account_changes": account_changes}
