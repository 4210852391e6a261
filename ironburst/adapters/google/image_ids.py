"""Names of machine images, and the list of a cluster's. Loads no SDK."""

from __future__ import annotations

import json

FORM = r"(projects/[a-z0-9.:-]+/global/images/)?(family/)?[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
WORDS = "an image's name, or projects/PROJECT/global/images/NAME"
EXAMPLE = "projects/gpu-prod-4711/global/images/ironburst-prod-h100-20261128t090000-0a1b"
LISTED_BY = "gcloud compute images list --format=json"
ARGUMENTS = "--filter=labels.ironburst-cluster=CLUSTER"


def of_pools(text: str) -> dict[str, str]:
    """Pool -> image, of what LISTED_BY prints: of each pool's family the newest. Raises ValueError."""
    try:
        listed = sorted(json.loads(text), key=lambda each: str(each["creationTimestamp"]))
        named = [(each.get("labels") or {}, each) for each in listed if each.get("family")]
        return {labels["ironburst-pool"]: each["selfLink"].partition("/v1/")[2] for labels, each in named}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(repr(error)) from None
