"""What is changed in a stack's cloud, and what is said of it then: for the tests of more than one cloud."""

from datetime import UTC, datetime, timedelta

import pytest

from ironburst.config.checks import check
from ironburst.config.load import ConfigError, from_value

NOW = datetime(2026, 11, 28, tzinfo=UTC)
SOON = (NOW + timedelta(days=9)).isoformat()


def said(value, severity="error"):
    """(path below cloud, message) of what is wrong with it as a whole."""
    found = [each for each in check(from_value(value), NOW) if each.severity == severity]
    return [(each.path.partition(".cloud.")[2], each.message) for each in found]


def refused(value):
    with pytest.raises(ConfigError) as caught:
        from_value(value)
    return [(each.path.partition("ironburst:cluster.")[2], each.message) for each in caught.value.findings]


def change(path, value):
    def act(cloud):
        *above, last = path
        for key in above:
            cloud = cloud[key]
        cloud[last] = value

    return act


def pool(number=0, **changes):
    return lambda cloud: cloud["pools"][number].update(changes)


def network(**changes):
    return lambda cloud: cloud["network"].update(changes)


def malformed(declared, act, path, words):
    """A case in a table: what is changed, and the one finding, at its place and without the union's tag."""
    act(declared["cloud"])
    ((at, message),) = refused(declared)
    assert at == path and words in message, (at, message)


def wrong(declared, act, path, words):
    """A case in a table: what is changed, and one of the findings; path None: there is none."""
    act(declared["cloud"])
    found = said(declared)
    if path is None:
        assert found == []
    else:
        assert any(at == path and words in message for at, message in found), found
