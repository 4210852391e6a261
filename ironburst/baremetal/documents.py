"""Reads a BMC's Redfish documents, link by link. Pure: `get` does the asking.

A BMC may be old, starting, broken or hostile. So: links are followed only on the BMC itself and once each; a listing
ends after a fixed number of pages and members; what is missing is noted, and only what an inventory can't be without
fails.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from ironburst.baremetal.makers import LINKS, NO_EXPAND, SKIPPED, RedfishLink
from ironburst.baremetal.said import dicts, dig, has, text

ROOT = "/redfish/v1"
MOST_DOCUMENTS, MOST_MEMBERS, MOST_PAGES = 4000, 1000, 200
EXPAND = "$expand=.($levels=1)"


class Incomplete(Exception):
    """There is no inventory in these documents; the text follows "BMC ADDRESS "."""


class RequestRefused(Exception):
    """The BMC has no answer to this one request, and may have to others; `error` says why."""

    def __init__(self, error: Exception, reason: str) -> None:
        super().__init__(reason)
        self.error = error


@dataclass(frozen=True)
class Found:
    """One document, its kind (of makers.LINKS) and the path of the one that it was linked in."""

    kind: str
    path: str
    body: dict[str, Any]
    parent: str = ""


@dataclass
class Documents:
    """All that was read. `unsaid` are links that lead to nothing, as (kind, at) and as (path, at) of the document that
    they stand in; `notes` say why, in sentences.
    """

    found: list[Found] = field(default_factory=list)
    unsaid: set[tuple[str, str]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def of(self, kind: str, parent: str | None = None) -> list[Found]:
        """Those of a kind, in the order of the BMC; with `parent`, those that it links."""
        return [each for each in self.found if each.kind == kind and parent in (None, each.parent)]

    def at(self, path: str) -> dict[str, Any]:
        """The document at a path; empty: it wasn't read."""
        key = _key(path)
        return next((each.body for each in self.found if _key(each.path) == key), {})


Get = Callable[[str], Any]
"""The parsed answer to a GET of a path; None: 404. Raises RequestRefused, or what ends it all."""


Links = Mapping[str, tuple[RedfishLink, ...]]


def read(get: Get, *, sensors: bool = False, links: Links = LINKS) -> Documents:
    """Everything that `links` names, from the service root on. Raises Incomplete, and what `get` raises."""
    return _Reader(get, sensors, links).all()


class _Reader:
    def __init__(self, get: Get, sensors: bool, links: Links) -> None:
        self._get, self._sensors, self._links, self._expand = get, sensors, links, False
        self._documents = Documents()
        self._seen: set[str] = set()

    def all(self) -> Documents:
        root = self._get(ROOT)
        if not isinstance(root, dict):
            raise Incomplete("has no Redfish service root: is this address a BMC with Redfish?")
        features = dig(root, "ProtocolFeaturesSupported/ExpandQuery")
        self._expand = has(features, "NoLinks", True) and text(root, "Vendor") not in NO_EXPAND
        self._seen.add(_key(ROOT))
        queue = deque([Found("root", ROOT, root)])
        while queue:
            here = queue.popleft()
            self._documents.found.append(here)
            if len(self._documents.found) > MOST_DOCUMENTS:
                raise Incomplete(f"has more than {MOST_DOCUMENTS} documents for one node: it isn't read further")
            for link in self._links.get(here.kind, ()):
                if self._is_wanted(link, here):
                    queue.extend(self._behind(here, link))
        return self._documents

    def _is_wanted(self, link: RedfishLink, here: Found) -> bool:
        if link.sensors and not self._sensors:
            return False
        if link.unless and (text(here.body, link.unless) or dicts(here.body, link.unless)):
            return False
        return not link.cheap or self._expand or dig(here.body, "Links/ContainedBy") is None

    def _behind(self, here: Found, link: RedfishLink) -> Iterator[Found]:
        value = dig(here.body, link.at)
        if value is None:
            if link.needed and here.kind == "root":
                raise Incomplete(f"has no {link.at} in its service root: it may still be starting, try again")
            yield from self._unlinked(here, link)
            return
        for target in (value if isinstance(value, list) else [value])[:MOST_MEMBERS]:
            path = self._path(target, link, here)
            if path is None:
                continue
            if link.many:
                yield from self._members(path, here, link)
            elif _key(path) not in self._seen:
                self._seen.add(_key(path))
                document = self._ask(path, link, here)
                if document is not None:
                    yield Found(link.to, path, document, here.path)

    def _unlinked(self, here: Found, link: RedfishLink) -> Iterator[Found]:
        """The first of its known places where something is."""
        for place in link.places:
            path = f"{here.path}/{place}"
            with contextlib.suppress(RequestRefused):
                document = self._get(path)
                if isinstance(document, dict):
                    self._seen.add(_key(path))
                    yield Found(link.to, path, document, here.path)
                    return
        self._documents.unsaid |= {(here.kind, link.at), (here.path, link.at)}

    def _members(self, path: str, here: Found, link: RedfishLink) -> Iterator[Found]:
        """The members of a collection, page by page."""
        page: str | None = path
        count = 0
        for number in range(MOST_PAGES + 1):
            if page is None:
                return
            if _key(page) in self._seen or number == MOST_PAGES:
                self._give_up(link, here, "its list never ends")
                return
            self._seen.add(_key(page))
            document = self._listing(page, link, here)
            listed = document.get("Members") if document else None
            if document is None or not isinstance(listed, list):
                if document is not None:
                    self._give_up(link, here, "it lists no members")
                return
            for member in listed:
                count += 1
                if count > MOST_MEMBERS:
                    self._give_up(link, here, f"it lists more than {MOST_MEMBERS}")
                    return
                yield from self._member(member, link, here)
            page = self._next(document, link, here)

    def _member(self, member: Any, link: RedfishLink, here: Found) -> Iterator[Found]:
        place = self._path(member, link, here)
        skipped = SKIPPED.get(link.to)
        end = place.rsplit("/", 1)[1] if place else ""
        if place is None or _key(place) in self._seen or (skipped and skipped.search(end)):
            return
        if link.only and not link.only.search(end):
            return
        self._seen.add(_key(place))
        inside = self._expand and isinstance(member, dict) and "Id" in member
        document = member if inside else self._ask(place, link, here)
        if document is not None:
            yield Found(link.to, place, document, here.path)

    def _listing(self, page: str, link: RedfishLink, here: Found) -> dict[str, Any] | None:
        if self._expand and "$expand" not in page:
            try:
                answer = self._get(f"{page}{'&' if '?' in page else '?'}{EXPAND}")
            except RequestRefused:
                answer = None
            if isinstance(answer, dict) and isinstance(answer.get("Members"), list):
                return answer
        return self._ask(page, link, here)

    def _next(self, document: dict[str, Any], link: RedfishLink, here: Found) -> str | None:
        given = document.get("Members@odata.nextLink") or document.get("@odata.nextLink")
        return self._path({"@odata.id": given}, link, here) if given else None

    def _ask(self, path: str, link: RedfishLink, here: Found) -> dict[str, Any] | None:
        try:
            answer = self._get(path)
        except RequestRefused as refused:
            if link.needed:
                raise refused.error from None
            self._give_up(link, here, str(refused))
            return None
        if isinstance(answer, dict):
            return answer
        self._give_up(link, here, "it isn't there" if answer is None else "it is no Redfish document")
        return None

    def _path(self, target: Any, link: RedfishLink, here: Found) -> str | None:
        """Where a link leads, on this BMC; None: nowhere, or somewhere else."""
        path = target.get("@odata.id") if isinstance(target, dict) else target if link.at.endswith("Uri") else None
        if not isinstance(path, str) or not path:
            self._give_up(link, here, "it is no link")
            return None
        try:
            parts = urlsplit(path)
        except ValueError:
            parts = None
        mine = parts and not parts.scheme and not parts.netloc and parts.path.lower().startswith("/redfish/")
        if not mine or ".." in path or len(path) > 1000 or not path.isprintable() or "\\" in path or " " in path:
            self._give_up(link, here, "it leads off this BMC's Redfish service, and isn't followed")
            return None
        return path.partition("#")[0].rstrip("/")

    def _give_up(self, link: RedfishLink, here: Found, why: str) -> None:
        if link.needed:
            raise Incomplete(f"has no complete {link.at} of {_shown(here.path)}: {why}; it may be starting, try again")
        self._documents.unsaid |= {(here.kind, link.at), (here.path, link.at)}
        note = f"{link.at} of {_shown(here.path)}: {why}"
        if len(self._documents.notes) < 100 and note not in self._documents.notes:
            self._documents.notes.append(note)


def _key(path: str) -> str:
    """HPE writes one path in different cases."""
    return path.rstrip("/").lower()


def _shown(path: str) -> str:
    return path.removeprefix("/redfish/v1").lstrip("/")[:80] or "the service root"
