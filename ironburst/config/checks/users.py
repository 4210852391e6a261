"""Users, groups and accounts: names and numbers that are given twice, or name what isn't declared."""

from __future__ import annotations

from collections.abc import Collection

from ironburst.config.checks.common import Findings
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.config.user_models import Users

SYSTEM = frozenset(
    [
        "root",
        "daemon",
        "bin",
        "sys",
        "adm",
        "nobody",
        "sshd",
        "munge",
        "slurm",
        "mysql",
        "ironburst",
        "sssd",
        "chrony",
        "www-data",
        "wheel",
        "sudo",
        "users",
        "docker",
    ]
)
"""names that a system, a package or a role of ours takes"""


def users(config: ClusterConfig) -> Findings:
    """Everything under `users`."""
    yield from _homes(config)
    if config.users is None:
        return
    yield from _ids(config.users)
    yield from _groups(config.users)
    yield from _accounts(config, config.users)
    yield from _rented(config, config.users)


def _ids(users: Users) -> Findings:
    uids, names = dict[int, str](), dict[str, str]()
    gids = {gid: f"group {name}" for name, gid in reversed(users.groups.items())}
    for name, gid in users.groups.items():
        path = path_of("users", "groups", name)
        if gids[gid] != f"group {name}":
            yield Finding(path, gid, "duplicate", f"gid {gid} is that of {gids[gid]} already; each needs its own")
        if name in SYSTEM:
            yield Finding(path, name, "system-name", f"{name!r} is a name of the system's own; take another one")
    for n, person in enumerate(users.people):
        path = path_of("users", "people", n, "name")
        if person.name in names:
            yield Finding(path, person.name, "duplicate", f"user {person.name!r} is declared already; leave one out")
        elif person.name in SYSTEM:
            message = f"{person.name!r} is a name of the system's own; take another one"
            yield Finding(path, person.name, "system-name", message)
        elif person.group is None and person.name in users.groups:
            message = f"{person.name!r} is a group, too: give the user `group: {person.name}`, or rename one of them"
            yield Finding(path, person.name, "duplicate", message)
        uid_path = path_of("users", "people", n, "uid")
        if person.uid in uids:
            message = f"uid {person.uid} is {uids[person.uid]}'s already; each user needs one of their own"
            yield Finding(uid_path, person.uid, "duplicate", message)
        elif person.group is None and person.uid in gids:
            message = (
                f"the user's own group would have gid {person.uid}, which is that of {gids[person.uid]}: "
                "take another uid, or give the user a `group`"
            )
            yield Finding(uid_path, person.uid, "duplicate", message)
        names.setdefault(person.name, path)
        uids.setdefault(person.uid, person.name)


def _groups(users: Users) -> Findings:
    for n, person in enumerate(users.people):
        named = [("group",), *(("groups", i) for i in range(len(person.groups)))]
        for place, group in zip(named, [person.group, *person.groups], strict=True):
            if group is not None and group not in users.groups:
                message = f"group {group!r} isn't declared; users.groups has {_some(users.groups)}"
                yield Finding(path_of("users", "people", n, *place), group, "unknown-group", message)


def _accounts(config: ClusterConfig, users: Users) -> Findings:
    here = path_of("users", "accounts")
    if config.slurm is None and (users.accounts or users.qos):
        message = "accounts and qos are Slurm's, and this site has no Slurm: leave them out"
        yield Finding(here, None, "no-slurm", message)
        return
    names = [account.name for account in users.accounts]
    known, qos = {person.name for person in users.people}, [each.name for each in users.qos]
    for n, each in enumerate(qos):
        if each in qos[:n] or each == "normal":
            message = f"QOS {each!r} is there already; each needs a name of its own"
            yield Finding(path_of("users", "qos", n, "name"), each, "duplicate", message)
    if config.shares and qos:
        message = "teams with shares have QOS of their own, and partitions take no others: leave qos out, or the shares"
        yield Finding(path_of("users", "qos"), qos, "qos-shares", message)
    for n, account in enumerate(users.accounts):
        at = ("users", "accounts", n)
        if account.name in names[:n] or account.name == "root":
            message = f"account {account.name!r} is there already; write its users in one place"
            yield Finding(path_of(*at, "name"), account.name, "duplicate", message)
        if account.parent and account.parent not in names[:n]:
            message = (
                f"the account above, {account.parent!r}, isn't declared before it; before it are {_some(names[:n])}"
            )
            yield Finding(path_of(*at, "parent"), account.parent, "unknown-account", message)
        for i, name in enumerate(account.qos):
            if name not in [*qos, "normal"]:
                message = f"QOS {name!r} isn't declared; users.qos has {_some(qos)}"
                yield Finding(path_of(*at, "qos", i), name, "unknown-qos", message)
        for i, name in enumerate(account.users):
            if users.people and name not in known:
                message = f"user {name!r} isn't declared; users.people has {_some(sorted(known))}"
                yield Finding(path_of(*at, "users", i), name, "unknown-user", message)
    yield from _without_share(config, users)


def _without_share(config: ClusterConfig, users: Users) -> Findings:
    """With shares the home partition takes jobs of the teams' accounts alone."""
    sharing = {share.name for share in config.shares}
    served = {name for account in users.accounts if account.name in sharing for name in account.users}
    left = [person.name for person in users.people if person.name not in served]
    if sharing and left:
        message = f"{_some(left)} can submit nothing: no account with a share names them; add them to a team's account"
        yield Finding(path_of("users", "accounts"), None, "no-share", message, "warning")


def _rented(config: ClusterConfig, users: Users) -> Findings:
    """What a rented node can't have."""
    if config.slurm is None or not config.pools:
        return
    if users.rented == "same" and users.directory and users.directory.bind_password:
        message = (
            "rented nodes would need bind_password, which nothing but owned nodes gets: let the directory be read "
            "without it, or write rented: nss_slurm"
        )
        yield Finding(path_of("users", "directory", "bind_password"), None, "rented-secret", message)


def _homes(config: ClusterConfig) -> Findings:
    """$HOME on rented nodes: who submits from it stays at home, and who submits from elsewhere finds no dotfiles there,
    and no conda. Asked until `burst.folders` decides it.
    """
    slurm, pools = config.slurm, config.pools
    if (
        slurm is None
        or config.burst.folders is not None
        or all(config.scheduler_of(pool) is not slurm for pool in pools)
    ):
        return
    shared = slurm.shared_filesystem.rstrip("/")
    homes = config.users.homes if config.users else "/home"
    if f"{homes}/".startswith(f"{shared}/"):
        return
    message = (
        f"homes are in {homes}, which rented nodes don't have: jobs that are submitted there stay at home, others find "
        f"no $HOME (dotfiles, conda). Put homes below {shared} (users.homes), or mount {homes} on rented nodes, too, "
        f"and write burst.folders: [{shared}, {homes}]; if that is meant: burst.folders: [{shared}]"
    )
    yield Finding(path_of("users", "homes"), config.users and homes, "rented-homes", message, "warning")


def _some(names: Collection[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:8]) + (f" and {len(listed) - 8} more" if len(listed) > 8 else "") if listed else "none"
