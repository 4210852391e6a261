"""No cloud: a hall of one's own."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.adapters.no_cloud import NoCloud
from ironburst.doctor.checks import CheckResult
from ironburst.doctor.declared import DeclaredSite
from ironburst.document import CloudDocument
from ironburst.ports import Cloud, Refused
from ironburst.ports.images import Images
from ironburst.wiring.provider import Provider


def _api(_: CloudDocument) -> Cloud:
    return NoCloud()


def _images(_: CloudDocument) -> Images:
    raise Refused("the document declares no cloud, so no images are baked")


def _doctor(site: DeclaredSite) -> Iterator[CheckResult]:
    seen = "none is declared, so nothing is rented; --from hall looks at the hosts and BMCs"
    yield CheckResult("cloud", site.config.name, "ok", seen)


NONE = Provider("no cloud", _api, _images, _doctor, "")
