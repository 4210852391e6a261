"""A lab for tests with real hosts."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from lab import names
from lab.box import LabError
from lab.check import check
from lab.site import Site


def need_lab() -> None:
    """Skip, with the reason, where this machine can't run a lab."""
    try:
        check()
    except LabError as missing:
        pytest.skip(str(missing))


@contextmanager
def running(prefix: str, *hosts: str, hall: Mapping[str, str] = names.ADDRESSES) -> Iterator[Site]:
    """The lab `prefix` with these bare-metal hosts on (of those in `hall`); afterwards it is down, and nothing is left of it."""
    need_lab()
    site = Site(prefix)
    site.up(start=hosts, tied=True, hall=hall)
    try:
        yield site
    finally:
        site.down()
    assert not any(site.box.leftovers().values())
