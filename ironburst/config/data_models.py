"""Data sets that cloud nodes are given, as a person declares them (`cloud.data`): what all clouds have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, model_validator

from ironburst.config.software_models import Strict

# of keys what means nothing in a policy or a condition, a path or a URL
_PREFIX = re.compile(r"[A-Za-z0-9!_.'()=-]+(/[A-Za-z0-9!_.'()=-]+)*")


def _name(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", value):
        raise ValueError("is not a name of a data set: letters, digits, and _ . - inside, at most 63")
    return value


def place_in(bucket_form: str, scheme: str) -> Callable[[str], str]:
    """What checks bucket/prefix in a cloud's store of objects, by the form of its buckets' names."""

    def place(value: str) -> str:
        bucket, _, prefix = value.removesuffix("/").partition("/")
        good = re.fullmatch(bucket_form, bucket) and (not prefix or _PREFIX.fullmatch(prefix))
        if not good or {".", ".."} & set(prefix.split("/")):
            example = "write for example training-data/imagenet"
            raise ValueError(f"is not bucket/prefix; {example}, without {scheme} and wildcards")
        return value.removesuffix("/")

    return place


DataName = Annotated[str, AfterValidator(_name)]


class Data(Strict):
    """Files that nodes read."""

    foreign: ClassVar[Sequence[str]] = ()
    """keys of other clouds' sources"""
    own: ClassVar[str] = ""
    """what to write instead"""

    path: str | None = Field(
        default=None,
        pattern=r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$",
        examples=["/data/imagenet"],
        description="where nodes have it, read-only; none: /data/ and its name",
    )

    @model_validator(mode="before")
    @classmethod
    def _of_this_cloud(cls, given: Any) -> Any:
        others = [key for key in cls.foreign if isinstance(given, dict) and key in given]
        if others:
            raise ValueError(f"has {others[0]}, which another cloud's nodes read; this one's {cls.own}")
        return given

    def where(self, name: str) -> str:
        """The folder in which nodes have it."""
        return self.path or f"/data/{name}"

    def comes_from(self, region: str) -> tuple[str, str]:
        """The kind and the source of a DataSet of the document."""
        raise NotImplementedError
