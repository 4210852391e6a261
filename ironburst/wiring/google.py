"""Google Cloud."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from ironburst.adapters.google import image_ids
from ironburst.config.google import up_role
from ironburst.config.google.models import GoogleCloud
from ironburst.doctor.checks import CheckResult
from ironburst.doctor.declared import DeclaredSite
from ironburst.document import CloudDocument
from ironburst.ports import Cloud
from ironburst.ports.images import Images
from ironburst.system.bad_input import BadInput
from ironburst.wiring.provider import Provider, Rights


def _has_client() -> None:
    if find_spec("googleapiclient") is None:
        raise BadInput("Google Cloud needs its client: pip install 'ironburst[google]'")


def _api(there: CloudDocument) -> Cloud:
    _has_client()
    from ironburst.adapters.google.api import Api
    from ironburst.adapters.google.cloud import Google

    return Google(Api(there.account), there.region)


def _images(there: CloudDocument) -> Images:
    _has_client()
    from ironburst.adapters.google.api import Api
    from ironburst.adapters.google.images import CALLS, GoogleImages

    return GoogleImages(Api(there.account, more=CALLS), there.region)


def _doctor(site: DeclaredSite) -> Iterator[CheckResult]:
    _has_client()
    from ironburst.adapters.google.doctor import GoogleProject
    from ironburst.doctor.google import examine as google
    from ironburst.doctor.google.site import GoogleSite

    cloud = site.config.cloud_by_class(GoogleCloud)
    assert cloud  # it is chosen by it
    project = GoogleProject(cloud.project, cloud.region)
    yield from google.check(GoogleSite(site.config, cloud, project, site.now, site.document))


def _rights(wanted: Rights) -> dict[str, Any]:
    cloud = wanted.config.cloud_by_class(GoogleCloud)
    assert cloud  # it is chosen by it
    return up_role.roles(wanted.config, cloud)


GOOGLE = Provider("Google Cloud", _api, _images, _doctor, r"[^/]+/[^/]+/\d+", image_ids, _rights)
