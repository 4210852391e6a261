"""EventBridge delivers to a queue only if the queue's policy lets it: moto doesn't look, and a missing policy is a
common mistake.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from moto.events.models import Rule

from lab.aws.iam import queue_policy
from lab.aws.iam_calls import Account
from lab.aws.iam_policy import Caller, NotJudged, judge

log = logging.getLogger(__name__)
EVENTS = Caller(frozenset({"events.amazonaws.com"}))


def delivers(rule: Any, queue_name: str) -> bool:
    """Whether the queue's policy lets EventBridge send for a rule."""
    where = Account(rule.account_id, rule.region_name)
    arn = where.arn("sqs", queue_name)
    policy = queue_policy(where, arn)
    try:
        return (
            bool(policy)
            and judge([policy], where.check("sqs:SendMessage", arn, {"aws:SourceArn": [rule.arn]}), EVENTS).allowed
        )
    except NotJudged as error:
        log.warning("the policy of queue %s: %s", queue_name, error)
        return False


def patch(replace: Callable[[Any, str, Any], None]) -> None:
    """Put the check in front of moto's delivery."""
    send = Rule._send_to_sqs_queue

    def checked(rule: Any, queue_name: str, event: dict[str, Any], group_id: str | None = None) -> None:
        if delivers(rule, queue_name):
            send(rule, queue_name, event, group_id)
        else:
            log.warning(
                "rule %s: the policy of queue %s doesn't allow events.amazonaws.com: the event is lost",
                rule.name,
                queue_name,
            )

    replace(Rule, "_send_to_sqs_queue", checked)
