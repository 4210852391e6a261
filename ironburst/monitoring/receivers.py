"""Who is told: Alertmanager's settings, of the declared `monitoring`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ironburst.document.monitoring import MonitoringDocument, RelayDocument, ToldDocument

NOBODY = "nobody"
WORDS = "{{ range .Alerts }}{{ .Annotations.summary }}\n{{ .Annotations.do }}\n\n{{ end }}"
TITLE = "{{ .Status }}: {{ .CommonLabels.alertname }}{{ with .CommonLabels.node }} {{ . }}{{ end }} ({{ len .Alerts }})"
INHIBITED: tuple[tuple[str, str, list[str]], ...] = (
    # what stops: by what, where both have the same labels
    ("NodeSilent", "ManyNodesSilent", ["hall"]),
    ("GpuThrottled", "HallThrottled", ["hall"]),
    ("PowerSupplyWithoutInput", "FeedLost", ["hall", "rack"]),
    ("InletWarm", "InletTooWarm", ["hall", "rack", "node"]),
    ("RackPowerNearLimit", "RackPowerOverLimit", ["hall", "rack"]),
    ("GpuGone|InfinibandPortDown|BmcSilent|NodeDrained", "NodeSilent", ["node"]),
    ("SlurmctldDown|SlurmdbdDown|SlurmNotAsked|ControllerDown|ControllerSilent|HallNotWatched", "HeadSilent", []),
    ("SlurmdbdDown|ManyNodesDrained|NodeDrained", "SlurmctldDown", []),
    ("ControllerSilent", "ControllerDown", []),
    ("NodeDrained", "ManyNodesDrained", []),
)


def alertmanager(monitoring: MonitoringDocument, secret: Callable[[str], str]) -> dict[str, Any]:
    """Alertmanager's settings, secrets in clear. `secret`: of a reference; what it raises is passed on."""
    receivers, routes = [], []
    for n, told in enumerate(monitoring.tell):
        name = f"{told.audience}-{n}"
        receivers.append({"name": name} | _way(told, monitoring.relay, secret))
        severities = told.severity or "page|ticket"
        matchers = [f'audience="{told.audience}"', f'severity=~"{severities}"']
        routes.append({"receiver": name, "matchers": matchers, "continue": True})
    return {
        "route": {
            "receiver": NOBODY,
            "group_by": ["alertname", "hall"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "12h",
            "routes": routes,
        },
        "inhibit_rules": [
            {"target_matchers": [f'alertname=~"{what}"'], "source_matchers": [f'alertname="{by}"'], "equal": same}
            for what, by, same in INHIBITED
        ],
        "receivers": [{"name": NOBODY}, *receivers],
    }


def _way(told: ToldDocument, relay: RelayDocument | None, secret: Callable[[str], str]) -> dict[str, Any]:
    """One receiver's configuration: a key of Alertmanager's and its list."""
    if told.mail:
        assert relay is not None  # config.monitoring_models
        sent = {"smarthost": relay.host, "from": relay.sender, "require_tls": relay.tls, "send_resolved": True}
        if relay.user and relay.password:
            sent |= {"auth_username": relay.user, "auth_password": secret(relay.password)}
        text = {"headers": {"Subject": TITLE}, "html": "", "text": WORDS}
        return {"email_configs": [{"to": ", ".join(told.mail)} | sent | text]}
    assert told.secret is not None  # likewise
    key = secret(told.secret)
    resolved = {"send_resolved": True}
    if told.service == "slack":
        return {"slack_configs": [{"api_url": key, "title": TITLE, "text": WORDS} | resolved]}
    if told.service == "teams":
        return {"msteamsv2_configs": [{"webhook_url": key, "title": TITLE, "text": WORDS} | resolved]}
    if told.service == "pagerduty":
        details = {"severity": "critical" if told.severity == "page" else "error"}
        return {"pagerduty_configs": [{"routing_key": key, "description": TITLE} | details | resolved]}
    return {"webhook_configs": [{"url": key} | resolved]}
