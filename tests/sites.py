"""A lab for tests with real hosts."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from lab import names
from lab.demo.inside import Inside
from lab.hosts.check import check
from lab.site import Site
from lab.system import LabError

NAMES = ("head", "dgx01", "dgx02")
LOGIN = {"login01": "10.78.0.13"}


def need_lab() -> None:
    """Skip, with the reason, where this machine can't run a lab."""
    try:
        check()
    except LabError as missing:
        pytest.skip(str(missing))


@contextmanager
def running(prefix: str, *hosts: str, hall: Mapping[str, str] = names.ADDRESSES) -> Iterator[Site]:
    """The lab `prefix` with these bare-metal hosts on (of those in `hall`); afterwards it is down, and nothing is left
    of it.
    """
    need_lab()
    site = Site(prefix)
    site.up(start=hosts, tied=True, hall=hall)
    try:
        yield site
    finally:
        site.down()
    assert not any(site.box.leftovers().values())


def munge_key(site: Site) -> str:
    """Reference to a munge key of the site's, as a document has it; the key is made here."""
    key = site.dir / "run" / "munge.key"
    key.write_bytes(b"x" * 64)
    return f"file:{key}"


def login_node(declared: dict) -> None:
    """Add a login node to what the lab's stack file declares."""
    declared["halls"][0]["nodes"].append(
        {
            "names": "login01",
            "role": "login",
            "rack": "r01",
            "units": [38],
            "height": 1,
            "addresses": LOGIN["login01"],
            "bmc": {"addresses": "http://10.78.8.13", "username": "admin", "password": "file:lab/bmc.password"},
        }
    )


def converge(inside: Inside, *options: str, code: int = 0) -> dict:
    """The receipt of `ironburst converge` on the lab's hosts; `code` is the exit code that it must end with."""
    command = inside.ironburst(
        "converge", "--document", str(inside.document), "--inventory", "inventory/lab", "--json", *options
    )
    return json.loads(inside.run(command, ok=(code,)))


def drivers(site: Site, *names: str) -> dict[str, set[str]]:
    """The driver version of each GPU of these hosts, as nvidia-smi says it."""
    query = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
    return {name: set(site.ssh(name, query).stdout.split()) for name in names}
