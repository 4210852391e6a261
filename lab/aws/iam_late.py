"""IAM as the rest of AWS knows it: a change of a policy, and a new role or instance profile, arrive after a while.

At once unless a test says `late(LATE_S)`, or LAB_IAM_LATE_S does for all: README.md says why.
"""

from __future__ import annotations

import datetime as dt
import functools
import os
from collections.abc import Callable
from typing import Any

from moto.iam import models
from moto.iam.models import IAMBackend

from lab.aws import clock

LATE_S = 30.0
"""that IAM's changes took where they were measured"""
CHANGES = tuple(f"{verb}_{who}_policy" for verb in ("put", "delete", "attach", "detach") for who in ("role", "user"))
AT_FIRST_S = float(os.environ.get("LAB_IAM_LATE_S") or 0.0)
_late = dt.timedelta(seconds=AT_FIRST_S)


def late(seconds: float = AT_FIRST_S) -> None:
    """From now on changes arrive so late."""
    global _late
    _late = dt.timedelta(seconds=seconds)


def unknown_yet(made: dt.datetime) -> bool:
    """Whether what was made then is nowhere known but in IAM."""
    return clock.now() - made.replace(tzinfo=None) < _late


def known(holder: Any, policies_of: Callable[[Any], tuple[Any, ...]]) -> tuple[Any, ...]:
    """The policies of a role or user that are in force: those of before, until a change has arrived."""
    before = [policies for changed, policies in getattr(holder, "lab_before", ()) if unknown_yet(changed)]
    return before[0] if before else policies_of(holder)


def patch(replace: Callable[[Any, str, Any], None], policies_of: Callable[[Any], tuple[Any, ...]]) -> None:
    replace(models, "utcnow", clock.now)
    for name in CHANGES:
        replace(IAMBackend, name, _noted(IAMBackend.__dict__[name], policies_of))


def _noted(change: Callable[..., Any], policies_of: Callable[[Any], tuple[Any, ...]]) -> Callable[..., Any]:
    @functools.wraps(change)
    def call(backend: IAMBackend, *args: Any, **kwargs: Any) -> Any:
        everybody: list[Any] = [*backend.roles.values(), *backend.users.values()]
        holders = {each.name: each for each in everybody}
        said = [*args, *kwargs.values()]
        found = [holders[each] for each in said if isinstance(each, str) and each in holders]
        before = [(holder, (clock.now(), policies_of(holder))) for holder in found]
        done = change(backend, *args, **kwargs)
        for holder, kept in before:
            holder.__dict__.setdefault("lab_before", []).append(kept)
        return done

    return call
