"""Data sets that cloud nodes are given, as a person declares them (`cloud.data` of ironburst.config.models)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, model_validator

from ironburst.config.data_models import Data, place_in

_place = place_in(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]", "s3://")


class DataSet(Data):
    """Files that nodes read: copied from S3 before the node takes jobs, or on FSx for Lustre. One source."""

    foreign: ClassVar[tuple[str, ...]] = ("gs",)
    own: ClassVar[str] = "copy from s3 (bucket/prefix), or mount fsx"

    s3: Annotated[str, AfterValidator(_place)] | None = Field(
        default=None,
        description="bucket/prefix: all objects below prefix/ are copied to the node's disks",
        examples=["training-data/imagenet"],
    )
    kms_key: str | None = Field(
        default=None,
        pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$",
        examples=["arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789"],
        description="ARN of the key that its objects are encrypted with (s3), no alias; none: S3's own",
    )
    fsx: str | None = Field(
        default=None,
        pattern=r"^fs-[0-9a-f]{8,}$",
        examples=["fs-0123456789abcdef0"],
        description="file system that is there, of FSx for Lustre",
    )
    mount_name: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_-]{1,8}$",
        examples=["fsx"],
        description="the file system's mount name (fsx)",
    )

    @model_validator(mode="after")
    def _one_source(self) -> DataSet:
        if (self.s3 is None) == (self.fsx is None):
            raise ValueError("needs one source: s3 (bucket/prefix), or fsx with mount_name")
        if (self.fsx is None) != (self.mount_name is None):
            raise ValueError("needs mount_name beside fsx, and only there: `aws fsx describe-file-systems` shows it")
        if self.kms_key and not self.s3:
            raise ValueError("has a kms_key without s3: FSx decrypts by itself, leave it out")
        return self

    def comes_from(self, region: str) -> tuple[str, str]:
        """The kind and the source of a DataSet of the document."""
        if self.s3:
            return "s3", self.s3
        domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        return "lustre", f"{self.fsx}.fsx.{region}.{domain}@tcp:/{self.mount_name}"
