"""The declaration of a stack file for whoever gives up at the first thing that is wrong with it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from ironburst.config.checks import check
from ironburst.config.load import ConfigError, Finding, load
from ironburst.config.models import ClusterConfig
from ironburst.system.bad_input import BadInput


def valid(path: Path) -> ClusterConfig:
    """The declaration of a stack file. Raises BadInput with the first thing wrong."""
    try:
        config = load(path)
        errors = [finding for finding in check(config, datetime.now(UTC)) if finding.severity == "error"]
    except ConfigError as error:
        raise BadInput(first(path, error.findings)) from None
    if errors:
        raise BadInput(first(path, errors))
    return config


def first(path: Path, errors: list[Finding]) -> str:
    """The first of what is wrong with a stack file, and how many more there are."""
    more = f"; and {len(errors) - 1} more: `ironburst validate {path}` lists them" if len(errors) > 1 else ""
    where = "" if errors[0].path == str(path) else f"{path}: "
    return f"{where}{errors[0]}{more}"
