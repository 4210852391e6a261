"""What a person gave and can't be used, for every room that reads such."""

from __future__ import annotations


class BadInput(Exception):
    """An option or an argument that can't be used; the text is one sentence."""
