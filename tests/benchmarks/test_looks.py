"""What a tick writes of a large queue, and what a look reads of a long year: in counts, whatever the machine."""

from benchmarks import looks, tick


def test_a_tick_writes_what_changed():
    counts = tick.counts()
    assert counts.keys() == tick.MOST.keys() and all(0 < counts[key] <= most for key, most in tick.MOST.items()), counts


def test_no_look_reads_the_jobs_of_a_year():
    counts = looks.counts()
    assert counts.keys() == looks.MOST.keys() and all(0 < counts[key] <= most for key, most in looks.MOST.items()), (
        counts
    )
