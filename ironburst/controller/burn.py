"""What costs money at this moment: what is rented, and the fixed cloud nodes, which cost whether they work or not."""

from __future__ import annotations

from typing import Any

from ironburst.burst import explain
from ironburst.controller import karpenter_status, money, order_book, records, spending
from ironburst.controller.ledger import Ledger
from ironburst.document import ClusterDocument, Host


def gather(document: ClusterDocument, ledger: Ledger | None, now_s: float) -> dict[str, Any]:
    """As JSON values. `days_to_ceiling`: of the month's, at what is rented now; None: never, or not before the month
    is over. A fixed node whose price isn't known has None.
    """
    rented = _rented_usd(document, ledger, now_s) if ledger else 0.0
    fixed = [{"node": host.name, "usd_per_hour": _fixed_usd(host)} for host in document.hosts if host.kind == "cloud"]
    known = [each["usd_per_hour"] for each in fixed if each["usd_per_hour"] is not None]
    return {
        "usd_per_hour": rented,
        "days_to_ceiling": _days(document, ledger, now_s, rented) if ledger else None,
        "fixed": fixed,
        "fixed_usd_per_hour": sum(known),
        "fixed_unknown": len(fixed) - len(known),
    }


def _rented_usd(document: ClusterDocument, ledger: Ledger, now_s: float) -> float:
    rates = spending.rates(ledger, now_s)
    paid = [lease for lease in ledger.leases() if lease.state != records.REQUESTED and lease.paid(now_s)]
    ours = sum(money.rates_of(lease, rates)[-1].usd_per_hour for lease in paid if lease.to_s is None)
    theirs = sum(float(pool["usd_per_hour"]) for pool in karpenter_status.gather(document, ledger, now_s))
    return ours + theirs


def _fixed_usd(host: Host) -> float | None:
    if host.usd_per_gpu_hour is None or host.gpu is None:
        return None
    return host.usd_per_gpu_hour * host.gpu.count


def _days(document: ClusterDocument, ledger: Ledger, now_s: float, usd_per_hour: float) -> float | None:
    declared = order_book.budget(ledger, document, now_s)
    if declared is None or usd_per_hour <= 0:
        return None
    budget = spending.budget(ledger, declared, now_s)
    days = max(budget.usd_per_month - budget.spent_usd, 0.0) / usd_per_hour / 24
    return days if now_s + days * 86400 < budget.month_ends_s else None


def lines(said: dict[str, Any]) -> list[str]:
    """Of `money`, for people."""
    rented = f"what is rented costs {explain.usd(said['usd_per_hour'])} an hour now"
    if said["days_to_ceiling"] is not None:
        rented += f", and reaches the month's ceiling in {said['days_to_ceiling']:,.1f} days at that rate"
    elif said["usd_per_hour"] and said["usd_per_month"] is not None:
        rented += ", and doesn't reach the month's ceiling at that rate"
    return [rented, *([fixed_line(said)] if said["fixed"] else [])]


def fixed_line(said: dict[str, Any]) -> str:
    """The fixed cloud nodes."""
    count, unknown = len(said["fixed"]), said["fixed_unknown"]
    nodes, usd = explain.plural(count, "fixed cloud node"), explain.usd(said["fixed_usd_per_hour"])
    if unknown == count:
        return f"beside it {nodes} of unknown price, working or not, under no ceiling"
    missing = f"; of {unknown} of them the price is unknown" if unknown else ""
    return f"beside it {nodes} for {usd} an hour, working or not, under no ceiling{missing}"
