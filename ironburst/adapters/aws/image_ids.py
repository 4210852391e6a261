"""Ids of machine images, and the list of a cluster's. Loads no SDK."""

from __future__ import annotations

import json

FORM, WORDS = r"ami-([0-9a-f]{8}|[0-9a-f]{17})", "ami- and 8 or 17 hexadecimal digits"
EXAMPLE = "ami-0ba5e0000000000a1"
LISTED_BY = "aws ssm get-parameters-by-path"
ARGUMENTS = "--recursive --path /ironburst/CLUSTER"


def of_pools(text: str) -> dict[str, str]:
    """Pool -> image, of what LISTED_BY prints: parameters /ironburst/CLUSTER/POOL/image. Raises ValueError."""
    try:
        named = [(each["Name"].split("/"), str(each["Value"])) for each in json.loads(text)["Parameters"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(repr(error)) from None
    return {parts[3]: image for parts, image in named if len(parts) == 5 and parts[4] == "image"}
