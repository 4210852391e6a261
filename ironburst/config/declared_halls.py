"""The declared halls of a stack file, as far as a verb of theirs needs it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Protocol, TypeVar

from ironburst.config.checks import halls as hall_checks
from ironburst.config.checks import metal, names
from ironburst.config.checks.common import Findings
from ironburst.config.finding import ConfigError
from ironburst.config.load import load
from ironburst.config.models import ClusterConfig
from ironburst.system.bad_input import BadInput

SHAPE: tuple[Callable[[ClusterConfig], Findings], ...] = (
    metal.one_value_a_node,
    metal.platforms,
    metal.rack_units,
    names.duplicates,
    hall_checks.cables,
    hall_checks.switches,
)
"""what must be right before anything is planned"""


class Named(Protocol):
    """A hall, as it is declared or as its rules see it."""

    @property
    def name(self) -> str:
        """Of the hall."""


AnyHall = TypeVar("AnyHall", bound=Named)


def usable(path: Path) -> ClusterConfig:
    """The declaration, as far as a hall needs it. Raises BadInput with all that keeps it from being planned."""
    try:
        config = load(path)
    except ConfigError as error:
        raise BadInput(f"{path}: {error}") from None
    wrong = [found for check in SHAPE for found in check(config) if found.severity == "error"]
    if wrong:
        raise BadInput("\n".join(f"{path}: {found}" for found in wrong))
    return config


def one(halls: Iterable[AnyHall], asked: str | None) -> AnyHall:
    """The hall that --hall names; without it, the only one. Raises BadInput."""
    by_name = {hall.name: hall for hall in halls}
    return by_name[chosen(by_name, asked, "no halls are declared")]


def chosen(names: Collection[str], asked: str | None, none: str) -> str:
    """The name that --hall has; without it, the only one. `none`: why there may be none. Raises BadInput."""
    if asked is None and len(names) == 1:
        return next(iter(names))
    if asked is None or asked not in names:
        option = f"--hall {asked}" if asked else "--hall"
        raise BadInput(f"{option}: name one of {', '.join(names) or f'none: {none}'}")
    return asked
