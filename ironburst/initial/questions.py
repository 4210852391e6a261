"""What has to be known of a new site, each with how an answer is read. What the answers become: text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from ironburst import catalog
from ironburst.config.types import NAME_PATTERN, Address, Certificates, Duration, Mail, Network, Range, checked
from ironburst.initial import written
from ironburst.initial.answers import Given, Question, Wrong, hall, known, matching, rents
from ironburst.initial.aws import IMAGE
from ironburst.initial.azure import QUESTIONS as THIRD
from ironburst.initial.google import PROJECT
from ironburst.initial.rooms import REGION, RENT, ZONES
from ironburst.software import slurm_upgrade
from ironburst.software.model import Os


def _of(kind: Any) -> Callable[[Any, Given], Any]:
    def read(text: Any, _: Given) -> Any:
        try:
            return checked(kind, text)
        except ValueError as error:
            raise Wrong(str(error) if repr(text) in str(error) else f"{text!r} {error}") from None

    return read


def _one_of(*allowed: str) -> Callable[[str, Given], str]:
    def read(text: str, _: Given) -> str:
        if text.lower() in allowed:
            return text.lower()
        near = [each for each in allowed if text and each.startswith(text.lower())]
        near = near or difflib.get_close_matches(text.lower(), allowed, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise Wrong(f"{text!r} isn't known here; {hint}allowed: {', '.join(allowed)}")

    return read


def _managed(text: str, given: Given) -> str:
    chosen = _one_of("yes", "no")(text, given)
    if (given["scheduler"], chosen, given.get("nodes")) == ("kubernetes", "no", 0):
        raise Wrong("a cluster that is there has nodes, which are declared too: answer with their number under nodes")
    return chosen


_name = matching(NAME_PATTERN, "is no name: a small letter first, then small letters, digits and -, at most 32")


def _count(text: str, _: Given) -> int:
    if not text.isdecimal() or int(text) > 1000:
        raise Wrong(f"{text!r} is no number of nodes; write digits alone, from 0 to 1000")
    return int(text)


def _one_a_node(text: str, given: Given) -> list[str]:
    parts = re.findall(r"(?:[^\s,\[]|\[[^\]]*\])+", text)  # a comma in brackets is the range's
    values: list[str] = _of(Range)(parts[0] if len(parts) == 1 else parts, given)
    if len(values) != given["nodes"]:
        raise Wrong(f"{text!r} gives {len(values)} for {given['nodes']} nodes; give one each, as in gpu[01-04]")
    return values


def _addresses(text: str, given: Given) -> list[str]:
    values = _one_a_node(text, given)
    return [_of(Address)(value, given) for value in values]


def _usd(text: str, _: Given) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", text) or not float(text):
        raise Wrong(f"{text!r} is no number above zero; write digits alone, as in 5000 (no sign of money or comma)")
    return float(text)


def _mails(text: str, given: Given) -> list[str]:
    return [] if text == "none" else [_of(Mail)(each, given) for each in text.replace(",", " ").split()]


_api_server = matching(r"https://[^/\s]+", "is no API server; write for example https://10.0.0.5:6443")


def _ca(text: str, given: Given) -> str:
    try:
        return str(_of(Certificates)(Path(text).expanduser().read_text(), given))
    except Wrong:
        raise Wrong(f"{text} holds no certificate in PEM; kubeadm has it as /etc/kubernetes/pki/ca.crt") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Wrong(f"{text} can't be read: {getattr(error, 'strerror', None) or 'it is no text'}") from None


def _names(given: Given) -> str:
    prefix = "dgx" if given["platform"].startswith("dgx") else "gpu"
    return f"{prefix}[01-{given['nodes']:02}]" if given["nodes"] > 1 else f"{prefix}01"


def _there(given: Given) -> bool:
    return (given["scheduler"], given["managed"]) == ("kubernetes", "no")


def _owned(given: Given) -> bool:
    return bool(given["nodes"])


def _slurm_there(given: Given) -> bool:
    return (given["scheduler"], given["managed"]) == ("slurm", "no")


def _unpriced(given: Given) -> bool:
    return rents(given) and catalog.price(given["rent"][0], "on-demand", given["region"]) is None


def _has_head(given: Given) -> bool:
    return not given["hosted"] and not _there(given)


def _head(text: str, given: Given) -> str:
    if given["managed"] == "yes":
        return str(_of(Address)(text, given))
    host = matching(r"[A-Za-z0-9][A-Za-z0-9.-]*", "is no address and no name of a host; write for example 10.0.0.5")
    return host(text, given)


_partition = matching(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "is no partition: letters, digits, and . _ - inside; write one, as in gpu"
)


def _release(text: str, _: Given) -> str:
    if text not in slurm_upgrade.RELEASES:
        raise Wrong(f"{text!r} is no release of Slurm's that is known: {', '.join(slurm_upgrade.RELEASES[-6:])}")
    return text


def _always(default: str) -> Callable[[Given], str]:
    return lambda _: default


QUESTIONS = (
    Question("name", "Name of the stack", _name),
    Question("nodes", "How many GPU nodes do you own (0: none)", _count),
    Question("platform", "Platform (`ironburst catalog platforms` lists all)", known(catalog.platform), when=_owned),
    Question("names", "Their names", _one_a_node, _names, _owned),
    Question("addresses", "Their addresses, as in 10.0.0.[11-14]", _addresses, when=_owned),
    Question("scheduler", "Scheduler: slurm or kubernetes", _one_of("slurm", "kubernetes"), _always("slurm")),
    Question("managed", "Made by ironburst (no: it is there already)", _managed, _always("yes")),
    Question("head", "Address of the scheduler's head node", _head, when=_has_head),
    Question("partition", "Partition of the GPU nodes", _partition, _always("home"), _slurm_there),
    Question("slurm", "Release of that Slurm, as in 24.11", _release, when=_slurm_there),
    Question("api_server", "API server of the cluster, as in https://10.0.0.5:6443", _api_server, when=_there),
    Question("cluster_dns", "Address of its DNS service", _of(Address), _always("10.96.0.10"), _there),
    Question("ca", "File with its authority's certificate (PEM)", _ca, when=_there),
    Question("network", "Network of the nodes", _of(Network), written.network, hall),
    Question("os", "System of the nodes", _one_of(*get_args(Os)), _always("ubuntu2404")),
    REGION,
    PROJECT,
    *THIRD,
    RENT,
    Question("price", "Price of an hour of one such instance in that region, USD", _usd, when=_unpriced),
    ZONES,
    IMAGE,
    Question("budget", "The most for rented nodes in a month, USD", _usd, when=rents),
    Question("wait", "Mean wait that jobs should have", _of(Duration), _always("20m"), rents),
    Question("mail", "Mail addresses that are told of the budget (none: nobody)", _mails, _always("none"), rents),
)
