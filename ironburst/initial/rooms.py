"""Which cloud a new stack file rents in, by its region, and the questions that all of them answer."""

from __future__ import annotations

from types import ModuleType

from ironburst import catalog
from ironburst.initial import aws, azure, google
from ironburst.initial.answers import Given, Question, Wrong, known, rents

ROOMS = {"aws": aws, "google": google, "azure": azure}


def of(given: Given) -> ModuleType:
    """The cloud's; the first one's where nothing is rented."""
    region = given["region"]
    return ROOMS[catalog.region(region).provider] if region else next(iter(ROOMS.values()))


def _region(text: str, given: Given) -> str | None:
    if text == "none" and not given["nodes"]:
        raise Wrong("without nodes of your own and without a region there is nothing to declare; name a region")
    if text == "none":
        return None
    name, (first, *_) = known(catalog.region)(text, given), ROOMS
    provider = catalog.region(name).provider
    if given["hosted"] and provider != first:
        raise Wrong(f"{name} is of {provider}, where no Kubernetes of the cloud's own is made: name one of {first}")
    return name


def _rent(text: str, given: Given) -> tuple[str, int]:
    kind, _, nodes = text.partition("=")
    if not nodes.isdecimal() or not 0 < int(nodes) <= 1000:
        raise Wrong(f"{text!r}: write TYPE=NODES, as in p5.48xlarge=2")
    provider = catalog.region(given["region"]).provider
    return known(lambda name: catalog.instance_type(name, provider))(kind, given), int(nodes)


REGION = Question("region", "Region of a cloud to rent in (none: rent nothing)", _region)
RENT = Question(
    "rent",
    "Instance type to rent, and how many at most, as in p5.48xlarge=2",
    _rent,
    lambda given: of(given).like_home(given),
    rents,
)
ZONES = Question(
    "zones", "Zones", lambda text, given: of(given).zones(text, given), lambda given: of(given).where(given), rents
)
