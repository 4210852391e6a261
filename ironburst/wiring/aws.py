"""AWS."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.adapters.aws import image_ids
from ironburst.config.checks.aws.provider import allowed_accounts
from ironburst.doctor.checks import CheckResult
from ironburst.doctor.declared import DeclaredSite
from ironburst.ports import Cloud
from ironburst.ports.images import Images
from ironburst.wiring.provider import ImageIds, Provider


def _api(region: str) -> Cloud:
    from ironburst.adapters.aws.cloud import Aws

    return Aws(region)


def _images(region: str) -> Images:
    from ironburst.adapters.aws.images import AwsImages

    return AwsImages(region)


def _doctor(site: DeclaredSite) -> Iterator[CheckResult]:
    from ironburst.adapters.aws.doctor import AwsAccount
    from ironburst.doctor.aws import examine as aws
    from ironburst.doctor.aws.site import AwsSite

    cloud = site.config.cloud
    assert cloud  # it is chosen by it
    account = AwsAccount(cloud.region)
    yield from aws.check(AwsSite(site.config, cloud, account, site.now, site.document, allowed_accounts(site.settings)))


_IDS = ImageIds(
    image_ids.FORM,
    image_ids.WORDS,
    image_ids.EXAMPLE,
    image_ids.LISTED_BY,
    image_ids.ARGUMENTS,
    image_ids.of_pools,
)
AWS = Provider("AWS", _api, _images, _doctor, _IDS)
