"""How every verb's arguments are read: an option that counts once is refused the second time, and a typo among choices
is answered with what may have been meant. argparse does neither (before Python 3.14).
"""

from __future__ import annotations

import argparse
import ipaddress
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn, TypeAlias

from ironburst.system.bad_input import BadInput
from ironburst.system.near import nearest, suggested

Ip: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

CHOICES = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)", re.DOTALL)
"""of argparse, with and without quotes around each"""


class Once(argparse._StoreAction):
    """Of the second value that is given, argparse would keep the last and drop the others without a word."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Store it. Ends the process if it was stored before."""
        assert isinstance(parser, Parser)
        if option and self.dest in parser.stored:
            raise argparse.ArgumentError(self, "is given twice, and one value counts: give it once")
        parser.stored.add(self.dest)
        super().__call__(parser, namespace, values, option)


class Keyed(argparse._AppendAction):
    """Of KEY=VALUE, where each key has one value: a dict would keep the last."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Append it. Ends the process if its key was given before."""
        key, equals, _ = str(values).partition("=")
        if equals and key in {each.partition("=")[0] for each in getattr(namespace, self.dest)}:
            raise argparse.ArgumentError(self, f"{key} is given twice: give it one value")
        super().__call__(parser, namespace, values, option)


class Parser(argparse.ArgumentParser):
    """Of the command, and of each verb. `groups`: title -> verb -> its line, as --help lists them. An epilog of several
    lines is printed as it is.
    """

    groups: Mapping[str, Mapping[str, str]] = {}
    stored: set[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "\n" in (kwargs.get("epilog") or ""):
            kwargs["formatter_class"] = argparse.RawDescriptionHelpFormatter
        super().__init__(*args, **kwargs)
        for name in (None, "store"):
            self.register("action", name, Once)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse's."""
        self.stored = set()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """As argparse's, and what may have been meant."""
        if found := CHOICES.search(message):
            near = suggested(nearest(found[1], re.sub(r"['\s]", "", found[2]).split(",")))
            message += f": {near}" if near else ""
        super().error(message)

    def format_help(self) -> str:
        """As argparse's, with the verbs by what they are for."""
        if not self.groups:
            return super().format_help()
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        assert self._subparsers
        (verbs,) = self._subparsers._group_actions
        shown = verbs._ChoicesPseudoAction  # type: ignore[attr-defined]
        sections = {
            title: [shown(verb, (), line) for verb, line in named.items()] for title, named in self.groups.items()
        }
        for title, actions in {**sections, "options": self._optionals._group_actions}.items():
            formatter.start_section(title)
            formatter.add_arguments(actions)
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


def address(option: str, text: str, like: str) -> tuple[Ip, int]:
    """Of ADDRESS:PORT; `like`: one that may be written. Raises BadInput."""
    host, _, port = text.rpartition(":")
    host = {"localhost": "127.0.0.1"}.get(host, host.removeprefix("[").removesuffix("]"))
    with suppress(ValueError):
        if 0 <= int(port) < 65536:
            return ipaddress.ip_address(host), int(port)
    raise BadInput(
        f"{option} {text!r}: write an IP address and a port, as in {like} or [::1]:{like.rpartition(':')[2]}"
    )
