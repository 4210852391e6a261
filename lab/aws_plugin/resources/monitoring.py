"""Alarms and budgets."""

from __future__ import annotations

import datetime as dt
from typing import Any

from lab.aws_plugin.spec import (
    Aws,
    Resource,
    by_arn,
    changed,
    from_boto,
    input_shape,
    one,
    tag_list,
    tag_map,
    tagger,
    to_boto,
)
from lab.provider.wire import Props

ALARM = (
    "comparisonOperator evaluationPeriods datapointsToAlarm metricName namespace period statistic "
    "extendedStatistic threshold dimensions unit actionsEnabled alarmActions okActions insufficientDataActions "
    "alarmDescription treatMissingData"
)
COST_TYPES = (
    "includeCredit includeDiscount includeOtherSubscription includeRecurring includeRefund includeSubscription "
    "includeSupport includeTax includeUpfront useAmortized useBlended"
)
NOTIFICATION = "comparisonOperator notificationType threshold thresholdType"
SUBSCRIBERS = {"subscriberEmailAddresses": "EMAIL", "subscriberSnsTopicArns": "SNS"}
TIME = "%Y-%m-%d_%H:%M"  # how the provider writes a budget's period


# ---- MetricAlarm: its id is its name
def put_alarm(aws: Aws, new: Props) -> str:
    shape = input_shape(aws.client("cloudwatch"), "PutMetricAlarm")
    asked = to_boto(shape, {k: new[k] for k in ALARM.split() if new.get(k) is not None})
    tags = {"Tags": tag_list(new["tagsAll"])} if new.get("tagsAll") else {}
    aws.client("cloudwatch").put_metric_alarm(AlarmName=new["name"], **asked, **tags)
    return new["name"]


def read_alarm(aws: Aws, rid: str, _state: Props) -> Props | None:
    described = one(aws.client("cloudwatch").describe_alarms(AlarmNames=[rid])["MetricAlarms"])
    if not described:
        return None
    tags = aws.client("cloudwatch").list_tags_for_resource(ResourceARN=described["AlarmArn"])["Tags"]
    seen = {
        k: v for k, v in from_boto({**described, "Dimensions": None}).items() if k in ALARM.split() and v is not None
    }
    return {
        **seen,
        "dimensions": {d["Name"]: d["Value"] for d in described.get("Dimensions", [])},
        "name": described["AlarmName"],
        "arn": described["AlarmArn"],
        "tags": tag_map(tags),
    }


# ---- Budget: its id is `account:name`
def budgets(aws: Aws) -> Any:
    return aws.client("budgets")


def split(rid: str) -> Props:
    account, name = rid.split(":", 1)
    return {"AccountId": account, "BudgetName": name}


def budget_of(new: Props) -> Props:
    out: Props = {"BudgetName": new["name"], "BudgetType": new["budgetType"], "TimeUnit": new["timeUnit"]}
    if new.get("limitAmount") is not None:
        out["BudgetLimit"] = {"Amount": str(new["limitAmount"]), "Unit": new.get("limitUnit", "USD")}
    period = {
        boto: dt.datetime.strptime(new[wire], TIME).replace(tzinfo=dt.UTC)
        for wire, boto in (("timePeriodStart", "Start"), ("timePeriodEnd", "End"))
        if new.get(wire)
    }
    if period:
        out["TimePeriod"] = period
    if new.get("costFilters"):
        out["CostFilters"] = {f["name"]: f["values"] for f in new["costFilters"]}
    if new.get("costTypes"):
        out["CostTypes"] = {k[:1].upper() + k[1:]: v for k, v in new["costTypes"].items()}
    return out


def notification(n: Props) -> Props:
    return {
        "NotificationType": n["notificationType"],
        "ComparisonOperator": n["comparisonOperator"],
        "Threshold": float(n["threshold"]),
        "ThresholdType": n["thresholdType"],
    }


def subscribers(n: Props) -> list[Props]:
    return [
        {"SubscriptionType": kind, "Address": address}
        for key, kind in SUBSCRIBERS.items()
        for address in n.get(key) or []
    ]


def create_budget(aws: Aws, new: Props) -> str:
    account = new.get("accountId") or aws.account
    notes = [{"Notification": notification(n), "Subscribers": subscribers(n)} for n in new.get("notifications") or []]
    tags = {"ResourceTags": tag_list(new["tagsAll"])} if new.get("tagsAll") else {}
    budgets(aws).create_budget(AccountId=account, Budget=budget_of(new), NotificationsWithSubscribers=notes, **tags)
    return f"{account}:{new['name']}"


def apply_budget(aws: Aws, rid: str, old: Props, new: Props) -> None:
    where = split(rid)
    if changed(
        old, new, "limitAmount limitUnit budgetType timeUnit timePeriodStart timePeriodEnd costFilters costTypes"
    ):
        budgets(aws).update_budget(AccountId=where["AccountId"], NewBudget=budget_of(new))
    before, after = old.get("notifications") or [], new.get("notifications") or []
    for n in before:
        if n not in after:
            budgets(aws).delete_notification(**where, Notification=notification(n))
    for n in after:
        if n not in before:
            budgets(aws).create_notification(**where, Notification=notification(n), Subscribers=subscribers(n))


def read_budget(aws: Aws, rid: str, _state: Props) -> Props | None:
    where = split(rid)
    described = budgets(aws).describe_budget(**where)["Budget"]
    arn = f"arn:aws:budgets::{where['AccountId']}:budget/{where['BudgetName']}"
    notes = []
    for n in budgets(aws).describe_notifications_for_budget(**where).get("Notifications", []):
        asked = {k: n[k] for k in ("NotificationType", "ComparisonOperator", "Threshold", "ThresholdType") if k in n}
        addresses = budgets(aws).describe_subscribers_for_notification(**where, Notification=asked)["Subscribers"]
        sent = {
            key: [s["Address"] for s in addresses if s["SubscriptionType"] == kind] for key, kind in SUBSCRIBERS.items()
        }
        notes.append({**from_boto(asked), **{k: v for k, v in sent.items() if v}})
    period = {
        wire: described["TimePeriod"][boto].astimezone(dt.UTC).strftime(TIME)
        for wire, boto in (("timePeriodStart", "Start"), ("timePeriodEnd", "End"))
        if boto in described.get("TimePeriod", {})
    }
    limit = described.get("BudgetLimit", {})
    return {
        "name": described["BudgetName"],
        "budgetType": described["BudgetType"],
        "timeUnit": described["TimeUnit"],
        "accountId": where["AccountId"],
        **period,
        "limitAmount": limit.get("Amount"),
        "limitUnit": limit.get("Unit"),
        "arn": arn,
        "notifications": notes,
        "costFilters": [{"name": k, "values": v} for k, v in (described.get("CostFilters") or {}).items()],
        "costTypes": from_boto(described.get("CostTypes") or {}),
        "tags": tag_map(budgets(aws).list_tags_for_resource(ResourceARN=arn)["ResourceTags"]),
    }


SPECS = [
    Resource(
        "aws:cloudwatch/metricAlarm:MetricAlarm",
        "name " + ALARM,
        create=put_alarm,
        read=read_alarm,
        delete=lambda aws, rid, _state: aws.client("cloudwatch").delete_alarms(AlarmNames=[rid]),
        apply=lambda aws, _rid, _old, new: put_alarm(aws, new),
        tag=tagger("cloudwatch", by_arn),
        name="name",
    ),
    Resource(
        "aws:budgets/budget:Budget",
        f"name accountId budgetType limitAmount limitUnit timeUnit timePeriodStart timePeriodEnd "
        f"costFilters{{name values}} costTypes{{{COST_TYPES}}} notifications{{{NOTIFICATION} {' '.join(SUBSCRIBERS)}}}",
        create=create_budget,
        read=read_budget,
        delete=lambda aws, rid, _state: budgets(aws).delete_budget(**split(rid)),
        apply=apply_budget,
        tag=tagger("budgets", by_arn, tags="ResourceTags", keys="ResourceTagKeys"),
        name="name",
        replace="accountId",
        regional=False,
    ),
]
