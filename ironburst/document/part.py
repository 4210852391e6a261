"""What all parts of the document have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """Fields that a reader doesn't know are left out; nothing is changed once it is read."""

    model_config = ConfigDict(extra="ignore", frozen=True)
