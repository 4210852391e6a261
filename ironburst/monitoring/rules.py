"""The alert rules, as Prometheus reads them: one file for every site, for a rule without its metrics is quiet."""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml


def text() -> str:
    """A file of rules."""
    return resources.files("ironburst.monitoring").joinpath("alerts.yaml").read_text(encoding="utf-8")


def every() -> dict[str, dict[str, Any]]:
    """{name: rule}"""
    groups = yaml.safe_load(text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}
