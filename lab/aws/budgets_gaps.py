"""AWS Budgets: update, subscribers and tags, which moto lacks. Methods of BudgetsResponse (self is moto's response
object).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from moto.budgets.exceptions import DuplicateRecordException, NotFoundException
from moto.budgets.responses import BudgetsResponse

from lab.aws.capacity import stash


def budget_of(response: Any) -> Any:
    name = response._get_param("BudgetName")
    budget = response.backend.budgets[response._get_param("AccountId")].get(name)
    if not budget:
        raise NotFoundException(f"Unable to get budget: {name} - the budget doesn't exist.")
    return budget


def notification_of(response: Any, key: str = "Notification") -> Any:
    asked = response._get_param(key)
    for notification in budget_of(response).notifications:
        if notification.details == asked:
            return notification
    raise NotFoundException("Unable to get notification - the notification doesn't exist.")


def update_budget(response: Any) -> str:
    new = response._get_param("NewBudget")
    budget = response.backend.budgets[response._get_param("AccountId")].get(new["BudgetName"])
    if not budget:
        raise NotFoundException(f"Unable to update budget: {new['BudgetName']} - the budget doesn't exist.")
    kept = {key: budget.budget[key] for key in ("TimePeriod", "LastUpdatedTime")}
    budget.budget = {**kept, **new}
    return "{}"


def update_notification(response: Any) -> str:
    notification_of(response, "OldNotification").details = response._get_param("NewNotification")
    return "{}"


def describe_subscribers_for_notification(response: Any) -> str:
    return json.dumps({"Subscribers": notification_of(response).subscribers})


def create_subscriber(response: Any) -> str:
    notification, subscriber = notification_of(response), response._get_param("Subscriber")
    if subscriber in notification.subscribers:
        raise DuplicateRecordException("subscriber", subscriber["Address"])
    notification.subscribers.append(subscriber)
    return "{}"


def delete_subscriber(response: Any) -> str:
    notification, subscriber = notification_of(response), response._get_param("Subscriber")
    if subscriber not in notification.subscribers:
        raise NotFoundException("Unable to delete subscriber - the subscriber doesn't exist.")
    notification.subscribers.remove(subscriber)
    return "{}"


def update_subscriber(response: Any) -> str:
    notification, old = notification_of(response), response._get_param("OldSubscriber")
    if old not in notification.subscribers:
        raise NotFoundException("Unable to update subscriber - the subscriber doesn't exist.")
    notification.subscribers[notification.subscribers.index(old)] = response._get_param("NewSubscriber")
    return "{}"


def tags_of(response: Any) -> dict[str, str]:
    return stash(response.backend, "tags").setdefault(response._get_param("ResourceARN"), {})


def tag_resource(response: Any) -> str:
    tags_of(response).update({t["Key"]: t["Value"] for t in response._get_param("ResourceTags")})
    return "{}"


def untag_resource(response: Any) -> str:
    for key in response._get_param("ResourceTagKeys"):
        tags_of(response).pop(key, None)
    return "{}"


def list_tags_for_resource(response: Any) -> str:
    return json.dumps({"ResourceTags": [{"Key": k, "Value": v} for k, v in tags_of(response).items()]})


def patch(replace: Callable[[Any, str, Any], None]) -> None:
    """Install all of it on moto's BudgetsResponse."""
    create, delete = BudgetsResponse.create_budget, BudgetsResponse.delete_budget

    def arn(response: Any, name: str) -> str:
        return f"arn:aws:budgets::{response._get_param('AccountId')}:budget/{name}"

    def create_budget(response: Any) -> str:
        done, name = create(response), response._get_param("Budget")["BudgetName"]
        stash(response.backend, "tags")[arn(response, name)] = {
            t["Key"]: t["Value"] for t in response._get_param("ResourceTags") or []
        }
        return done

    def delete_budget(response: Any) -> str:
        done = delete(response)
        stash(response.backend, "tags").pop(arn(response, response._get_param("BudgetName")), None)
        return done

    for method in (
        create_budget,
        delete_budget,
        update_budget,
        update_notification,
        describe_subscribers_for_notification,
        create_subscriber,
        delete_subscriber,
        update_subscriber,
        tag_resource,
        untag_resource,
        list_tags_for_resource,
    ):
        replace(BudgetsResponse, method.__name__, method)
