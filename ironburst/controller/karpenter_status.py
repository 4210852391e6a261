"""What `ironburst status` says of NodePools whose nodes Karpenter launches within our budget."""

from __future__ import annotations

from typing import Any

from ironburst.burst import explain
from ironburst.controller import karpenter_store
from ironburst.controller.ledger import Ledger
from ironburst.document import ClusterDocument, KarpenterPool


def gather(document: ClusterDocument, ledger: Ledger, now_s: float) -> list[dict[str, Any]]:
    """One for each NodePool, as JSON values, by what was seen of it last."""
    book = karpenter_store.read(ledger)
    return [_pool(pool, book, now_s) for pool in document.karpenter]


def _pool(pool: KarpenterPool, book: karpenter_store.Book, now_s: float) -> dict[str, Any]:
    rows = [each.row() for each in book.claims if each.node_pool == pool.node_pool]
    there = [each for each in book.open_of(pool.node_pool) if each.launched]
    return {
        "node_pool": pool.node_pool,
        "instance_type": pool.instance_type,
        "market": pool.market,
        "account": pool.account,
        "nodes": len(there),
        "ending": sum(each.leaves_s is not None and each.leaves_s <= now_s for each in there),
        "usd_per_hour": sum(each.rate.usd_per_hour for each in there),
        "usd": sum(row.usd(now_s) for row in rows),
        "limit_nodes": book.limit(pool.node_pool),
        "seen_s": book.looked_s or None,
    }


def line(said: dict[str, Any]) -> str:
    """One NodePool, for people."""
    limit = "not written yet" if said["limit_nodes"] is None else said["limit_nodes"]
    ending = f" ({said['ending']} ending)" if said["ending"] else ""
    what = f"{said['nodes']} x {said['instance_type']} {said['market']}{ending}"
    cost = f"{explain.usd(said['usd_per_hour'])} an hour, {explain.usd(said['usd'])} so far"
    return f"  Karpenter's {said['node_pool']}: {what}, {cost}, limit {limit}"
