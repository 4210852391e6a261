"""Versions as numbers: never compared as text."""

import functools
import re

Version = tuple[int, ...]


@functools.cache
def version(text: str) -> Version:
    """ "580.95.05" -> (580, 95, 5); "12.8u1" -> (12, 8, 1). Raises ValueError for anything else."""
    if not re.fullmatch(r"\d+(\.\d+)*(u\d+)?", text):
        raise ValueError(f"{text!r} is not a version")
    return tuple(int(part) for part in re.split(r"[.u]", text))


def kernel_version(text: str) -> Version:
    """The leading numbers of a kernel's release: "6.12.57+deb13-amd64" -> (6, 12, 57).
    Raises ValueError where there are none.
    """
    numbers = re.match(r"\d+(\.\d+)*", text)
    if not numbers:
        raise ValueError(f"{text!r} is not a kernel version")
    return version(numbers[0])


def branch_of(driver: str) -> int:
    """ "580.95.05" -> 580."""
    return version(driver)[0]


def older(given: str, least: str | None) -> bool:
    """Is `given` older than `least`? An unknown `least` (None) says no."""
    return least is not None and version(given) < version(least)
