"""Firmware images: fetched once, and checked against their SHA-256 before anything is sent to a BMC."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from pathlib import Path

from ironburst.baremetal.updates import Image

TIMEOUT_S = 60.0
MOST_BYTES = 8 * 1024**3
"""packages of a whole HGX have a few GB"""


class ImageError(Exception):
    """An image that can't be had, or is another one; the text is one sentence."""


def fetched(image: Image, folder: Path) -> Path:
    """The file, in `folder`, named by its SHA-256. Raises ImageError."""
    path, digest, size = folder / image.sha256, hashlib.sha256(), 0
    if path.exists():
        return path
    part = folder / f"{image.sha256}.part"
    try:
        with urllib.request.urlopen(image.uri, timeout=TIMEOUT_S) as answer, part.open("wb") as file:
            while block := answer.read(1 << 20):
                size += len(block)
                if size > MOST_BYTES:
                    raise ImageError(f"image {image.uri} has more than {MOST_BYTES // 1024**3} GiB: it is not taken")
                digest.update(block)
                file.write(block)
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise ImageError(
            f"image {image.uri} can't be fetched from here ({reason}): what can't be checked is not sent"
        ) from None
    if digest.hexdigest() != image.sha256:
        raise ImageError(
            f"image {image.uri} has the SHA-256 {digest.hexdigest()}, declared is {image.sha256}: it is not sent"
        )
    part.replace(path)
    return path
