"""Which of NVIDIA's security bulletins a driver has the fixes of. A branch that a bulletin doesn't name is unknown: it
counts neither as fixed nor as affected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironburst.software.model import Branch, Bulletin, Facts
from ironburst.software.versions import branch_of, older, version


def lacking(driver: str, bulletins: Sequence[Bulletin]) -> list[Bulletin]:
    """Entries of the driver's own branch whose fixes it hasn't got."""
    return [each for each in bulletins if each.branch == branch_of(driver) and older(driver, each.fixed)]


def closed(old: str, new: str, bulletins: Sequence[Bulletin]) -> list[Bulletin]:
    """Entries of the new driver's branch whose fixes it has and the old one hasn't."""
    open_before = {each.bulletin for each in lacking(old, bulletins)}
    has = (each for each in bulletins if each.branch == branch_of(new) and not older(new, each.fixed))
    return [each for each in has if each.bulletin in open_before]


def first_without(driver: str, branch: Branch | None, bulletins: Sequence[Bulletin]) -> str | None:
    """The oldest known version of its branch that lacks nothing; None: there is none."""
    known = sorted(branch.example_versions, key=version) if branch else []
    return next((each for each in known if older(driver, each) and not lacking(each, bulletins)), None)


def warnings(drivers: Mapping[str, str | None], facts: Facts) -> list[str]:
    """A sentence for each driver that lacks fixes. `drivers`: by group of nodes."""
    said = []
    for driver in sorted({driver for driver in drivers.values() if driver}, key=version):
        open_still = lacking(driver, facts.bulletins)
        if not open_still:
            continue
        groups = ", ".join(group for group, each in drivers.items() if each == driver)
        branch = branch_of(driver)
        better = first_without(driver, facts.branches.get(branch), facts.bulletins)
        what = f"{better} has them: let the stack ask for it, or for branch {branch}" if better else (
            f"no version of branch {branch} that is known has them all: choose another branch"
        )  # fmt: skip
        said.append(f"{groups}: driver {driver} lacks the fixes of {named(open_still)}; {what}")
    return said


def named(bulletins: Sequence[Bulletin]) -> str:
    """As in `NVIDIA bulletins 5747 (2026-01), 5821 (2026-05): CVE-2025-33219, CVE-2025-33220 and 9 more, CVSS up to
    8.8`; the worst bulletin's CVEs come first.
    """
    shown = ", ".join(f"{each.bulletin} ({each.updated[:7]})" for each in bulletins)
    worst_first = sorted(bulletins, key=lambda each: -(each.cvss_max or 0.0))
    cves = list(dict.fromkeys(cve for each in worst_first for cve in each.cves))
    more = f" and {len(cves) - 2} more" if len(cves) > 2 else ""
    scores = [each.cvss_max for each in bulletins if each.cvss_max is not None]
    worst = f", CVSS up to {max(scores):g}" if scores else ""
    return f"NVIDIA bulletin{'s' * (len(bulletins) > 1)} {shown}: {', '.join(cves[:2])}{more}{worst}"
