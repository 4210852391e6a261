"""The slow tests in slices, of which CI runs one after `make test`: a plugin of pytest (`--slice`, `--record`), and a
program for .ci/run (`choose`) and `make slices` (`divide`).

tests/slow.csv has a row for each group of tests that stays together: a module, a test function (`MODULE::NAME`), all
tests of a module with the same parameters (`MODULE[PARAMETERS]`: they share a lab) or one test. Neighbours in the file
share a lab where they can. Columns: slice (empty: in none, because one test takes more than LIMIT_S), seconds (empty:
not measured), passed (the day of the last pass; empty: never), skipped (tests that were skipped then).
"""

import argparse
import csv
import math
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from itertools import accumulate, count, pairwise
from pathlib import Path
from statistics import median

import pytest

ROOT = Path(__file__).parents[1]
FILE, PAGE = "tests/slow.csv", "docs/reference/slow-tests.md"
LIMIT_S = 20 * 60
"""what CI gives a slice"""
FULL_S = 15 * 60
"""at most so much is put into one when they are divided: CI's machine may be slower"""
LEAST = 12
RESULTS = "ironburst/slow"  # in pytest's cache
SLOW = pytest.StashKey[list[str]]()
"""ids of all slow tests that were collected"""


@dataclass(frozen=True)
class Row:
    """A row of tests/slow.csv."""

    tests: str
    slice: int | None = None
    seconds: float | None = None
    passed: str = ""
    skipped: int | None = None


Rows = dict[str, Row]


def module_of(tests: str) -> str:
    return tests.partition("::")[0].partition("[")[0]


def read(root: Path = ROOT) -> Rows:
    """By the tests that a row is about, in the order of the file."""
    with (root / FILE).open(newline="") as file:
        lines = list(csv.DictReader(file))
    whole, part = (lambda text: int(text) if text else None), (lambda text: float(text) if text else None)
    rows = [
        Row(line["tests"], whole(line["slice"]), part(line["seconds"]), line["passed"], whole(line["skipped"]))
        for line in lines
    ]
    return {row.tests: row for row in rows}


def write(rows: Rows, root: Path = ROOT) -> None:
    """The file, and the page of the documentation that shows it."""
    with (root / FILE).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        writer.writerows(["" if value is None else value for value in astuple(row)] for row in rows.values())
    (root / PAGE).write_text(table(rows))


def number_of_slices(rows: Rows) -> int:
    return max((row.slice or 0 for row in rows.values()), default=0)


def row_of(test: str, rows: Rows) -> str:
    """The row that a test belongs to; its module where there is none."""
    function, _, parameters = test.partition("[")
    module = module_of(test)
    names = (test, function, f"{module}[{parameters}", module)
    return next((name for name in names if name in rows), module)


def slice_of(test: str, rows: Rows) -> int | None:
    """1, 2, …; None: it's in no slice. A module that is in no row yet is in the same slice in every process, too."""
    name = row_of(test, rows)
    return rows[name].slice if name in rows else zlib.crc32(name.encode()) % number_of_slices(rows) + 1


def finer(name: str, tests: Sequence[str]) -> dict[str, list[str]]:
    """What a row of several tests is divided into: by the parameters that all functions share, else by function, else
    by test.
    """
    module = module_of(name)
    split = [(test.partition("[")[0], test.partition("[")[2]) for test in tests]
    functions, parameters = {function for function, _ in split}, {each for _, each in split}
    parts: dict[str, list[str]] = defaultdict(list)
    for test, (function, each) in zip(tests, split, strict=True):
        if name != module or len(functions) == 1:
            parts[test].append(test)
        elif len(parameters) > 1 and len(functions) * len(parameters) == len(tests):
            parts[f"{module}[{each}"].append(test)
        else:
            parts[function].append(test)
    return parts


@dataclass
class Result:
    """Of one test: passed, failed, skipped, or empty (not run)."""

    outcome: str = ""
    seconds: float = 0.0


def recorded(rows: Rows, results: Mapping[str, Result], day: str) -> Rows:
    """The rows after a run. One with a test that failed or wasn't run keeps what it had; one of which everything was
    skipped has passed no more than before; one that took too long for a slice is divided, in the slice that it was in.
    """
    ran: dict[str, list[str]] = defaultdict(list)
    for test in results:
        ran[row_of(test, rows)].append(test)
    names = list(rows)
    for name in ran:
        if name not in rows:  # beside those of its folder
            beside = [n for n, each in enumerate(names) if Path(module_of(each)).parent == Path(name).parent]
            names.insert(beside[-1] + 1 if beside else len(names), name)
    after: Rows = {}
    for name in names:
        before = rows.get(name) or Row(name, slice_of(name, rows))
        tests = ran.get(name, [])
        parts = {name: tests}
        while long := [part for part, ids in parts.items() if len(ids) > 1 and _seconds(ids, results) > FULL_S]:
            parts = {
                key: ids
                for part, its in parts.items()
                for key, ids in (finer(part, its) if part in long else {part: its}).items()
            }
        after |= {
            part: _recorded(replace(before, tests=part), [results[each] for each in ids], day)
            for part, ids in parts.items()
        }
    return after


def _seconds(tests: Iterable[str], results: Mapping[str, Result]) -> float:
    return sum(results[test].seconds for test in tests)


def _recorded(row: Row, results: Sequence[Result], day: str) -> Row:
    outcomes = [each.outcome for each in results]
    skipped = outcomes.count("skipped")
    if not results or {"", "failed"} & set(outcomes):
        return row
    if skipped == len(outcomes):
        return row if row.passed else replace(row, skipped=skipped)
    seconds = round(sum(each.seconds for each in results), 1)
    return replace(row, seconds=seconds, passed=day, skipped=skipped, slice=None if seconds > LIMIT_S else row.slice)


def divided(rows: Rows) -> Rows:
    """In slices of nearly equal cost, each of neighbours: LEAST of them, or as many more as it takes that none is over
    FULL_S. What isn't measured counts as the median of what is.
    """
    known = [row.seconds for row in rows.values() if row.seconds is not None]
    alone = {row.tests for row in rows.values() if (row.seconds or 0) > LIMIT_S}
    costs = {
        name: median(known) if row.seconds is None else row.seconds for name, row in rows.items() if name not in alone
    }
    enough = max(FULL_S, *costs.values())
    for number in count(max(LEAST, math.ceil(sum(costs.values()) / FULL_S))):
        groups = _groups(list(costs), list(costs.values()), number)
        if all(sum(costs[name] for name in group) <= enough for group in groups):
            break
    where = {name: n for n, group in enumerate(groups, 1) for name in group}
    return {name: replace(row, slice=where.get(name)) for name, row in rows.items()}


def _groups(names: list[str], costs: list[float], number: int) -> list[list[str]]:
    """Neighbours in `number` groups, the sum of the squares of whose costs is the least."""
    upto = list(accumulate(costs, initial=0.0))
    best: dict[int, tuple[float, list[int]]] = {0: (0.0, [])}  # end: (squares so far, where each group began)
    for _ in range(number):
        best = {
            end: min(
                (squares + (upto[end] - upto[start]) ** 2, [*starts, start])
                for start, (squares, starts) in best.items()
                if start < end
            )
            for end in range(min(best) + 1, len(names) + 1)
        }
    return [names[start:end] for start, end in pairwise([*best[len(names)][1], len(names)])]


@dataclass(frozen=True)
class Slice:
    """What is known of one: `passed` is the day since which each of its rows has passed; empty: not all ever did."""

    rows: list[Row]

    @property
    def seconds(self) -> float:
        return sum(row.seconds or 0 for row in self.rows)

    @property
    def passed(self) -> str:
        ran = [row for row in self.rows if row.passed or not row.skipped]
        return min((row.passed for row in ran), default="")

    @property
    def skipped(self) -> int:
        return sum(row.skipped or 0 for row in self.rows)

    @property
    def unknown(self) -> int:
        return sum(row.seconds is None for row in self.rows)


def slices(rows: Rows) -> dict[int, Slice]:
    numbers = range(1, number_of_slices(rows) + 1)
    return {number: Slice([row for row in rows.values() if row.slice == number]) for number in numbers}


def chosen(commit: str, rows: Rows) -> int | None:
    """The slice that CI runs for a commit (hexadecimal): one that has passed, and in time. None: there is none."""
    ready = [number for number, each in slices(rows).items() if each.passed and each.seconds <= LIMIT_S]
    return ready[int(commit, 16) % len(ready)] if ready else None


HEAD = """# Slow tests

<!-- written by `make test-slow` and `make slices` from tests/slow.csv -->

After `make test`, CI runs one slice of the slow tests, which the commit's hash chooses: within {limit} minutes, and
what failed is tried once more. It chooses among the slices that have passed, and names the others in its output. By
hand, with root:

```sh
make test-slow SLICE=3/{number}   # this slice; records times and passes here and in tests/slow.csv
make test-slow              # all of them
make slices                 # divide them again, by the times that were recorded
```

Some need programs that `make test-slow` builds or installs (a Kubernetes control plane, kubeadm, QEMU); without them
they are skipped. A slice has passed when all of its tests have that weren't skipped; the day is that of the tests that
passed longest ago. Record on a machine that does nothing else: times are the clock's. One that nobody has measured is
not counted.

| slice | minutes | last passed | skipped then | tests |
|---|---|---|---|---|
"""
ALONE = "\nIn no slice, because one of them takes more than {limit} minutes by itself:\n\n"


def table(rows: Rows) -> str:
    """The page of the documentation."""
    number = number_of_slices(rows)
    lines = [_line(f"{n}/{number}", each) for n, each in slices(rows).items()]
    alone = [row for row in rows.values() if row.slice is None]
    text = HEAD.format(limit=LIMIT_S // 60, number=number) + "".join(lines)
    if not alone:
        return text
    each = [
        f"- {_code(row)}: {math.ceil((row.seconds or 0) / 60)} minutes, last passed: {row.passed or 'never'}\n"
        for row in alone
    ]
    return text + ALONE.format(limit=LIMIT_S // 60) + "".join(each)


def _line(name: str, each: Slice) -> str:
    measured = f"{max(1, math.ceil(each.seconds / 60))}" if each.unknown < len(each.rows) else ""
    unknown = f"{each.unknown} of {len(each.rows)} rows not measured" if each.unknown else ""
    minutes = ", ".join(filter(None, (measured, unknown)))
    skipped = each.skipped if any(row.passed or row.skipped for row in each.rows) else ""
    return f"| {name} | {minutes} | {each.passed or 'never'} | {skipped} | {', '.join(map(_code, each.rows))} |\n"


def _code(row: Row) -> str:
    return "`" + row.tests.replace("|", "\\|") + "`"


# The plugin


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("slow tests")
    group.addoption("--slice", metavar="K/N", help="only slow tests, and of those slice K of the N in tests/slow.csv")
    group.addoption("--record", action="store_true", help="write times and passes of slow tests into tests/slow.csv")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("slice"):
        asked(config.getoption("slice"), read(config.rootpath))
    if config.getoption("record"):
        if config.getoption("numprocesses", None):
            raise pytest.UsageError("--record: with -n tests run beside each other, and their times aren't their own")
        if any("::" in each for each in config.args) or config.getoption("keyword"):
            raise pytest.UsageError("--record: takes whole files: a part would be recorded as the whole")
        config.pluginmanager.register(Recorder(config), "slow-recorder")


def asked(text: str, rows: Rows) -> int:
    """K of `K/N`. UsageError if there is no such slice."""
    which, _, of = text.partition("/")
    number = number_of_slices(rows)
    if of != str(number) or not which.isdecimal() or not 1 <= int(which) <= number:
        raise pytest.UsageError(f"--slice {text!r}: there are {number} slices: 1/{number} to {number}/{number}")
    return int(which)


@pytest.hookimpl(tryfirst=True)  # before -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    slow = [each for each in items if each.get_closest_marker("slow")]
    config.stash[SLOW] = [each.nodeid for each in slow]
    if config.getoption("slice"):
        rows = read(config.rootpath)
        number = asked(config.getoption("slice"), rows)
        kept = [each for each in slow if slice_of(each.nodeid, rows) == number]
        others = set(items) - set(kept)
        config.hook.pytest_deselected(items=[each for each in items if each in others])
        items[:] = kept


class Recorder:
    """Collects what became of each slow test. A run of `--last-failed` goes on from the run before it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.results: dict[str, Result] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.results = {item.nodeid: Result() for item in session.items if item.get_closest_marker("slow")}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        result = self.results.get(report.nodeid)
        if result is None:
            return
        result.seconds += report.duration
        if report.failed or result.outcome == "failed":
            result.outcome = "failed"
        elif report.skipped or report.when == "call":
            result.outcome = report.outcome

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        before = self.config.cache.get(RESULTS, {}) if self.config.getoption("lf") else {}
        results = {test: Result(*result) for test, result in before.items()} | self.results
        self.config.cache.set(RESULTS, {test: astuple(result) for test, result in results.items()})
        root = self.config.rootpath
        write(recorded(read(root), results, datetime.now(UTC).date().isoformat()), root)


def main(argv: Sequence[str]) -> None:
    """`choose COMMIT` prints the slice that CI runs (`3/12`), or nothing; and says which it can't choose."""
    parser = argparse.ArgumentParser(prog="python -m tests.slices")
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("choose", help="the slice that CI runs for a commit").add_argument("commit")
    verbs.add_parser("divide", help="divide tests/slow.csv again by the recorded times")
    arguments, rows = parser.parse_args(argv), read()
    if arguments.verb == "divide":
        write(divided(rows))
        return
    number, which = number_of_slices(rows), chosen(arguments.commit, rows)
    never = [str(n) for n, each in slices(rows).items() if not each.passed]
    late = [str(n) for n, each in slices(rows).items() if each.seconds > LIMIT_S]
    if never:
        print(f"slow tests: {len(never)} of {number} slices never passed, so CI runs none of these: {', '.join(never)} "
              "(docs/reference/slow-tests.md)", file=sys.stderr)  # fmt: skip
    if late:
        print(f"slow tests: too long for CI: {', '.join(late)}; `make slices` divides them again", file=sys.stderr)
    if which:
        print(f"{which}/{number}")


if __name__ == "__main__":
    main(sys.argv[1:])
