"""`--on dask:ADDRESS`: the independent plays of a trace on a site's Dask workers. Results are the same, wherever."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeVar

import ironburst
from ironburst.system.bad_input import BadInput

T = TypeVar("T")
R = TypeVar("R")
KIND = "dask:"
LONGEST_CONNECT_S = 20
MOST_WAITING = 64  # plays that are asked for at once
HELP = (
    "play on the workers of a Dask scheduler, dask:tcp://HOST:8786, each with this ironburst and the extra `dask` "
    "(default: here, one play after the other)"
)


class Workers(Protocol):
    """Where plays run. Both keep the order of the items, and raise what a call raises."""

    def run(self, call: Callable[..., R], *arguments: Any) -> R:
        """One call of a function of ironburst's, to its end."""

    def each(self, call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """`run` with each of the items."""

    def map(self, call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """`call`, which runs in this process and may `run` others, on each; at once where there are workers."""


class Here:
    """This process."""

    def run(self, call: Callable[..., R], *arguments: Any) -> R:
        """At once."""
        return call(*arguments)

    def each(self, call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """One after the other."""
        return map(call, items)

    def map(self, call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """One after the other."""
        return map(call, items)


class OnDask:
    """The workers of a Dask scheduler. It gives a play that lost its worker to another one."""

    def __init__(self, client: Any, threads: ThreadPoolExecutor):
        self._client, self._threads = client, threads

    def run(self, call: Callable[..., R], *arguments: Any) -> R:
        """On some worker. Raises BadInput where that has another ironburst."""
        result: R = self._client.submit(_call, ironburst.__version__, call, *arguments, pure=False).result()
        return result

    def each(self, call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Each on some worker."""
        return self.map(partial(self.run, call), items)

    def map(self, call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Each in a thread, which waits for its workers."""
        return self._threads.map(call, items)


def add(parser: argparse.ArgumentParser) -> None:
    """The option."""
    parser.add_argument("--on", metavar="dask:ADDRESS", help=HELP)


@contextmanager
def workers(on: str | None) -> Iterator[Workers]:
    """Those of the option `--on`. Raises BadInput."""
    if on is None:
        yield Here()
        return
    if not on.startswith(KIND) or on == KIND:
        raise BadInput(f"--on is {on!r}; allowed is dask: and a scheduler's address, such as dask:tcp://head:8786")
    try:
        from distributed import Client
    except ImportError:
        raise BadInput(f"--on {on} needs Dask: pip install 'ironburst[dask]'") from None
    try:
        client = Client(on.removeprefix(KIND), timeout=LONGEST_CONNECT_S, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:
        raise BadInput(f"--on {on}: there is no Dask scheduler ({error})") from None
    with client:
        _alike(client, on)
        with ThreadPoolExecutor(MOST_WAITING) as threads:
            yield OnDask(client, threads)


def _alike(client: Any, on: str) -> None:
    """Raises BadInput, if there is no worker, or one has another ironburst than this process."""

    def version() -> str:  # it goes there as it stands: a worker may have no ironburst at all
        try:
            from ironburst import __version__
        except ImportError:
            return ""
        return __version__

    found: dict[str, str] = client.run(version)
    if not found:
        raise BadInput(f"--on {on}: the scheduler has no worker; start some with: dask worker {on.removeprefix(KIND)}")
    for address, other in sorted(found.items()):
        if other != ironburst.__version__:
            raise BadInput(_other(address, other))


def _other(worker: str, version: str) -> str:
    has = f"has ironburst {version}" if version else "has no ironburst"
    return f"the Dask worker {worker} {has}, and here it is {ironburst.__version__}: install the same on both"


def _call(version: str, call: Callable[..., R], *arguments: Any) -> R:
    """On a worker: it may have come after the others were asked for their version."""
    if version != ironburst.__version__:
        where = f"a Dask worker has ironburst {ironburst.__version__}"
        raise BadInput(f"{where}, and where it was asked from it is {version}: install the same on both")
    return partial(call, *arguments)()
