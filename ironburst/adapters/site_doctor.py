"""What `ironburst doctor` asks of hosts and BMCs: one ssh round trip, one read of an inventory. Changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ironburst.adapters.redfish.client import BmcAccess, BmcError, BmcLoginRefused, BmcUnreachable, read_hardware
from ironburst.adapters.remote import ask
from ironburst.convergence.ports import Connection, RemoteProgram
from ironburst.doctor import host_probe
from ironburst.doctor.bmcs import Bmc
from ironburst.doctor.hosts import HostAnswer
from ironburst.system import sent_program

HOST_S = 90.0
"""that a host's answer may take: its own questions have limits of 5 and 20 s"""
SSH_AT_ONCE, BMCS_AT_ONCE = 32, 16


def ask_hosts(
    questions: Mapping[str, Mapping[str, Any]],
    connections: Mapping[str, Connection],
    secret: Callable[[str], str],
) -> dict[str, HostAnswer]:
    """The answers by host; each is timed by itself, for its clock is compared with ours."""

    def one(name: str) -> HostAnswer:
        began = time.time()
        if name not in connections:
            return HostAnswer(None, "Ansible reaches it otherwise than by ssh as root or with sudo", began, began)
        program = RemoteProgram(connections[name], sent_program.text(host_probe, questions[name]))
        answer = ask({name: program}, HOST_S, secret=secret)[name]
        ended = time.time()
        try:
            found = sent_program.answer(host_probe, answer.output)
        except ValueError as error:
            return HostAnswer(None, answer.error or str(error), began, ended)
        return HostAnswer(found, "", began, ended)

    with ThreadPoolExecutor(SSH_AT_ONCE) as threads:
        return dict(zip(questions, threads.map(one, questions), strict=True))


def ask_bmcs(access: Mapping[str, BmcAccess | str]) -> Iterator[Bmc]:
    """Each BMC once, in the order given. `access`: by node; a sentence where its password couldn't be had."""

    def one(node: str) -> Bmc:
        how = access[node]
        if isinstance(how, str):
            return Bmc(node, "secret", how)
        try:
            read_hardware(how)
        except BmcLoginRefused as error:
            return Bmc(node, "refused", str(error))
        except BmcUnreachable as error:
            return Bmc(node, "untrusted" if "certificate" in str(error) else "unreachable", str(error))
        except BmcError as error:
            return Bmc(node, "broken", str(error))
        return Bmc(node, "ok")

    with ThreadPoolExecutor(BMCS_AT_ONCE) as threads:
        yield from threads.map(one, access)
