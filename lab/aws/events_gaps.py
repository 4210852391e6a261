"""EventBridge delivers to a queue only if the queue's policy lets it: moto doesn't look, and a missing policy is a
common mistake.
"""

from __future__ import annotations

import fnmatch
import json
import logging
from collections.abc import Callable
from typing import Any

from moto.events.models import Rule
from moto.sqs.models import sqs_backends

log = logging.getLogger(__name__)


def values(given: Any) -> list[str]:
    return given if isinstance(given, list) else [given] if given is not None else []


def allows(statement: dict[str, Any], rule_arn: str) -> bool:
    """Whether one policy statement lets EventBridge send for a rule. Of the conditions only aws:SourceArn is looked
    at.
    """
    principal = statement.get("Principal")
    services = (
        values(principal.get("Service")) + values(principal.get("AWS"))
        if isinstance(principal, dict)
        else values(principal)
    )
    sources = [
        pattern
        for test in statement.get("Condition", {}).values()
        for key, given in test.items()
        if key.lower() == "aws:sourcearn"
        for pattern in values(given)
    ]
    return (
        statement.get("Effect") == "Allow"
        and bool({"events.amazonaws.com", "*"} & set(services))
        and any(fnmatch.fnmatchcase("sqs:sendmessage", action.lower()) for action in values(statement.get("Action")))
        and (not sources or any(fnmatch.fnmatchcase(rule_arn, pattern) for pattern in sources))
    )


def patch(replace: Callable[[Any, str, Any], None]) -> None:
    """Put the check in front of moto's delivery."""
    send = Rule._send_to_sqs_queue

    def checked(rule: Any, queue_name: str, event: dict[str, Any], group_id: str | None = None) -> None:
        queue = sqs_backends[rule.account_id][rule.region_name].queues.get(queue_name)
        policy = (getattr(queue, "policy", None) or {}) if queue else {}
        policy = json.loads(policy) if isinstance(policy, str) else policy
        if any(allows(s, rule.arn) for s in values(policy.get("Statement"))):
            send(rule, queue_name, event, group_id)
        else:
            log.warning(
                "rule %s: the policy of queue %s doesn't allow events.amazonaws.com: the event is lost",
                rule.name,
                queue_name,
            )

    replace(Rule, "_send_to_sqs_queue", checked)
