"""A node's update service over Redfish: ironburst.baremetal.updating.Service.

What real BMCs do differently is in docs/adr/0070. Every look is a session of its own, for a BMC that updates itself
restarts in the middle. What changes something goes around sushy's connector, which sends again what timed out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import requests
import sushy
from urllib3.exceptions import HTTPError, NewConnectionError, SSLError

from ironburst.adapters.redfish.client import (
    BmcAccess,
    BmcIncompleteAnswer,
    BmcUnavailable,
    BmcUnreachable,
    _document,
    _host_system,
    _login,
    reset_type,
)
from ironburst.adapters.redfish.link import TooMuch
from ironburst.adapters.redfish.power import check_machine, shut_down
from ironburst.baremetal import documents, inventory, updates
from ironburst.baremetal.documents import Documents
from ironburst.baremetal.hardware import Component
from ironburst.baremetal.makers import LINKS, RedfishLink
from ironburst.baremetal.said import dig, text
from ironburst.baremetal.updates import Image, Seen, Task
from ironburst.baremetal.updating import Silent, UpdateAnswer

READ: dict[str, tuple[RedfishLink, ...]] = {
    "root": (RedfishLink("UpdateService", "update", needed=True), RedfishLink("Tasks", "tasks")),
    "update": LINKS["update"],
    "tasks": (RedfishLink("Tasks", "task", many=True),),
}
"""what a look reads"""
SIMPLE = "Actions/#UpdateService.SimpleUpdate"
APPLY_TIME = "@Redfish.OperationApplyTime"
_STAGED = re.compile(r"pending|staged", re.IGNORECASE)
"""firmware that is listed and waits for a start, by its Id (NVIDIA)"""
_BOUNDARY = "ironburst-2f8c1f0be2a94d0f"


class _NotSent(BmcUnreachable):
    """There was no connection to send anything by."""


class RedfishUpdate:
    """One node's. `folder`: has each image, fetched and checked, by its SHA-256. `may_start`: the BMC may restart the
    machine by itself; `force`: a system that does not end in its time is cut off.
    """

    def __init__(self, access: BmcAccess, folder: Path, may_start: bool, force: bool = False) -> None:
        self._access, self._folder, self._may_start, self._force = access, folder, may_start, force

    # ---- looking

    def look(self, task: str | None) -> Seen:
        """Tasks, what is installed, what is staged. Raises Silent, or BmcError."""
        try:
            with _login(self._access, limited=False) as root:
                return self._look(root._conn, task)
        except (BmcUnreachable, BmcIncompleteAnswer, BmcUnavailable) as error:
            raise Silent(str(error)) from None

    def _look(self, link: Any, task: str | None) -> Seen:
        kept: list[str] = []

        def get(path: str) -> Any:
            try:
                return _document(link, path)
            except documents.RequestRefused:
                if documents.EXPAND not in path:  # it is asked once more without
                    kept.append(path)
                raise

        try:
            read = documents.read(get, links=READ)
        except documents.Incomplete as error:
            raise BmcIncompleteAnswer(f"{self._bmc} {error}") from None
        if kept:  # half a list of tasks must not look like none
            raise BmcIncompleteAnswer(f"{self._bmc} doesn't say {kept[0].removeprefix(documents.ROOT)[:80]} now")
        tasks = [found for each in read.of("task") if (found := updates.task(each.body, each.path))]
        known = {path for each in tasks for path in (each.path, each.monitor)}
        if task and task not in known and (its := self._unlisted(link, task)):
            tasks.append(its)
        installed = tuple(inventory.installed(read))
        return Seen(tuple(tasks), installed, _staged(read, installed))

    def _unlisted(self, link: Any, path: str) -> Task | None:
        """A task, or its monitor, that no list has; None: it is gone."""
        try:
            answer = link.get(path)
        except sushy.exceptions.ResourceNotFoundError:
            return None
        except sushy.exceptions.HTTPError as error:
            if error.status_code == 410:
                return None
            if 400 <= (error.status_code or 500) < 500 and not isinstance(error, sushy.exceptions.AccessError):
                return Task(path, path, "failed")  # a monitor gives what became of the request
            raise
        try:
            body = answer.json()
        except ValueError:
            body = {}
        its = updates.task(body, path) if isinstance(body, dict) else None
        return its or Task(path, path, "runs" if answer.status_code == 202 else "done")

    # ---- sending

    def send(self, component: Component, image: Image, about_to: Callable[[], None]) -> UpdateAnswer:
        """By what the BMC says it takes: an address that it fetches, else the file itself. `about_to` is called right
        before. Raises BmcLoginRefused.
        """
        begun = False
        try:
            with _login(self._access, limited=False) as root:
                link = root._conn
                way = self._way(link, image)
                if isinstance(way, str):
                    return UpdateAnswer("refused", why=way)
                url, times, simple = way
                more: dict[str, Any] = {"Targets": [component.path]}
                wish = "Immediate" if self._may_start else "OnReset"
                if wish in times:
                    more[APPLY_TIME] = wish
                about_to()
                begun = True
                answer = self._post(link, url, image, simple, more)
                if answer is not None and _refuses(answer, "Targets"):  # nothing was begun: it goes by the image alone
                    del more["Targets"]
                    answer = self._post(link, url, image, simple, more)
                return self._judged(answer)
        except _NotSent as error:
            return UpdateAnswer("later", why=str(error))
        except (BmcUnreachable, BmcIncompleteAnswer, BmcUnavailable) as error:
            return UpdateAnswer("lost" if begun else "later", why=str(error))

    def _way(self, link: Any, image: Image) -> tuple[str, list[Any], dict[str, str] | None] | str:
        """Where to, which apply times are offered, and what SimpleUpdate is told (None: the file is pushed); or why
        there is no way.
        """
        root = _document(link, documents.ROOT)
        service = _document(link, text(root, "UpdateService/@odata.id") or f"{documents.ROOT}/UpdateService") or {}
        action, scheme = dig(service, SIMPLE), image.uri.partition(":")[0].upper()
        if text(action, "target"):
            allowed = self._protocols(link, action)
            if allowed is None or scheme in allowed:
                told = {"ImageURI": image.uri} | ({"TransferProtocol": scheme} if allowed else {})
                return text(action, "target") or "", _times(action, APPLY_TIME + "Support"), told
        push = text(service, "MultipartHttpPushUri")
        if push:
            return push, _times(service, f"MultipartHttpPushUri{APPLY_TIME}Support"), None
        return f"{self._bmc} neither fetches over {scheme} nor has a MultipartHttpPushUri: use its maker's tool"

    def _protocols(self, link: Any, action: Any) -> list[Any] | None:
        """The protocols that SimpleUpdate takes; None: not said."""
        said = action.get("TransferProtocol@Redfish.AllowableValues")
        info = text(action, "@Redfish.ActionInfo")
        if said is None and info:
            described = _document(link, info)
            named = [each for each in dig(described, "Parameters") or [] if dig(each, "Name") == "TransferProtocol"]
            said = named[0].get("AllowableValues") if named else None
        return said if isinstance(said, list) else None

    def _post(
        self, link: Any, url: str, image: Image, simple: dict[str, str] | None, more: dict[str, Any]
    ) -> requests.Response | None:
        """Once. None: no answer, so it may have been begun."""
        if simple is not None:
            return self._once(link, url, json=simple | more)
        kind = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
        return self._once(link, url, data=_Parts(more, self._folder / image.sha256), headers=kind)

    def _once(self, link: Any, url: str, **sent: Any) -> requests.Response | None:
        headers = {"OData-Version": "4.0", "Accept-Encoding": "identity"} | sent.pop("headers", {})
        at = self._access.address.rstrip("/") + (_path(url) or "")  # never to another host, whatever it says
        limits = (min(10.0, self._access.timeout_s), self._access.timeout_s)
        try:
            answer: requests.Response = link._session.request(
                "POST", at, headers=headers, verify=link._verify, timeout=limits, allow_redirects=False, **sent
            )
        except (requests.RequestException, HTTPError, OSError, TooMuch) as error:
            reason = getattr(error.args[0] if error.args else None, "reason", None)
            if isinstance(error, requests.ConnectTimeout) or isinstance(reason, NewConnectionError | SSLError):
                raise _NotSent(f"{self._bmc} could not be connected to") from None
            return None
        return answer

    def _judged(self, answer: requests.Response | None) -> UpdateAnswer:
        if answer is None:
            return UpdateAnswer("lost", why=f"{self._bmc} gave no answer to the update")
        status, body = answer.status_code, _json(answer)
        if status < 300:
            place = text(body, "@odata.id") if text(body, "TaskState") else None
            return UpdateAnswer("taken", place or _path(answer.headers.get("Location")))
        if status >= 500 and not (status == 503 and dig(body, "error")):  # a web server before it, or half of it
            return UpdateAnswer("lost", why=f"{self._bmc} answers the update with HTTP {status}")
        kind: Literal["later", "refused"] = "later" if status in (409, 503) else "refused"
        return UpdateAnswer(kind, why=f"{self._bmc} refuses the update with HTTP {status}")

    # ---- starting

    def start(self) -> None:
        """Cleanly. Raises BmcError."""
        with _login(self._access, limited=False) as root:
            system = _host_system(self._access, root)
            kind = sushy.RESET_GRACEFUL_RESTART
            if system.power_state != sushy.POWER_STATE_OFF:
                check_machine(self._access, system)
            if system.power_state == sushy.POWER_STATE_OFF or kind not in system.get_allowed_reset_system_values():
                shut_down(self._access, system, self._force)
                kind = reset_type(system, sushy.RESET_ON, sushy.RESET_FORCE_ON)
            target = system._actions.reset.target_uri
            answer = self._once(root._conn, target, json={"ResetType": kind.value})
            if answer is None or answer.status_code >= 300:
                raise BmcUnavailable(f"{self._bmc} did not confirm that it starts the machine")

    @property
    def _bmc(self) -> str:
        return f"{self._access.node}: BMC {self._access.address}"


class _Parts:
    """The body of a multipart push, in the order of the specification: what is wanted, then the file. It is read from
    the disk as it goes.
    """

    def __init__(self, parameters: dict[str, Any], file: Path) -> None:
        head = f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="UpdateParameters"\r\n'
        head += f"Content-Type: application/json\r\n\r\n{json.dumps(parameters)}\r\n--{_BOUNDARY}\r\n"
        head += f'Content-Disposition: form-data; name="UpdateFile"; filename="{file.name}"\r\n'
        head += "Content-Type: application/octet-stream\r\n\r\n"
        self._head, self._tail, self._file = head.encode(), f"\r\n--{_BOUNDARY}--\r\n".encode(), file

    def __len__(self) -> int:
        return len(self._head) + self._file.stat().st_size + len(self._tail)

    def __iter__(self) -> Iterator[bytes]:
        yield self._head
        with self._file.open("rb") as file:
            while part := file.read(1 << 20):
                yield part
        yield self._tail


def _staged(read: Documents, installed: tuple[Component, ...]) -> tuple[Component, ...]:
    """What is listed beside what is installed."""
    paths = {each.path for each in installed}
    return tuple(
        Component(own, own, text(each.body, "Version"), each.path)
        for each in read.of("firmware")
        if each.path not in paths and (own := text(each.body, "Id") or "") and _STAGED.search(own)
    )


def _times(offering: Any, name: str) -> list[Any]:
    found = dig(offering, name)
    values = found.get("SupportedValues") if isinstance(found, dict) else None
    return values if isinstance(values, list) else []


def _json(answer: requests.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return {}


def _refuses(answer: requests.Response, name: str) -> bool:
    """Whether a parameter was refused, and with it all of the request."""
    said = dig(_json(answer), "error/@Message.ExtendedInfo")
    return answer.status_code == 400 and any(
        name in str(dig(each, "MessageArgs")) or name in str(dig(each, "RelatedProperties"))
        for each in (said if isinstance(said, list) else [])
    )


def _path(location: str | None) -> str | None:
    """The path of an address, which some give with a host."""
    if not location:
        return None
    path = "/" + location.split("://", 1)[-1].partition("/")[2] if "://" in location else location
    return path.rstrip("/")
