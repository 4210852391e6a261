"""Accounts, their users and QOS of Slurm's accounting, as `users` of the document declares them, and what brings them
there. What is there beside them stays; nothing is deleted, for jobs and history belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SHOW_ASSOCIATIONS = "Cluster,Account,User,ParentName,QOS,DefaultQOS,MaxSubmitJobs"
"""format= of `sacctmgr --noheader --parsable2 show associations`, as `changes` reads it"""
SHOW_QOS = "Name,Priority,MaxWall,MaxTRESPerUser"
_DURATION = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")


def changes(
    cluster: str,
    declared: Mapping[str, Any],
    associations: Iterable[str],
    users: Iterable[str],
    qos: Iterable[str],
) -> list[list[str]]:
    """The sacctmgr command lines that are missing; none where the database is as declared. `declared`: the document's
    `users`; the others: lines of sacctmgr. A user whom an account doesn't name any more submits nothing to it
    (MaxSubmitJobs=0), and has another default account.
    """
    rows = [dict(zip(_fields(SHOW_ASSOCIATIONS), line.split("|"), strict=True)) for line in associations]
    rows = [row for row in rows if row["Cluster"] == cluster]
    of_accounts = {row["Account"]: row for row in rows if not row["User"]}
    of_users = {(row["Account"], row["User"]): row for row in rows if row["User"]}
    commands = _qos(declared["qos"], qos)
    for account in declared["accounts"]:
        commands += _account(cluster, account, of_accounts.get(account["name"]))
    for account in declared["accounts"]:
        commands += _members(cluster, account, of_users)
    return commands + _defaults(cluster, declared["accounts"], users)


def _qos(declared: Sequence[Mapping[str, Any]], lines: Iterable[str]) -> list[list[str]]:
    there = {row[0]: row[1:] for row in (line.split("|") for line in lines)}
    commands = []
    for each in declared:
        gpus = re.search(r"gres/gpu=(\d+)", there.get(each["name"], ["", "", ""])[2])
        shown = there.get(each["name"])
        is_now = shown and (int(shown[0] or 0), _seconds(shown[1]), int(gpus[1]) if gpus else None)
        if is_now == (each["priority"], each["max_run_s"], each["max_gpus_per_user"]):
            continue
        limit = each["max_gpus_per_user"]
        settings = [
            f"Priority={each['priority']}",
            f"MaxWall={-1 if each['max_run_s'] is None else max(1, each['max_run_s'] // 60)}",
            f"MaxTRESPerUser=gres/gpu={-1 if limit is None else limit}",
        ]
        if shown is None:
            commands.append(_sacctmgr("add", "qos", each["name"]))
        commands.append(_sacctmgr("modify", "qos", "where", f"Name={each['name']}", "set", *settings))
    return commands


def _account(cluster: str, account: Mapping[str, Any], row: Mapping[str, str] | None) -> list[list[str]]:
    name, where = account["name"], ["where", f"Name={account['name']}", f"Cluster={cluster}"]
    commands = []
    if row is None:
        commands.append(_sacctmgr("add", "account", name, f"Cluster={cluster}", f"Parent={account['parent']}"))
    elif row["ParentName"] != account["parent"]:
        commands.append(_sacctmgr("modify", "account", *where, "set", f"Parent={account['parent']}"))
    wanted = account["qos"]
    if wanted and (row is None or (set(row["QOS"].split(",")), row["DefaultQOS"]) != (set(wanted), wanted[0])):
        settings = [f"QOS={','.join(wanted)}", f"DefaultQOS={wanted[0]}"]
        commands.append(_sacctmgr("modify", "account", *where, "set", *settings))
    return commands


def _members(cluster: str, account: Mapping[str, Any], there: Mapping[tuple[str, str], Any]) -> list[list[str]]:
    name, commands = account["name"], []
    for user in account["users"]:
        row = there.get((name, user))
        if row is None:
            commands.append(_sacctmgr("add", "user", user, f"Account={name}", f"Cluster={cluster}"))
        elif row["MaxSubmitJobs"] == "0":
            commands.append(_submits(cluster, name, user, -1))
    for (of, user), row in there.items():
        if of == name and user not in account["users"] and row["MaxSubmitJobs"] != "0":
            commands.append(_submits(cluster, name, user, 0))
    return commands


def _submits(cluster: str, account: str, user: str, most: int) -> list[str]:
    where = ["where", f"Name={user}", f"Account={account}", f"Cluster={cluster}"]
    return _sacctmgr("modify", "user", *where, "set", f"MaxSubmitJobs={most}")


def _defaults(cluster: str, accounts: Sequence[Mapping[str, Any]], lines: Iterable[str]) -> list[list[str]]:
    """A user's first account is the default one, unless another of the user's is it."""
    shown = dict(line.split("|") for line in lines)
    of_user: dict[str, list[str]] = {}
    for account in accounts:
        for user in account["users"]:
            of_user.setdefault(user, []).append(account["name"])
    return [
        _sacctmgr("modify", "user", "where", f"Name={user}", f"Cluster={cluster}", "set", f"DefaultAccount={mine[0]}")
        for user, mine in of_user.items()
        if user in shown and shown[user] not in mine
    ]


def _seconds(shown: str) -> int | None:
    """Of a time as sacctmgr prints it, 1-02:03:04; None: no limit."""
    found = _DURATION.fullmatch(shown)
    if not found:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def _fields(shown: str) -> list[str]:
    return shown.split(",")


def _sacctmgr(verb: str, what: str, *words: str) -> list[str]:
    return ["sacctmgr", "--immediate", "--quiet", verb, what, *words]
