"""What the document says of a cloud that nodes are rented in."""

from __future__ import annotations

from pydantic import Field

from ironburst.document.monitoring import PlaceEnergy
from ironburst.document.part import Part


class ImagesDocument(Part):
    """How the images of pools are baked, and how long they stay."""

    build_type: str | None = Field(default=None, description="instance type of builds; null: the pool's own")
    keep: int = Field(default=3, description="images of a pool that stay")


class DataSet(Part):
    """Files that cloud nodes read, and where they have them."""

    kind: str = Field(description="lustre: mounted; else the cloud's own store of objects, copied to the node's disks")
    source: str = Field(description="lustre: as mount takes it; else bucket/prefix")
    path: str


class CloudDocument(Part):
    """The cloud that nodes are rented in."""

    provider: str = Field(description="as its places say")
    region: str
    account: str = Field(
        default="", description="what its calls are made in, a project or a subscription; empty: they don't name it"
    )
    secrets: dict[str, str] = Field(
        default={}, description="reference of a scheduler's secret: the same secret in this cloud's own store"
    )


class OtherCloud(CloudDocument):
    """A cloud beside the first one, with what the document says of the first one at its top."""

    data: dict[str, DataSet] = Field(default={}, description="declared data sets")
    images: ImagesDocument = ImagesDocument()
    energy: PlaceEnergy | None = Field(default=None, description="monitoring.cloud of the first; null: not declared")
