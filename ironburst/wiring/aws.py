"""AWS."""

from __future__ import annotations

from collections.abc import Iterator

from ironburst.adapters.aws import image_ids
from ironburst.config.checks.aws.provider import allowed_accounts
from ironburst.doctor.finding import Finding
from ironburst.ports import Cloud
from ironburst.ports.images import Images
from ironburst.wiring.provider import ImageIds, Looked, Provider


def _api(region: str) -> Cloud:
    from ironburst.adapters.aws.cloud import Aws

    return Aws(region, waits=True)


def _images(region: str) -> Images:
    from ironburst.adapters.aws.images import AwsImages

    return AwsImages(region)


def _doctor(looked: Looked) -> Iterator[Finding]:
    from ironburst.adapters.aws.doctor import AwsAccount
    from ironburst.doctor.aws import examine as aws
    from ironburst.doctor.aws.site import Site

    cloud = looked.config.cloud
    assert cloud  # it is chosen by it
    account = AwsAccount(cloud.region)
    return aws.examine(
        Site(looked.config, cloud, account, looked.now, looked.document, allowed_accounts(looked.settings))
    )


_IDS = ImageIds(
    image_ids.FORM,
    image_ids.WORDS,
    image_ids.EXAMPLE,
    image_ids.LISTED_BY,
    image_ids.ARGUMENTS,
    image_ids.of_pools,
)
AWS = Provider("AWS", _api, _images, _doctor, _IDS)
