"""The gate's settings: what would let every node pass is refused."""

import pytest

from ironburst.health.findings import Unreadable
from ironburst.health.settings import Settings, settings_from

DECLARED = {
    "driver": "580.95.05",
    "gpu_model": "H100 SXM5 80GB",
    "gpu_count": 8,
    "fabric": "infiniband",
    "fabric_links": 8,
    "mounts": ["/shared"],
}


def test_settings_from():
    settings = settings_from(DECLARED, ("xid",))
    assert settings == Settings("580.95.05", "H100 SXM5 80GB", 8, "infiniband", 8, ("/shared",))
    assert settings_from(DECLARED | {"power_limit_w": 500}, ()).power_limit_w == 500
    assert settings_from(DECLARED | {"power_limit_w": None}, ()).power_limit_w is None
    assert settings_from(DECLARED | {"not_applicable": ["xid"]}, ("xid",)).not_applicable == ("xid",)


@pytest.mark.parametrize(
    "change",
    [
        {"gpu_count": 0},
        {"gpu_count": "8"},
        {"gpu_count": True},
        {"gpu_model": ""},
        {"driver": None},
        {"fabric": "ethernet"},
        {"fabric_links": 0},
        {"mounts": "/shared"},
    ],
)
def test_settings_that_would_let_every_node_pass_are_refused(change):
    with pytest.raises(Unreadable):
        settings_from(DECLARED | change, ())
    with pytest.raises(Unreadable):
        settings_from({name: value for name, value in DECLARED.items() if name not in change}, ())
    with pytest.raises(Unreadable):
        settings_from([DECLARED], ())
