"""One stub package, and the texts that stubs are made of.

Every description begins with STUB and every tool says so.
"""

from dataclasses import dataclass, field
from pathlib import Path

STUBS = Path(__file__).with_name("stubs")


@dataclass(frozen=True)
class StubPackage:
    """One .deb. `files` is {path: content}; a content that begins with #! is executable."""

    name: str
    version: str
    depends: str = ""
    conflicts: str = ""
    provides: str = ""
    files: dict[str, str] = field(default_factory=dict)
    enable: tuple[str, ...] = ()  # units that the package enables and starts, as NVIDIA's do
    after_install: str = ""  # shell lines, in postinst
    before_removal: str = ""  # shell lines, in prerm: also before an upgrade


def tool(name: str, **values: str) -> str:
    """The text of stubs/<name>, with @KEY@ replaced by each of `values`."""
    text = (STUBS / name).read_text()
    for key, value in values.items():
        text = text.replace(f"@{key.upper()}@", value)
    return text


def says(name: str, version_words: str, answer: str) -> str:
    """A tool that answers `version_words` with `answer`, and anything else with the word STUB and status 1."""
    known = f'[ "$*" = "{version_words}" ] && echo "{answer}" && exit 0'
    return f'#!/bin/sh\n# STUB of the lab\n{known}\necho "{name}: STUB of the lab" >&2\nexit 1\n'


def unit(description: str, service: str, head: str = "", wanted_by: str = "multi-user.target") -> str:
    """A systemd unit; `service` and `head` are lines of [Service] and [Unit]."""
    return (
        f"[Unit]\nDescription={description} (STUB of the lab)\n{head}"
        f"[Service]\n{service}"
        f"[Install]\nWantedBy={wanted_by}\n"
    )
