"""The document's users, of the declaration."""

from __future__ import annotations

from ironburst.config.models import ClusterConfig
from ironburst.config.user_models import Users as Declared
from ironburst.document.user_model import Directory, SlurmAccount, SlurmQos, User, Users

TOP = "root"
"""Slurm's own account above all others"""


def users(config: ClusterConfig) -> Users:
    """Those of a site; with people that no account names in the default account. Nothing declared: no users."""
    declared = config.users
    if declared is None:
        return Users()
    own = {person.name: person.uid for person in declared.people if person.group is None}
    directory = declared.directory
    return Users(
        people=[
            User(group=person.group or person.name, **person.model_dump(exclude={"group"}))
            for person in declared.people
        ],
        groups=declared.groups | own,
        directory=Directory(**directory.model_dump(exclude_none=True)) if directory else None,
        homes=declared.homes,
        make_homes=declared.make_homes,
        rented=declared.rented,
        accounts=_accounts(declared) if config.slurm else [],
        qos=[SlurmQos(max_run_s=each.max_run, **each.model_dump(exclude={"max_run"})) for each in declared.qos],
        node_login=declared.node_login.admins if declared.node_login else None,
    )


def _accounts(declared: Declared) -> list[SlurmAccount]:
    accounts = [
        SlurmAccount(parent=each.parent or TOP, **each.model_dump(exclude={"parent"})) for each in declared.accounts
    ]
    named = {name for each in accounts for name in each.users}
    left = [person.name for person in declared.people if person.name not in named]
    if not left:
        return accounts
    default = next((each for each in accounts if each.name == declared.default_account), None)
    if default is None:
        return [*accounts, SlurmAccount(name=declared.default_account, parent=TOP, users=left)]
    grown = default.model_copy(update={"users": [*default.users, *left]})
    return [grown if each is default else each for each in accounts]
