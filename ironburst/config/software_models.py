"""What a person writes of software: versions, kernels, MIG layouts and scratch space
of nodes. Part of models.py's declaration.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, WithJsonSchema, field_validator

from ironburst.software.model import Os


def _offered(value: object) -> object:
    if value == "rhel8":
        raise ValueError("rhel8 can't be managed (its Python is 3.6, Ansible needs 3.8): install rhel9 or rhel10")
    return value


System = Annotated[Os, BeforeValidator(_offered)]
"""An operating system, as a person writes it."""


EMPTY = "is empty; write a value, or leave the key out"


class Strict(BaseModel):
    """A section of the stack file: a key that it doesn't have is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @field_validator("*", mode="before")
    @classmethod
    def _of_its_kind(cls, given: Any, info: ValidationInfo) -> Any:
        """YAML's yes is True, which pydantic takes for 1, and 1 for true; and both in quotes for what is in them. An
        empty text is nothing anywhere: it would pass for a value, and be treated as a key that was left out.
        """
        if given == "":
            raise ValueError(EMPTY)
        if isinstance(given, list) and "" in given:
            raise ValueError("has an empty text in it; write a value there, or leave it out")
        field = cls.model_fields[info.field_name or ""]
        kind = str(field.annotation)
        if "str" in kind or any(isinstance(each, BeforeValidator) for each in field.metadata):
            return given
        for each in given if isinstance(given, list) else [given]:
            if "bool" in kind:
                if isinstance(each, int) and not isinstance(each, bool):
                    raise ValueError("is neither true nor false")
                if isinstance(each, str) and each.lower() in ("true", "false"):
                    raise ValueError(f"{each!r} is text; write it without quotes: {each.lower()}")
            elif "int" in kind or "float" in kind:
                if isinstance(each, bool):
                    raise ValueError("is no number; write digits alone")
                if isinstance(each, str) and re.fullmatch(r"[-+]?\d+(\.\d+)?", each.strip()):
                    raise ValueError(f"{each!r} is text; write it without quotes: {each.strip()}")
        return given


def _runtimes(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("is no container runtime; write containerd, docker, apptainer or enroot")
    return [value] if isinstance(value, str) else value


def _text(value: object) -> object:
    """580, written without quotes, is meant as text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Driver = Annotated[
    str,
    BeforeValidator(_text),
    Field(pattern=r"^\d{3}(\.\d+(\.\d+)?)?$"),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": r"^\d{3}(\.\d+(\.\d+)?)?$"}, {"type": "integer"}]}),
]
Kernel = Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+)?[A-Za-z0-9.+~_-]*$")]
DataScience = Literal["pytorch", "tensorflow", "jax", "jupyter"]
_RUNTIME = {"enum": ["containerd", "docker", "apptainer", "enroot"], "type": "string"}
Runtimes = Annotated[
    list[Literal["containerd", "docker", "apptainer", "enroot"]],
    BeforeValidator(_runtimes),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [_RUNTIME, {"type": "array", "items": _RUNTIME, "minItems": 1}]}),
]


class SoftwareChoice(Strict):
    """Versions and kinds of software for some nodes. What isn't written here comes from `software`, its profile, or a
    rule.
    """

    driver: Driver | None = Field(
        default=None,
        description="NVIDIA driver: a branch, of which the lock picks a version, or a full version",
        examples=["580", "580.95.05"],
    )
    kernel_module: Literal["auto", "open", "proprietary"] | None = Field(
        default=None, description="flavour of the driver; auto: what GPU and driver call for"
    )
    cuda: str | None = Field(
        default=None,
        pattern=r"^\d+\.\d+$",
        description="CUDA toolkit, major.minor; none: the driver branch's own",
        examples=["13.0"],
    )
    container_toolkit: str | None = Field(
        default=None,
        pattern=r"^\d+\.\d+\.\d+$",
        description="NVIDIA container toolkit; none: the catalogue's current",
        examples=["1.18.0"],
    )
    dcgm: str | None = Field(
        default=None, pattern=r"^\d+\.\d+\.\d+$", description="DCGM; none: the catalogue's current", examples=["4.6.0"]
    )
    nccl: str | None = Field(
        default=None, pattern=r"^\d+\.\d+\.\d+$", description="NCCL; none: the catalogue's current", examples=["2.30.7"]
    )
    container_runtime: Runtimes | None = Field(
        default=None,
        description="one or several of containerd, docker, apptainer, enroot (with pyxis); none: containerd",
    )
    rdma: Literal["inbox", "doca-ofed"] | None = Field(
        default=None, description="InfiniBand stack; none: inbox. Nodes with a cloud's fabric get the stack that it has"
    )
    peer_memory: Literal["auto", "dma-buf", "peermem", "none"] | None = Field(
        default=None,
        description="how network cards reach GPU memory; "
        "auto: DMA-BUF where it can work, else peermem where an OFED is",
    )
    gds: bool | None = Field(default=None, description="GPUDirect Storage")


class Software(SoftwareChoice):
    """Versions that every GPU node gets, owned or rented; `ironburst lock` makes one exact set per group of it."""

    profile: str | None = Field(
        default=None, description="a named choice of the catalogue; keys written here win", examples=["training-2026"]
    )
    slurm: str | None = Field(
        default=None, pattern=r"^\d{2}\.\d{2}$", description="Slurm release, year.month", examples=["24.11"]
    )
    slurm_packages: Literal["distribution", "schedmd"] | None = Field(
        default=None,
        description="whose packages Slurm's are: the distribution's, or SchedMD's, which `ironburst packages slurm` "
        "builds; none: the distribution's where it has the release",
    )
    kubernetes: str | None = Field(
        default=None,
        pattern=r"^1\.\d+(\.\d+)?$",
        description="kubelet of the nodes, major.minor or a full version, where the scheduler is Kubernetes; "
        "not newer than the cluster's API server",
        examples=["1.36"],
    )
    os: System = Field(default="debian13", description="operating system of the nodes that name none")
    kernel: Kernel | None = Field(
        default=None, description="kernel of the nodes that name none; none: not pinned", examples=["6.12.57"]
    )


class Mig(Strict):
    """MIG layout of some GPUs of each node."""

    gpus: list[Annotated[int, Field(ge=0)]] | None = Field(
        default=None, description="indices of the GPUs; none: all of the node"
    )
    profiles: dict[str, Annotated[int, Field(gt=0)]] = Field(
        min_length=1, description="profile: instances on each of these GPUs", examples=[{"1g.10gb": 7}]
    )


class Scratch(Strict):
    """Local scratch space of each node."""

    path: str = Field(default="/scratch", pattern=r"^/", examples=["/scratch"], description="where it is mounted")
    devices: list[str] = Field(default=[], description="block devices; none: every unused local NVMe disk")
    filesystem: Literal["xfs", "ext4"] = "xfs"
