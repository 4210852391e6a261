"""The clouds that can be declared: a class each, by `provider`. A stack file without one means the first."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from pydantic import Discriminator, Tag

from ironburst.config.aws.models import AwsCloud
from ironburst.config.azure.models import AzureCloud
from ironburst.config.cloud_models import Cloud
from ironburst.config.google.models import GoogleCloud

_Known = Annotated[AwsCloud, Tag("aws")] | Annotated[GoogleCloud, Tag("google")] | Annotated[AzureCloud, Tag("azure")]
CLASSES: dict[str, type[Cloud]] = {tag.tag: kind for kind, tag in map(get_args, get_args(_Known))}
"""by the name under `cloud.provider`"""
DEFAULT = next(iter(CLASSES))


def provider_of(given: Any) -> Any:
    """What a declaration of a cloud says, or means."""
    return given.get("provider", DEFAULT) if isinstance(given, dict) else getattr(given, "provider", DEFAULT)


DeclaredCloud = Annotated[
    _Known,
    Discriminator(
        provider_of,
        custom_error_type="cloud_provider",
        custom_error_message=f"has a provider that isn't known; allowed are {', '.join(CLASSES)}",
    ),
]
