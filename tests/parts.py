"""Tests that try many points of one thing: `make test` tries some of them, and the slow tests the others."""

import pytest


def in_parts(count):
    """For parametrize: the points are shared out, for a test each; `make test` plays the first part."""
    return [pytest.param(part, marks=[pytest.mark.slow] if part else []) for part in range(count)]


def some_fast(values, *fast):
    """For parametrize: `make test` plays those of `fast`."""
    return [pytest.param(value, marks=[] if value in fast else [pytest.mark.slow]) for value in values]


def a_third(cases):
    """For parametrize: each key with each of its values; `make test` plays every third of them, of the next key others,
    and at least one.
    """
    return [
        pytest.param(*(key if isinstance(key, tuple) else (key,)), value, marks=[] if fast else [pytest.mark.slow])
        for n, (key, values) in enumerate(cases.items())
        for k, value in enumerate(values)
        for fast in [k % 3 == n % min(3, len(values))]
    ]
