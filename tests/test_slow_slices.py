"""The slow tests' slices: each test is in one, none takes longer than CI's limit, and a run is recorded as it was."""

from dataclasses import replace

import pytest

from tests import slices
from tests.slices import LEAST, LIMIT_S, Result, Row

pytest_plugins = ["pytester"]
ROWS = slices.read()
DAY = "2026-12-01"


@pytest.fixture(scope="module")
def slow(request):
    """Ids of slow tests: those that this run collected (in `make test` all of them), and one for each row."""
    return sorted({*request.config.stash[slices.SLOW], *(_of(name) for name in ROWS)})


def _of(name):
    """A test that the row is about."""
    module, _, rest = name.partition("[")
    return name if "::" in name else f"{module}::test_x" + (f"[{rest}" if rest else "")


def test_every_slow_test_is_in_one_slice_or_is_too_long_for_any(slow):
    numbers = range(1, slices.number_of_slices(ROWS) + 1)
    assert len(numbers) >= LEAST
    for test in slow:
        number, name = slices.slice_of(test, ROWS), slices.row_of(test, ROWS)
        assert number in numbers or (number is None and ROWS[name].seconds > LIMIT_S), test
    assert {slices.slice_of(test, ROWS) for test in slow} >= set(numbers), "a slice is empty"


def test_each_row_is_about_something():
    """A module that was renamed, or a function: `make test-slow` would never see it again."""
    for name in ROWS:
        path = slices.ROOT / slices.module_of(name)
        function = name.partition("::")[2].partition("[")[0]
        assert path.is_file() and f"def {function}" in path.read_text(), f"{name}: no such test: change tests/slow.csv"


def test_no_slice_takes_longer_than_ci_gives_it():
    late = {number: each.seconds for number, each in slices.slices(ROWS).items() if each.seconds > LIMIT_S}
    assert late == {}, "`make slices`"


def test_the_page_shows_what_is_recorded():
    assert (slices.ROOT / slices.PAGE).read_text() == slices.table(ROWS), "stale: run `make slices`"


def test_divided_by_what_is_known():
    rows = {name: Row(name, seconds=seconds) for name, seconds in times()}
    after = slices.divided(rows)
    assert after["c.py"].slice is None  # 25 minutes
    number = slices.number_of_slices(after)
    each = slices.slices(after)
    assert number >= LEAST and all(part.rows for part in each.values())
    where = [row.slice for row in after.values() if row.slice]
    assert list(after) == list(rows) and where == sorted(where)  # neighbours stay together
    costs = [sum(60.0 if row.seconds is None else row.seconds for row in part.rows) for part in each.values()]
    assert max(costs) <= slices.FULL_S


def times():
    yield "c.py", 1500.0
    for number in range(150):
        yield f"m{number:03}.py", (30.0, 60.0, None, 200.0, 60.0)[number % 5]


def test_a_new_module_is_in_the_same_slice_in_every_process():
    assert slices.slice_of("new/test_new.py::test_x[1]", ROWS) == slices.slice_of("new/test_new.py", ROWS)


@pytest.mark.parametrize(
    ("row", "test"),
    [
        ("a.py", "a.py::test_x"),
        ("a.py", "a.py::test_x[1/2]"),
        ("a.py::test_y", "a.py::test_y[3]"),
        ("a.py[rhel9]", "a.py::test_z[rhel9]"),
        ("a.py::test_z[debian12]", "a.py::test_z[debian12]"),
        ("a.py", "a.py::test_yy"),
        ("b.py", "b.py::test_x"),
    ],
)
def test_the_row_of_a_test(row, test):
    rows = {name: Row(name, 1) for name in ("a.py", "a.py::test_y", "a.py[rhel9]", "a.py::test_z[debian12]")}
    assert slices.row_of(test, rows) == row


OLD = Row("a.py", 3, 50.0, "2026-11-01", 0)


@pytest.mark.parametrize(
    ("results", "after"),
    [
        ([("passed", 10), ("passed", 20.04)], replace(OLD, seconds=30.0, passed=DAY)),
        ([("passed", 10), ("skipped", 0)], replace(OLD, seconds=10.0, passed=DAY, skipped=1)),
        ([("passed", 10), ("failed", 20)], OLD),
        ([("passed", 10), ("", 0)], OLD),  # the run ended before it
        ([("skipped", 0), ("skipped", 0)], OLD),
        ([], OLD),
    ],
)
def test_a_run_is_recorded_as_it_was(results, after):
    ran = {f"a.py::test_{n}": Result(*each) for n, each in enumerate(results)}
    assert slices.recorded({"a.py": OLD}, ran, DAY) == {"a.py": after}


def test_what_was_never_run_has_no_time_and_is_no_pass():
    (row,) = slices.recorded({"a.py": Row("a.py", 1)}, {"a.py::test_x": Result("skipped")}, DAY).values()
    assert row == Row("a.py", 1, None, "", 1)


def test_a_row_that_is_too_long_is_divided_and_a_test_that_is_too_long_has_no_slice():
    systems = {f"a.py::test_{n}[{name}]": Result("passed", 200) for n in (1, 2) for name in ("el9", "el10", "deb")}
    long = {"b.py::test_x": Result("passed", LIMIT_S + 1), "b.py::test_y": Result("passed", 1)}
    after = slices.recorded({"a.py": Row("a.py", 3), "b.py": Row("b.py", 4)}, systems | long, DAY)
    assert {name: (row.slice, row.seconds) for name, row in after.items()} == {
        "a.py[el9]": (3, 400.0),
        "a.py[el10]": (3, 400.0),
        "a.py[deb]": (3, 400.0),
        "b.py::test_x": (None, LIMIT_S + 1),
        "b.py::test_y": (4, 1.0),
    }


def test_ci_runs_what_has_passed_in_time():
    never, passed = Row("a.py", 1), Row("b.py", 2, 60.0, DAY, 0)
    late = Row("c.py", 3, LIMIT_S + 1.0, DAY, 0)
    half = [Row("d.py", 4, 60.0, DAY, 0), Row("e.py", 4)]
    skipped = [Row("f.py", 5, 60.0, DAY, 2), Row("g.py", 5, None, "", 3)]  # passed, as far as it could be run
    rows = {row.tests: row for row in (never, passed, late, *half, *skipped)}
    assert {slices.chosen(f"{n:040x}", rows) for n in range(10)} == {2, 5}
    assert slices.chosen("ff", {"a.py": never}) is None


@pytest.mark.parametrize("text", ["3", "0/{n}", "{more}/{n}", "3/{more}", "a/{n}", "/"])
def test_a_slice_that_is_not_there_is_refused(text):
    number = slices.number_of_slices(ROWS)
    with pytest.raises(pytest.UsageError, match=f"there are {number} slices: 1/{number} to"):
        slices.asked(text.format(n=number, more=number + 1), ROWS)
    assert slices.asked(f"3/{number}", ROWS) == 3


PROGRAM = """
import pytest
from pathlib import Path

@pytest.mark.slow
def test_passes():
    pass

@pytest.mark.slow
def test_fails_once():
    tried = Path("tried").exists()
    Path("tried").touch()
    assert tried

@pytest.mark.slow
def test_skipped():
    pytest.skip("no such program")

def test_fast():
    pass
"""


def test_what_failed_is_tried_again_and_then_recorded(pytester):
    """By the plugin, in a pytest of its own."""
    pytester.makepyfile(test_some=PROGRAM, test_other=PROGRAM)
    for path in (slices.FILE, slices.PAGE):
        (pytester.path / path).parent.mkdir(parents=True)
    slices.write({name: Row(name, n) for n, name in enumerate(("test_other.py", "test_some.py"), 1)}, pytester.path)
    arguments = ["-p", "tests.slices", "--slice", "2/2", "--record"]
    pytester.inline_run(*arguments).assertoutcome(passed=1, skipped=1, failed=1)
    assert not any(row.passed for row in slices.read(pytester.path).values())
    pytester.inline_run(*arguments, "--last-failed").assertoutcome(passed=1)
    other, some = slices.read(pytester.path).values()
    assert other == Row("test_other.py", 1)
    assert some.passed and some.skipped == 1 and some.seconds is not None
    assert f"| 2/2 | 1 | {some.passed} | 1 | `test_some.py` |" in (pytester.path / slices.PAGE).read_text()
