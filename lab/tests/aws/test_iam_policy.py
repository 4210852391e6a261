"""The lab's IAM, the pure part: what a policy says of one action on one resource."""

import pytest

from lab.aws.iam_policy import OPERATORS, Caller, Check, NotJudged, arn_like, holds, judge, like

INSTANCE = "arn:aws:ec2:us-east-1:123456789012:instance/i-1"
CLUSTER = "ec2:ResourceTag/ironburst:cluster"


def policy(*statements):
    return [{"Version": "2012-10-17", "Statement": list(statements)}]


def allow(**more):
    return {"Effect": "Allow", "Action": "ec2:TerminateInstances", "Resource": "*", **more}


def check(**context):
    return Check("ec2:TerminateInstances", INSTANCE, {key.lower(): value for key, value in context.items()})


def test_nothing_is_allowed_that_no_statement_allows():
    assert not judge(policy(), check()).allowed
    assert not judge(policy(allow(Action="ec2:StopInstances")), check()).allowed
    assert not judge(policy(allow(Resource="arn:aws:ec2:us-east-1:123456789012:volume/*")), check()).allowed
    assert judge(policy(allow()), check()).allowed


def test_a_deny_wins_wherever_it_stands():
    deny = allow(Effect="Deny", Sid="Never")
    for statements in ((allow(), deny), (deny, allow())):
        verdict = judge(policy(*statements), check())
        assert (verdict.allowed, verdict.why) == (False, "explicit deny: Never")


def test_actions_ignore_case_and_arns_do_not():
    assert judge(policy(allow(Action="EC2:terminate*")), check()).allowed
    assert not judge(policy(allow(Resource=INSTANCE.upper())), check()).allowed


def test_a_condition_key_that_the_resource_does_not_have_does_not_match():
    statement = policy(allow(Condition={"StringEquals": {CLUSTER: "lab"}}))
    assert judge(statement, check(**{CLUSTER: ["lab"]})).allowed
    assert not judge(statement, check(**{CLUSTER: ["other"]})).allowed
    assert not judge(statement, check()).allowed


@pytest.mark.parametrize(
    ("operator", "wanted", "found", "expected"),
    [
        ("StringEquals", ["a", "b"], ["b"], True),
        ("StringEquals", ["a"], ["A"], False),
        ("StringEqualsIgnoreCase", ["a"], ["A"], True),
        ("StringNotEquals", ["a"], ["b"], True),
        ("StringNotEquals", ["a", "b"], ["b"], False),
        ("StringNotEquals", ["a"], None, True),
        ("StringEqualsIfExists", ["a"], None, True),
        ("StringEqualsIfExists", ["a"], ["b"], False),
        ("StringLike", ["p5*"], ["p5.48xlarge"], True),
        ("StringNotLike", ["p5*"], ["p5.48xlarge"], False),
        ("Bool", ["true"], ["True"], True),
        ("Null", ["true"], None, True),
        ("Null", ["false"], None, False),
        ("Null", ["false"], ["x"], True),
        ("Null", [False], ["x"], True),
        ("ArnEquals", ["arn:aws:ec2:*:1:launch-template/*"], ["arn:aws:ec2:eu:1:launch-template/lt-1"], True),
        ("ArnNotLike", ["arn:aws:ec2:*:1:launch-template/*"], ["arn:aws:ec2:eu:1:launch-template/lt-1"], False),
        ("NumericLessThanEquals", ["1"], ["1"], True),
        ("NumericGreaterThan", ["1"], ["1"], False),
        ("ForAllValues:StringEquals", ["a", "b"], ["a", "b"], True),
        ("ForAllValues:StringEquals", ["a"], ["a", "b"], False),
        ("ForAllValues:StringEquals", ["a"], None, True),
        ("ForAnyValue:StringEquals", ["a"], ["a", "b"], True),
        ("ForAnyValue:StringEquals", ["a"], None, False),
    ],
)
def test_operators(operator, wanted, found, expected):
    assert holds(operator, "aws:TagKeys", wanted, {} if found is None else {"aws:tagkeys": found}) is expected


def test_every_condition_must_hold():
    both = {"StringEquals": {CLUSTER: "lab"}, "Null": {"ec2:ResourceTag/ironburst:lease": "false"}}
    statement = policy(allow(Condition=both))
    assert not judge(statement, check(**{CLUSTER: ["lab"]})).allowed
    assert judge(statement, check(**{CLUSTER: ["lab"], "ec2:ResourceTag/ironburst:lease": ["1"]})).allowed


def test_wildcards():
    assert like("secret:key-Ab12Cd", "secret:key-??????") and not like("secret:key-Ab12CdE", "secret:key-??????")
    assert not like("axb", "a.b") and not like("a[b]", "a[b") and like("a[b]", "a[b]")
    assert not arn_like("arn:aws:ec2:us:1:2:instance/i", "arn:*:instance/i")


def test_a_trust_policy_names_who_may():
    trust = policy({"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"})
    asked = Check("sts:AssumeRole", "arn:aws:iam::123456789012:role/node")
    assert judge(trust, asked, Caller(frozenset({"ec2.amazonaws.com"}))).allowed
    assert not judge(trust, asked, Caller(frozenset({"arn:aws:iam::123456789012:root"}))).allowed


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ({"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"}, "NotAction"),
        (allow(Condition={"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}), "IpAddress"),
        (allow(Condition={"StringEquals": {"aws:x": "${aws:username}"}}), "variables"),
        (allow(Principal="*"), "Principal"),
        (allow(Condition={"StringEquals": {CLUSTER: "lab"}}), "several values"),
    ],
)
def test_what_it_does_not_know_is_never_a_silent_yes(statement, words):
    with pytest.raises(NotJudged, match=words):
        judge(policy(statement), check(**{CLUSTER: ["lab", "other"]}))


def test_the_opposites_are_named_as_iam_names_them():
    opposites = {name for name, (_, negated) in OPERATORS.items() if negated}
    assert opposites == {
        "StringNotEquals",
        "StringNotEqualsIgnoreCase",
        "StringNotLike",
        "ArnNotEquals",
        "ArnNotLike",
        "NumericNotEquals",
    }
