"""Names of machine images, and the list of a cluster's. Loads no SDK."""

from __future__ import annotations

import json
import re
import zlib

GALLERY = (
    r"/subscriptions/([^/]+)/resourceGroups/([^/]+)/providers/Microsoft\.Compute/galleries/([^/]+)/images/([^/]+)"
    r"(?:/versions/([0-9.]+))?"
)
MARKET = r"[A-Za-z0-9._-]+(:[A-Za-z0-9._-]+){2}:(latest|[0-9.]+)"
FORM = f"{MARKET}|{GALLERY}"
WORDS = "PUBLISHER:OFFER:SKU:VERSION of the marketplace, or the id of an image in a gallery"
EXAMPLE = "Canonical:ubuntu-24_04-lts:server:latest"
LISTED_BY = "az sig image-version list"
ARGUMENTS = "--resource-group ironburst-CLUSTER --gallery-name ironburst_CLUSTER --gallery-image-definition POOL"


def of_market(image: str) -> bool:
    """Whether it is one of the marketplace."""
    return re.fullmatch(MARKET, image) is not None


def version(name: str) -> str:
    """The version that an image of this name is: three numbers, larger for a later one. A bake's name ends in its day,
    its time and four digits that no other has; of any other name they are a sum of it.
    """
    found = re.search(r"(\d{8})T(\d{6})-([0-9a-f]{4})$", name)
    if not found:
        return f"0.0.{zlib.crc32(name.encode()) % 2**31}"
    return f"{found[1]}.{int(found[2])}.{int(found[3], 16)}"


def of_pools(text: str) -> dict[str, str]:
    """Pool -> image, of what LISTED_BY prints: of each pool's image the newest version that counts. Raises
    ValueError.
    """
    try:
        profiles = [(each.get("publishingProfile") or {}, each) for each in json.loads(text)]
        listed = [each for profile, each in profiles if not profile.get("excludeFromLatest")]
        listed.sort(key=lambda each: [int(part) for part in each["name"].split(".")])
        return {each["tags"]["ironburst:pool"]: each["id"] for each in listed}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(repr(error)) from None
