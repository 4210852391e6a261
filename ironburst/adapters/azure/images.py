"""Images of a gallery: a definition has versions."""

from __future__ import annotations

import re

from ironburst.adapters.answers import read
from ironburst.adapters.azure import errors
from ironburst.adapters.azure.api import Api, Json, refused
from ironburst.ports import CloudError

_LIST = "gallery_image_versions.list_by_gallery_image"
_ID = re.compile(
    r"/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft\.Compute/galleries/([^/]+)/images/([^/]+)",
    re.IGNORECASE,
)


def newest(api: Api, reference: str) -> str | None:
    """The id of the newest version that is ready; None: there is none. Raises CloudError."""
    found = _ID.fullmatch(reference)
    if not found:
        raise refused(f"{reference!r} is no id of an image in a gallery (.../galleries/GALLERY/images/NAME)")
    subscription, group, gallery, image = found.groups()
    if subscription != api.subscription:
        raise refused(f"{reference!r}: images are baked in the subscription {api.subscription}")
    try:
        listed = api.all(_LIST, group, gallery, image)
    except CloudError as error:
        if any(errors.is_missing(error, name) for name in (group, gallery, image)):
            return None
        raise
    versions = [each for each in listed if read(_LIST, _ready, each)]
    if not versions:
        return None
    return str(max(versions, key=lambda each: read(_LIST, _number, each))["id"])


def _ready(version: Json) -> bool:
    properties = version["properties"]
    held_back = (properties.get("publishingProfile") or {}).get("excludeFromLatest", False)
    return properties["provisioningState"] == "Succeeded" and not held_back


def _number(version: Json) -> tuple[int, ...]:
    return tuple(int(part) for part in version["name"].split("."))
