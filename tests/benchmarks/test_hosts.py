"""What is done for each host, with a thousand of them; and the site that it is measured on."""

import json

import pytest

from benchmarks import hosts, report


def test_a_site_has_as_many_hosts_as_asked_for(tmp_path):
    for count in (4, 25, 300):
        document = hosts.declared(tmp_path, count)
        assert len(document.hosts) == count == len({host.address for host in document.hosts})


def test_sizes_are_refused_in_a_sentence(capsys):
    for sizes in ("25", "25,x", "25,25", "3,25", "25,9999"):
        with pytest.raises(SystemExit):
            hosts.main(["--sizes", sizes])
        assert "give two different ones or more" in capsys.readouterr().err


def test_every_figure_becomes_a_line():
    step = {"seconds": 8.0, "wall_s": 9.0, "memory_mb": 600}
    steps = {hosts.STACK: step, hosts.LISTING: step, hosts.RECEIPTS: step}
    exponents = {hosts.STACK: 1.0, hosts.LISTING: 1.2, hosts.RECEIPTS: 0.9}
    text = report.page([{"file": "h.json", "hosts": {"200": steps, "1000": steps}, hosts.EXPONENTS: exponents}])
    row = text[text.index("## 15.") :]
    assert row.count("600 (missed)") == 2 and row.count("**8** (asked) | 9 s by the clock") == 4
    assert row.count("1.200 (missed)") == 1 and row.count("**0.900** (asked)") == 1


@pytest.mark.slow
def test_a_thousand_hosts_need_five_times_what_two_hundred_do(capsys):
    """Seconds are of the processor, and held against those of the same run."""
    hosts.main(["--sizes", "200,1000", "--json"])
    made = json.loads(capsys.readouterr().out)
    most = made["hosts"]["1000"]
    assert most[hosts.LISTING]["memory_mb"] < 500
    assert all(most[what]["seconds"] < 7 * made["hosts"]["200"][what]["seconds"] for what in most)
