"""AWS."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ironburst.adapters.aws import image_ids
from ironburst.config.aws import sizes, up_policies
from ironburst.config.aws.models import AwsCloud
from ironburst.config.checks.aws.provider import allowed_accounts
from ironburst.doctor.checks import CheckResult
from ironburst.doctor.declared import DeclaredSite
from ironburst.document import CloudDocument
from ironburst.ports import Cloud
from ironburst.ports.images import Images
from ironburst.system.bad_input import BadInput
from ironburst.wiring.provider import Provider, Rights


def _api(there: CloudDocument) -> Cloud:
    from ironburst.adapters.aws.cloud import Aws

    return Aws(there.region, waits=True)


def _images(there: CloudDocument) -> Images:
    from ironburst.adapters.aws.images import AwsImages

    return AwsImages(there.region)


def _doctor(site: DeclaredSite) -> Iterator[CheckResult]:
    from ironburst.adapters.aws.doctor import AwsAccount
    from ironburst.doctor.aws import examine as aws
    from ironburst.doctor.aws.site import AwsSite

    cloud = site.config.cloud_by_class(AwsCloud)
    assert cloud  # it is chosen by it
    account = AwsAccount(cloud.region)
    yield from aws.check(AwsSite(site.config, cloud, account, site.now, site.document, allowed_accounts(site.settings)))


def _rights(wanted: Rights) -> dict[str, Any]:
    cloud = wanted.config.cloud_by_class(AwsCloud)
    assert cloud  # it is chosen by it
    if not cloud.iam.permissions_boundary:
        raise BadInput(
            "cloud.iam.permissions_boundary isn't declared: who may make roles without one can give himself any right, "
            "so there is no narrow policy for `up`; declare the boundary's ARN"
        )
    known = allowed_accounts(wanted.settings)
    account = wanted.account or (known[0] if len(known) == 1 else "")
    if not re.fullmatch(r"\d{12}", account):
        raise BadInput("which account? write --account with its 12 digits, or aws:allowedAccountIds in the stack file")
    return up_policies.policies_of(wanted.config, cloud, replace(sizes.where(cloud), account=account))


AWS = Provider("AWS", _api, _images, _doctor, r"i-[0-9a-f]+", image_ids, _rights)
