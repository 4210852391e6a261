"""Where a launch is asked for: of each cloud another type, by its provider."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Discriminator, Tag

from ironburst.document.aws import AwsPlace
from ironburst.document.azure import AzurePlace
from ironburst.document.google import GooglePlace

_Known = Annotated[AwsPlace, Tag("aws")] | Annotated[GooglePlace, Tag("google")] | Annotated[AzurePlace, Tag("azure")]
UNKNOWN: dict[str, _Known] = {tag.tag: kind.unknown() for kind, tag in map(get_args, get_args(_Known))}
"""provider: a place of its before Pulumi has made it"""


_FIRST = next(iter(UNKNOWN))


def _provider_of(said: Any) -> Any:
    """Documents of before version 6 say no provider, and had the first one."""
    return said.get("provider", _FIRST) if isinstance(said, dict) else getattr(said, "provider", _FIRST)


Place = Annotated[_Known, Discriminator(_provider_of)]
"""of each cloud another type"""
