"""Azure."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from ironburst.adapters.azure import image_ids
from ironburst.config.azure import up_role
from ironburst.config.azure.models import AzureCloud
from ironburst.doctor.checks import CheckResult
from ironburst.doctor.declared import DeclaredSite
from ironburst.document import CloudDocument
from ironburst.ports import Cloud
from ironburst.ports.images import Images
from ironburst.system.bad_input import BadInput
from ironburst.wiring.provider import Provider, Rights


def _has_client() -> None:
    try:
        there = find_spec("azure.mgmt.compute")
    except ModuleNotFoundError:  # not even azure
        there = None
    if there is None:
        raise BadInput("Azure needs its clients: pip install 'ironburst[azure]'")


def _api(there: CloudDocument) -> Cloud:
    _has_client()
    from ironburst.adapters.azure.api import Api
    from ironburst.adapters.azure.cloud import Azure

    return Azure(Api(there.account), there.region)


def _images(there: CloudDocument) -> Images:
    _has_client()
    from ironburst.adapters.azure.api import Api
    from ironburst.adapters.azure.cloud import Azure
    from ironburst.adapters.azure.images import AzureImages

    api = Api(there.account)
    return AzureImages(api, there.region, Azure(api, there.region))


def _doctor(site: DeclaredSite) -> Iterator[CheckResult]:
    _has_client()
    from ironburst.adapters.azure.doctor import AzureSubscription
    from ironburst.doctor.azure import examine as azure
    from ironburst.doctor.azure.site import AzureSite

    cloud = site.config.cloud_by_class(AzureCloud)
    assert cloud  # it is chosen by it
    subscription = AzureSubscription(cloud.subscription, cloud.region)
    yield from azure.check(AzureSite(site.config, cloud, subscription, site.now, site.document))


def _rights(wanted: Rights) -> dict[str, Any]:
    cloud = wanted.config.cloud_by_class(AzureCloud)
    assert cloud  # it is chosen by it
    return up_role.roles(wanted.config, cloud)


AZURE = Provider(
    "Azure",
    _api,
    _images,
    _doctor,
    r"[^/]+/[^/]+/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    image_ids,
    _rights,
)
