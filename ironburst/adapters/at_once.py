"""Several calls of a cloud at one time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ironburst.ports import CloudError, Instance, LaunchRequest, OutcomeUnknown

_THREADS = 8
Its = TypeVar("Its")
Result = TypeVar("Result")


def each(them: Sequence[Its], act: Callable[[Its], Result], threads: int = _THREADS) -> list[Result]:
    """The result of `act` for each, in their order."""
    if not them:
        return []
    with ThreadPoolExecutor(min(threads, len(them))) as running:
        return list(running.map(act, them))


def ended(them: Sequence[Its], end: Callable[[Its], set[str]]) -> set[str]:
    """The ids that `end` returns. Raises the first refusal, after each was tried."""

    def tried(it: Its) -> set[str] | CloudError:
        try:
            return end(it)
        except CloudError as error:
            return error

    found = set[str]()
    for answer in each(them, tried):
        if isinstance(answer, CloudError):
            raise answer
        found |= answer
    return found


def launches(
    requests: Sequence[LaunchRequest], launch: Callable[[LaunchRequest], list[Instance]], call: str
) -> list[list[Instance] | CloudError]:
    """The answer to each, in a thread of its own: a call takes seconds. `call`: what the cloud names it."""

    def launched(request: LaunchRequest) -> list[Instance] | CloudError:
        try:
            return launch(request)
        except CloudError as error:
            return error
        except Exception as error:  # whatever this is, the answers to the others count, and this one may have started
            return OutcomeUnknown(f"{call}: {type(error).__name__}: {error}")

    return each(requests, launched, len(requests))
