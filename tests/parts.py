"""Tests that try many points of one thing, in parts."""

import pytest


def in_parts(count):
    """For parametrize: the points are shared out, for a test each; `make test` plays the first part."""
    return [pytest.param(part, marks=[pytest.mark.slow] if part else []) for part in range(count)]
