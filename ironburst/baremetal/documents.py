"""Reads a BMC's Redfish documents, link by link. Pure: `get` does the asking.

A BMC may be old, starting, broken or hostile. So: links are followed only on the BMC itself and once each; a listing
ends after a fixed number of pages and members; what is missing is noted, and only what an inventory can't be without
fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from ironburst.baremetal.makers import LINKS, NO_EXPAND, PIECES, SKIPPED, RedfishLink
from ironburst.baremetal.said import dicts, dig, has, text

ROOT = "/redfish/v1"
MOST_DOCUMENTS, MOST_MEMBERS, MOST_PAGES = 4000, 1000, 200
EXPAND = "$expand=."


NO_ROOT = "has no Redfish service root: is this address a BMC with Redfish?"


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
        return next((each.body for each in self.found if same(each.path, path)), {})

    def besides(self, kind: str) -> Documents:
        """Without those of a kind."""
        return replace(self, found=[each for each in self.found if each.kind != kind])


Get = Callable[[str], Any]
"""The parsed answer to a GET of a path; None: 404. Raises RequestRefused, or what ends it all."""
Several = Callable[[Sequence[str]], list[Any]]
"""Get for paths of which none waits for another: an answer for each in their order, or the RequestRefused."""
Asking = Generator[list[str], list[Any], list["Found"]]
"""Yields paths, is sent their answers as of Several, and ends with what was found."""


Links = Mapping[str, tuple[RedfishLink, ...]]


def read(
    get: Get,
    *,
    sensors: bool = False,
    links: Links = LINKS,
    without: Collection[str] = (),
    several: Several | None = None,
) -> Documents:
    """Everything that `links` names, from the service root on, but for kinds of `without`. `several` asks for more than
    one at once; without it they are got one by one. Raises Incomplete, and what these raise.
    """
    return _Reader(get, several or one_by_one(get), sensors, links, without).all()


def one_by_one(get: Get) -> Several:
    """For who can't ask for more than one at once."""
    return lambda paths: [_tried(get, path) for path in paths]


def remembered(several: Several) -> Several:
    """What was answered once isn't asked for again: for reads right after each other, with no change between them."""
    known: dict[str, Any] = {}

    def ask(paths: Sequence[str]) -> list[Any]:
        new = [path for path in dict.fromkeys(paths) if path not in known]
        known.update(zip(new, several(new) if new else [], strict=True))
        return [known[path] for path in paths]

    return ask


def _tried(get: Get, path: str) -> Any:
    try:
        return get(path)
    except RequestRefused as refused:
        return refused


class _Reader:
    """Goes down level by level: what is linked in the documents of one is asked for together."""

    def __init__(self, get: Get, several: Several, sensors: bool, links: Links, without: Collection[str]) -> None:
        self._get, self._several, self._sensors, self._links = get, several, sensors, links
        self._without, self._expand, self._pieces, self._asked = without, "", False, 0
        self._documents = Documents()
        self._seen: set[str] = set()

    def all(self) -> Documents:
        root = self._get(ROOT)
        if not isinstance(root, dict):
            raise Incomplete(NO_ROOT)
        self._expand, self._pieces = _offered(root), text(root, "Vendor") in PIECES
        self._seen.add(_key(ROOT))
        level, late = [Found("root", ROOT, root)], list[tuple[Found, RedfishLink]]()
        while level or late:
            self._documents.found += level
            self._asked = 0
            self._hold()
            wanted = [
                (here, link) for here in level for link in self._links.get(here.kind, ()) if self._is_wanted(link, here)
            ]
            now = [*late, *((here, link) for here, link in wanted if not link.late)]
            late = [(here, link) for here, link in wanted if link.late]
            level = self._below(now)
        return self._documents

    def _hold(self) -> None:
        if len(self._documents.found) + self._asked > MOST_DOCUMENTS:
            raise Incomplete(f"has more than {MOST_DOCUMENTS} documents for one node: it isn't read further")

    def _below(self, links: list[tuple[Found, RedfishLink]]) -> list[Found]:
        """What is behind these links, in their order. All that can be asked for at the same time is."""
        asking = [self._behind(here, link) for here, link in links]
        found: list[list[Found]] = [[] for _ in asking]
        answers: list[tuple[int, Any]] = [(n, None) for n in range(len(asking))]
        while answers:
            waiting: list[tuple[int, list[str]]] = []
            for n, its in answers:
                try:
                    waiting.append((n, asking[n].send(its)))
                except StopIteration as ended:
                    found[n] = ended.value
            paths = [path for _, its in waiting for path in its]
            self._asked += len(paths)
            self._hold()
            given = iter(self._several(paths) if paths else [])
            answers = [(n, [next(given) for _ in its]) for n, its in waiting]
        return [each for its in found for each in its]

    def _is_wanted(self, link: RedfishLink, here: Found) -> bool:
        if link.to in self._without or (link.sensors and not self._sensors):
            return False
        if link.unless and (text(here.body, link.unless) or dicts(here.body, link.unless)):
            return False
        return not link.cheap or bool(self._expand) or dig(here.body, "Links/ContainedBy") is None

    def _behind(self, here: Found, link: RedfishLink) -> Asking:
        value = dig(here.body, link.at)
        if value is None:
            if link.needed and here.kind == "root":
                raise Incomplete(f"has no {link.at} in its service root: it may still be starting, try again")
            return (yield from self._unlinked(here, link))
        targets = (value if isinstance(value, list) else [value])[:MOST_MEMBERS]
        if not link.many:
            wanted = self._wanted(targets, link, here)
            if self._expand and link.inside and sum(document is None for _, document in wanted) > 1:
                (answer,) = yield [_query(here.path, self._expand)]
                listed = dicts(answer, link.at)
                inside = {_key(str(each["@odata.id"])): each for each in listed if self._is_whole(each, link.to)}
                wanted = [(path, document or inside.get(_key(path))) for path, document in wanted]
            return (yield from self._documents_of(wanted, here, link))
        found: list[Found] = []
        for target in targets:
            path = self._path(target, link, here)
            if path is not None:
                found += yield from self._members(path, here, link)
        return found

    def _unlinked(self, here: Found, link: RedfishLink) -> Asking:
        """The first of its known places where something is."""
        for place in link.places:
            path = f"{here.path}/{place}"
            (document,) = yield [path]
            if isinstance(document, dict):
                self._seen.add(_key(path))
                return [Found(link.to, path, document, here.path)]
        self._documents.unsaid |= {(here.kind, link.at), (here.path, link.at)}
        return []

    def _members(self, path: str, here: Found, link: RedfishLink) -> Asking:
        """The members of a collection, page by page."""
        page: str | None = path
        found: list[Found] = []
        count = 0
        for number in range(MOST_PAGES + 1):
            if page is None:
                break
            if _key(page) in self._seen or number == MOST_PAGES:
                self._give_up(link, here, "its list never ends")
                break
            self._seen.add(_key(page))
            document = yield from self._listing(page, link, here)
            listed = document.get("Members") if document else None
            if document is None or not isinstance(listed, list):
                if document is not None:
                    self._give_up(link, here, "it lists no members")
                break
            its = listed[: MOST_MEMBERS - count]
            count += len(listed)
            found += yield from self._documents_of(self._wanted(its, link, here), here, link)
            if count > MOST_MEMBERS:
                self._give_up(link, here, f"it lists more than {MOST_MEMBERS}")
                break
            page = self._next(document, link, here)
        return found

    def _wanted(self, targets: list[Any], link: RedfishLink, here: Found) -> list[tuple[str, Any]]:
        """Of links those that are followed: their paths, and their documents where they are inside."""
        skipped = SKIPPED.get(link.to) if link.many else None
        given = [each for each in targets if isinstance(each, dict) and len(each) > 1]
        if link.many and given and not any(self._is_whole(each, link.to) for each in given):
            self._expand = ""  # this BMC's lists have pieces inside
        wanted: list[tuple[str, Any]] = []
        for target in targets:
            place = self._path(target, link, here)
            end = place.rsplit("/", 1)[1] if place else ""
            if place is None or (skipped and skipped.search(end)) or (link.only and not link.only.search(end)):
                continue
            if _key(place) not in self._seen:
                self._seen.add(_key(place))
                wanted.append((place, target if self._expand and self._is_whole(target, link.to) else None))
        return wanted

    def _is_whole(self, target: Any, kind: str) -> bool:
        """Whether a link has its document inside, and no piece of it. Cray's have no Name anywhere."""
        required = ("Id", "Name", *(("ChassisType",) if kind == "chassis" else ())) if self._pieces else ("Id",)
        return isinstance(target, dict) and all(name in target for name in ("@odata.id", *required))

    def _documents_of(self, wanted: list[tuple[str, Any]], here: Found, link: RedfishLink) -> Asking:
        """Those that are known, and the others asked for."""
        missing = [path for path, document in wanted if document is None]
        answers: dict[str, Any] = {}
        if missing and link.expanded and self._expand:
            given = zip(missing, (yield [_query(path, self._expand) for path in missing]), strict=True)
            answers = {path: answer for path, answer in given if isinstance(answer, dict)}
            missing = [path for path in missing if path not in answers]
        answers |= zip(missing, (yield missing), strict=True) if missing else {}
        found = []
        for path, document in wanted:
            body = document or self._taken(answers[path], link, here)
            if body is not None:
                found.append(Found(link.to, path, body, here.path))
        return found

    def _listing(
        self, page: str, link: RedfishLink, here: Found
    ) -> Generator[list[str], list[Any], dict[str, Any] | None]:
        if self._expand and "$expand" not in page:
            (answer,) = yield [_query(page, self._expand)]
            if isinstance(answer, dict) and isinstance(answer.get("Members"), list):
                return answer
        return self._taken((yield [page])[0], link, here)

    def _next(self, document: dict[str, Any], link: RedfishLink, here: Found) -> str | None:
        given = document.get("Members@odata.nextLink") or document.get("@odata.nextLink")
        return self._path({"@odata.id": given}, link, here) if given else None

    def _taken(self, answer: Any, link: RedfishLink, here: Found) -> dict[str, Any] | None:
        if isinstance(answer, RequestRefused):
            if link.needed:
                raise answer.error from None
            self._give_up(link, here, str(answer))
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


def _offered(root: dict[str, Any]) -> str:
    """What asks for a document with those inside that it links to, as this BMC takes it; empty: it takes nothing, or
    leaves out what is required.
    """
    features = dig(root, "ProtocolFeaturesSupported/ExpandQuery")
    if not has(features, "NoLinks", True) or any(
        all(text(root, at) == said for at, said in marks.items()) for marks in NO_EXPAND
    ):
        return ""
    return EXPAND + ("($levels=1)" if has(features, "Levels", True) else "")


def _query(path: str, query: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}{query}"


def same(path: str, other: str) -> bool:
    """Whether two paths are of one document."""
    return _key(path) == _key(other)


def _key(path: str) -> str:
    """HPE writes one path in different cases."""
    return path.rstrip("/").lower()


def _shown(path: str) -> str:
    return path.removeprefix("/redfish/v1").lstrip("/")[:80] or "the service root"
