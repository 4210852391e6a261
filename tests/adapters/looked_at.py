"""What tests of a cloud whose launches take minutes ask its bench (tests/contract/cloud_benches.py)."""

from ironburst import ports


def ask(bench, port=None, **changed):
    """The answer to one look at a launch."""
    (answer,) = (port or bench.port).launch_all([bench.request(**changed)])
    return answer


def over(bench, port=None, **changed):
    """The answer when the launch is over."""
    for _ in range(20):
        answer = ask(bench, port, **changed)
        if not isinstance(answer, ports.UnderWay):
            return answer
        bench.cloud.passes(20)
    raise AssertionError(answer)


def alive(bench, port=None):
    return [each for each in (port or bench.port).instances("lab") if each.alive]


def ids(instances):
    return sorted(each.id for each in instances)
