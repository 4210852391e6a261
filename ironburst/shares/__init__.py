"""A team's part of the owned GPUs, under Slurm and under Kubernetes: docs/adr/0036. Pure.

Each team has a guarantee of the GPUs that all share, and may use idle ones over quota. Work over quota ends when
somebody's guarantee needs its place; other work never does.
"""

from __future__ import annotations

from ironburst.shares.model import Quota, SharedJob, TeamShare
from ironburst.shares.quota import guarantees, kinds, quotas

__all__ = ["Quota", "SharedJob", "TeamShare", "guarantees", "kinds", "quotas"]
