"""Data sets of Google Cloud's nodes, as a person declares them (`cloud.data`)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from ironburst.config.data_models import Data, place_in

_place = place_in(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", "gs://")


class GoogleDataSet(Data):
    """Files that nodes read: copied from Cloud Storage before the node takes jobs."""

    foreign: ClassVar[tuple[str, ...]] = ("s3", "fsx")
    own: ClassVar[str] = "copy from gs (bucket/prefix)"

    gs: Annotated[str, AfterValidator(_place)] = Field(
        description="bucket/prefix in Cloud Storage: all objects below prefix/ are copied to the node's disks",
        examples=["training-data/imagenet"],
    )

    def comes_from(self, region: str) -> tuple[str, str]:
        """The kind and the source of a DataSet of the document."""
        del region  # a bucket's name is all of Google's
        return "gs", self.gs
