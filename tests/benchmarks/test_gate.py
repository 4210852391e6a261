"""The gate says what is over its limit, and CI ends there."""

import pytest

from benchmarks import gate


def test_what_is_over_its_limit_is_named_with_the_reason(capsys, monkeypatch):
    gates = {
        "rows": gate.Gate("each was written anew", lambda: {"rows": 31, "bytes": 5}, {"rows": 30, "bytes": 5}),
        "lists": gate.Gate("all were listed", lambda: {"lists": 1}, {"lists": 1}),
    }
    monkeypatch.setattr(gate, "GATES", gates)
    assert gate.main([]) == 1
    shown = capsys.readouterr()
    assert shown.out.startswith("OVER rows: rows 31 (at most 30), bytes 5 (at most 5)\n")
    assert shown.out.endswith("\ngood lists: lists 1 (at most 1)\n")
    assert shown.err == "     rows: each was written anew\n"
    assert gate.main(["lists"]) == 0


@pytest.mark.parametrize("found", [{}, {"rows": 1, "more": 1}, {"rows": -1}])
def test_what_was_not_counted_or_has_no_limit_is_over_it(found):
    assert gate.Gate("", dict, {"rows": 30}).over(found)


def test_a_name_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        gate.main(["rows"])
    assert "there is no rows; there are help, status, tick" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(gate.GATES))
def test_each_row_has_a_reason_and_limits(name):
    assert gate.GATES[name].why and gate.GATES[name].most
