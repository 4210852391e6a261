"""Whatever goes wrong in a judgement is a failed check."""

import pytest

from ironburst.health.findings import Finding, Unreadable, as_verdict, fail_closed, good, healthy, run_checks


def raising(error):
    def judge(subject):
        raise error

    return judge


@pytest.mark.parametrize(
    ("judge", "text"),
    [
        (raising(Unreadable("one sentence")), "one sentence"),
        (raising(RecursionError()), "the output is nested too deeply"),
        (raising(KeyError("x")), "the parser itself failed: KeyError('x')"),
        (lambda subject: [], "nothing was judged"),
    ],
)
def test_a_judgement_that_goes_wrong_is_one_failed_finding(judge, text):
    assert fail_closed("understood", "parser", judge, "") == [Finding("understood", False, text)]


def test_each_check_is_one_finding_in_order_and_only_true_passes():
    checks = {
        "same": lambda subject: (subject == 1, "same"),
        "truthy": lambda subject: (subject, "not True itself"),
        "broken": raising(Unreadable("broken")),
        "left_out": raising(AssertionError("not asked")),
    }
    assert run_checks(checks, 1, ("left_out",)) == [
        Finding("same", True, "same"),
        Finding("truthy", False, "not True itself"),
        Finding("broken", False, "broken"),
        Finding("left_out", True, "not applicable: the inventory says so"),
    ]


def test_no_finding_is_not_healthy():
    assert not healthy([]) and as_verdict([]) == (False, "nothing was judged")
    assert as_verdict([good("a", "first"), good("b", "last")]) == (True, "last")
    assert as_verdict([good("a", "first"), Finding("b", False, "x"), Finding("c", False, "y")]) == (False, "x; y")
