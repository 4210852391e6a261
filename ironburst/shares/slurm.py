"""Shares as Slurm has them: accounts and QOS of the accounting database, and what brings them there.

A team is an account with three QOS: `<account>-guaranteed`, whose GrpTRES is its guarantee and which preempts what is
over quota; `<account>-over`, whose jobs are put back into the queue then; and `<account>-own`, for the partition with
its own nodes. A job names the first two, and Slurm (from 24.11 on) tries them in this order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ironburst.shares.model import GUARANTEED, OVER, OWN, Quota, TeamShare

GPUS = "gres/gpu"
OURS = "share of ironburst"
"""description of a QOS that is ours to change and to delete"""
FIRST, LAST = 1000, 1
"""priorities of the QOS with a guarantee, and of those over quota; a job's own list is tried in their order"""
SHOW_QOS = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=Name,Description,Priority,GrpTRES,Preempt")
"""what `shown_qos` reads"""
NORMAL = "normal"
"""Slurm's own QOS: what partitions without shares take"""


def guaranteed_qos(account: str) -> str:
    """The QOS of a team's work within its guarantee."""
    return f"{account}-{GUARANTEED}"


def over_qos(account: str) -> str:
    """The QOS of a team's work over quota."""
    return f"{account}-{OVER}"


def own_qos(account: str) -> str:
    """The QOS of a team's work on its own nodes."""
    return f"{account}-{OWN}"


def kind_of(account: str, qos: str) -> str:
    """What a job in this QOS counts in (ironburst.shares.model); empty: in nothing of its team's."""
    return next((kind for kind in (GUARANTEED, OVER, OWN) if qos == f"{account}-{kind}"), "")


@dataclass(frozen=True)
class Qos:
    """One QOS. `gpus`: GrpTRES, of all its jobs together; None: no limit."""

    priority: int
    gpus: int | None = None
    preempt: frozenset[str] = field(default_factory=frozenset)

    def settings(self) -> list[str]:
        """As sacctmgr sets them; -1 takes a limit away."""
        limit = f"GrpTRES={GPUS}={-1 if self.gpus is None else self.gpus}"
        return [f"Priority={self.priority}", limit, f"Preempt={','.join(sorted(self.preempt))}"]


@dataclass(frozen=True)
class Account:
    """What an account may use. `most`: GPUs on shared and on own nodes together; None: no limit."""

    qos: frozenset[str]
    default: str
    fairshare: int
    most: int | None = None

    def settings(self) -> list[str]:
        """As sacctmgr sets them. The list comes before the default, which must be in it."""
        limit = f"GrpTRES={GPUS}={-1 if self.most is None else self.most}"
        return [f"QOS={','.join(sorted(self.qos))}", f"DefaultQOS={self.default}", f"Fairshare={self.fairshare}", limit]


def qos_of(shares: Sequence[TeamShare], now: Mapping[str, Quota] | None = None) -> dict[str, Qos]:
    """{name: QOS} of all teams. `now`: as ironburst.shares.quotas says; None: as promised, without a limit over
    quota.
    """
    over = frozenset(over_qos(share.account) for share in shares if share.over_quota)
    found = {}
    for share in shares:
        quota = now[share.account] if now else Quota(share.guaranteed, 0)
        if share.guaranteed:
            found[guaranteed_qos(share.account)] = Qos(FIRST, quota.guaranteed, over)
        if share.over_quota:
            found[over_qos(share.account)] = Qos(LAST, quota.over if now else None)
        if share.nodes:
            found[own_qos(share.account)] = Qos(FIRST)
    return found


def accounts_of(shares: Sequence[TeamShare], own_gpus: Mapping[str, int]) -> dict[str, Account]:
    """{account: what it may use}. `own_gpus`: {account: GPUs of its own nodes}. Its fair share is its guarantee and its
    weight's part: in the queue the team that is furthest below it comes first.
    """
    names = qos_of(shares)
    total = sum(share.guaranteed for share in shares)
    weights = sum(share.weight for share in shares if share.over_quota) or 1
    found = {}
    for share in shares:
        mine = [guaranteed_qos(share.account), over_qos(share.account), own_qos(share.account)]
        mine = [name for name in mine if name in names]
        part = share.guaranteed * 100 + (share.weight * max(total, 1) * 100 // weights if share.over_quota else 0)
        most = None if share.most is None else share.most + own_gpus.get(share.account, 0)
        found[share.account] = Account(frozenset([*mine, NORMAL]), mine[0], max(part, 1), most)
    return found


def shown_qos(lines: Iterable[str]) -> dict[str, Qos]:
    """Those of ours among the lines that SHOW_QOS shows."""
    found = {}
    for line in lines:
        name, description, priority, limits, preempt = line.split("|")
        if description == OURS:
            found[name] = Qos(int(priority or 0), _gpus(limits), _names(preempt))
    return found


def shown_accounts(lines: Iterable[str], cluster: str) -> dict[str, Account]:
    """Those of a cluster among the lines of `sacctmgr --noheader --parsable2 show associations
    format=Cluster,Account,User,QOS,DefaultQOS,Fairshare,GrpTRES`.
    """
    found = {}
    for line in lines:
        of, account, user, qos, default, fairshare, limits = line.split("|")
        if of == cluster and not user:
            share = int(fairshare) if fairshare.isdigit() else 0  # "parent" is none of ours
            found[account] = Account(_names(qos), default, share, _gpus(limits))
    return found


def changes(
    cluster: str,
    shares: Sequence[TeamShare],
    own_gpus: Mapping[str, int],
    qos: Mapping[str, Qos],
    accounts: Mapping[str, Account],
    in_use: Collection[str] = (),
) -> list[list[str]]:
    """The command lines that bring the database from what is shown (`qos`, `accounts`) to what is declared; none where
    it is so already. An account that has no share any more keeps its users and its history, and no right of ours.

    What others name comes first and goes last: QOS over quota are added before those that preempt them, and accounts
    let go of a QOS before it is deleted. One that a job runs in (`in_use`) stays until that has ended: without it the
    job had none, and no guarantee could end it any more.
    """
    wanted, teams = qos_of(shares), accounts_of(shares, own_gpus)
    left = {name: replace(each, preempt=frozenset()) for name, each in qos.items() if name in set(in_use) - set(wanted)}
    ended = frozenset(name for name, each in left.items() if each.priority == LAST)
    wanted = {
        name: replace(each, preempt=each.preempt | ended) if each.preempt else each for name, each in wanted.items()
    }
    wanted |= left
    lines = []
    for name, each in sorted(wanted.items(), key=lambda item: (bool(item[1].preempt), item[0])):
        if name not in qos:
            lines.append(["add", "qos", name, f"Description={OURS}", *each.settings()])
        elif qos[name] != each:
            lines.append(["modify", "qos", "where", f"Name={name}", "set", *each.settings()])
    for name, team in teams.items():
        if name not in accounts:
            lines.append(["add", "account", name, f"Cluster={cluster}"])
        if accounts.get(name) != team:
            lines.append(_modified(cluster, name, team.settings()))
    gone = sorted(set(qos) - set(wanted), key=lambda name: (not qos[name].preempt, name))
    for name, shown in accounts.items():
        if name not in teams and shown.qos & (set(qos) | set(wanted)):
            lines.append(
                _modified(cluster, name, [f"QOS={NORMAL}", "DefaultQOS=-1", "Fairshare=1", f"GrpTRES={GPUS}=-1"])
            )
    lines += [["delete", "qos", "where", f"Name={name}"] for name in gone]
    return [["sacctmgr", "--immediate", "--quiet", *line] for line in lines]


def _modified(cluster: str, account: str, settings: list[str]) -> list[str]:
    return ["modify", "account", "where", f"Name={account}", f"Cluster={cluster}", "set", *settings]


def limits(shares: Sequence[TeamShare], now: Mapping[str, Quota], qos: Mapping[str, Qos]) -> list[list[str]]:
    """The command lines that bring the limits of the QOS that are there (`qos`) to what each team may have now."""
    wanted = qos_of(shares, now)
    return [
        ["sacctmgr", "--immediate", "--quiet", "modify", "qos", "where", f"Name={name}", "set", each.settings()[1]]
        for name, each in sorted(wanted.items())
        if name in qos and qos[name].gpus != each.gpus
    ]


def _gpus(limits: str) -> int | None:
    pairs = dict(each.partition("=")[::2] for each in limits.split(",") if each)
    return int(pairs[GPUS]) if GPUS in pairs else None


def _names(text: str) -> frozenset[str]:
    return frozenset(each for each in text.split(",") if each)
