"""Ticks on disk: read back as they were, only when something changed, small, kept for a while, and one clear error for
a damaged file.
"""

import gzip
import itertools
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from ironburst.burst import Budget, Decision, Job, Node, Policy, Resources, Snapshot, Wait, decide
from ironburst.controller import changes
from ironburst.controller.ledger import Ledger
from ironburst.controller.recorder import Newest, RecordedTick, Recorder, RecordError, ticks, usage
from ironburst.controller.tick import Controller
from tests.fakes import FakeClock, FakeCloud, FakeSlurm, document

NOW = 1_795_262_400.0  # 2026-11-21 12:00:00Z
POLICY = Policy(home_partition="home", wait_limit_s=3600)


def job(id, **more):
    return Job(id, "train", "alice", "PENDING", NOW, 1, Resources(8), 3600.0, ("home",), **more)


def shot(at_s=NOW, jobs=3, **more):
    return Snapshot(
        at_s, tuple(job(n) for n in range(1, jobs + 1)), (), (), budget=Budget(1e4, at_s - NOW, 0.0, NOW + 1e6), **more
    )


def said(*texts):
    return Decision(waits=tuple(Wait(n, "home_soon", text, NOW + n) for n, text in enumerate(texts, 1)))


# ---- written and read


def test_ticks_come_back_as_they_were(tmp_path):
    recorder = Recorder(tmp_path / "ticks")
    written = []
    for n in range(40):
        item = RecordedTick(
            NOW + 10 * n,
            shot(NOW + 10 * n, jobs=n % 7),
            said(*["soon"] * (n % 5)),
            replace(POLICY, wait_limit_s=60.0 * (1 + n // 20)),
        )
        assert recorder.record(item.policy, item.snapshot, item.decision)
        written.append(item)
    assert list(ticks(tmp_path / "ticks")) == written
    (path,) = (tmp_path / "ticks").iterdir()
    assert path.name == "ticks-20261121T120000Z-000.jsonl.gz" and list(ticks(path)) == written
    at_s, snapshot, decision, _ = written[-1]
    assert (at_s, snapshot, decision) == next(itertools.islice(ticks(path), 39, None))[:3]
    assert len(gzip.decompress(path.read_bytes()).splitlines()) == 40  # plain tools read it
    path.rename(path.with_name("rounds-20261121T120000Z-000.jsonl.gz"))  # as version 0.1 called it
    assert list(ticks(tmp_path / "ticks")) == written


def test_only_what_matters_makes_a_new_round(tmp_path):
    recorder = Recorder(tmp_path)
    assert recorder.record(POLICY, shot(), said("starts in 2 h"))
    assert not recorder.record(POLICY, shot(NOW + 10), said("starts in 1 h"))  # the time, the money spent, the wording
    assert recorder.record(POLICY, shot(NOW + 20), said())
    assert recorder.record(POLICY, shot(NOW + 30, notes={"document_serial": "2"}), said())
    assert recorder.record(replace(POLICY, wait_limit_s=1.0), shot(NOW + 40, notes={"document_serial": "2"}), said())
    assert [each.at_s - NOW for each in ticks(tmp_path)] == [0, 20, 30, 40]


def test_each_process_and_each_hour_has_its_own_file(tmp_path):
    first = Recorder(tmp_path)
    for n in range(5):
        first.record(POLICY, shot(NOW + 1800 * n, jobs=n), said())
    again = Recorder(tmp_path)  # restarted in the same second
    again.record(POLICY, shot(NOW + 1800 * 4, jobs=9), said())
    assert [path.name.removeprefix("ticks-").removesuffix(".jsonl.gz") for path in sorted(tmp_path.iterdir())] == [
        "20261121T120000Z-000",
        "20261121T130000Z-000",
        "20261121T140000Z-000",
        "20261121T140000Z-001",
    ]
    assert [len(each.snapshot.jobs) for each in ticks(tmp_path)] == [0, 1, 2, 3, 4, 9]


def test_a_clock_that_goes_back_loses_nothing(tmp_path):
    recorder = Recorder(tmp_path)
    for at_s in (NOW, NOW - 500, NOW - 490):
        recorder.record(POLICY, shot(at_s, jobs=int(at_s) % 11 + 1), said())
    assert sorted(each.at_s for each in ticks(tmp_path)) == [NOW - 500, NOW - 490, NOW]


@pytest.mark.parametrize("seed", range(60))
def test_changes_are_exact_whatever_changes(seed):
    rng = random.Random(seed)

    def value(depth=0):
        kind = rng.random()
        if depth < 3 and kind < 0.35:
            return {f"k{n}": value(depth + 1) for n in rng.sample(range(6), rng.randrange(5))}
        if depth < 3 and kind < 0.7:
            return [value(depth + 1) for _ in range(rng.randrange(6))]
        return rng.choice([None, True, 1, 2.5, "a", "b", [], {}, {"value": 1}, {"runs": []}, {"new": 3}, [0, 1]])

    before = value()
    for _ in range(30):
        after = value()
        change = json.loads(json.dumps(changes.between(before, after)))
        assert changes.applied(before, change) == after
        assert (
            changes.between(after, after) in (changes.SAME, {"value": after})
            or changes.between(after, after)["runs"] is not None
        )
        before = after


def test_a_long_queue_in_which_one_job_changes_is_a_small_change():
    before = {"jobs": [{"id": n, "name": "train" * 20} for n in range(5000)]}
    after = {"jobs": [*before["jobs"][:70], *before["jobs"][71:], {"id": 9999, "name": "new"}]}
    change = changes.between(before, after)
    assert len(json.dumps(change)) < 120 and changes.applied(before, change) == after


def test_new_priorities_of_a_whole_queue_are_a_small_change():
    """Slurm computes them anew every five minutes: by age, and by each user's fair share."""
    rng = random.Random(1)
    before = [{"id": n, "name": "train" * 20, "user": n % 40, "priority": rng.randrange(100_000)} for n in range(5000)]
    more = [rng.choice((43, 43, 44, 40)) for _ in range(40)]
    after = [item | {"priority": item["priority"] + more[item["user"]]} for item in before]
    change = changes.between(before, after)
    assert changes.applied(before, json.loads(json.dumps(change))) == after
    assert len(gzip.compress(json.dumps(change).encode())) < 1000


# ---- large queues, random days, older files


def random_day(seed, ticks_in_it):
    """Jobs that come, start, end, change places in the list, get other priorities; nodes and codes that change."""
    rng, queue, codes = random.Random(seed), {}, {}
    for n in range(ticks_in_it):
        for _ in range(rng.randrange(4)):
            number = 1000 + 10 * n + rng.randrange(10)
            queue[number] = job(number, priority=rng.randrange(10_000), called=rng.choice(("", "8_1")))
        for number in rng.sample(sorted(queue), min(len(queue), rng.randrange(4))):
            change = rng.choice(("starts", "ends", "priority", "reason"))
            if change == "ends":
                del queue[number]
            elif change == "starts":
                queue[number] = replace(queue[number], state="RUNNING", on=("dgx1", "dgx2"), start_s=NOW + n, reason="")
            else:
                queue[number] = replace(
                    queue[number], **{change: rng.choice((5, 7)) if change == "priority" else "Resources"}
                )
        if rng.random() < 0.2:
            queue = {number: replace(each, priority=each.priority + 43) for number, each in queue.items()}
        jobs = list(queue.values())
        if rng.random() < 0.2:
            rng.shuffle(jobs)
        state = rng.choice((("IDLE",), ("IDLE", "DRAIN"), ("MIXED",)))
        nodes = tuple(Node(f"dgx{k}", ("home",), Resources(8), state if k == n % 3 else ("IDLE",)) for k in range(3))
        codes = {each.id: codes.get(each.id) or rng.choice(("home_soon", "budget")) for each in jobs if each.pending}
        waits = tuple(Wait(number, code, f"at {n}", NOW + n) for number, code in codes.items())
        yield Snapshot(NOW + 300.0 * n, tuple(jobs), nodes, ()), Decision(waits=waits)


def bare(decision):
    return Decision(waits=tuple(Wait(wait.job, wait.code, "") for wait in decision.waits))


@pytest.mark.parametrize("large", [0, 10**9], ids=["large", "small"])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_read_is_what_was_written_whenever_the_controller_dies(seed, large, tmp_path, monkeypatch):
    monkeypatch.setattr("ironburst.controller.recorder.LARGE", large)
    rng, whole, recorder = random.Random(seed), [], Recorder(tmp_path)
    for snapshot, decision in random_day(seed, 60):
        if recorder.record(POLICY, snapshot, decision):
            whole.append((snapshot, bare(decision) if large == 0 else decision))
            if rng.random() < 0.1:  # in the middle of the write
                (*_, path) = sorted(tmp_path.iterdir())
                data, end = path.read_bytes(), path.read_bytes().rindex(b"\x1f\x8b")
                path.write_bytes(data[: rng.randrange(end, len(data))])
                whole.pop()
                recorder = Recorder(tmp_path)
    damaged = []
    read = [(each.snapshot, each.decision) for each in ticks(tmp_path, damaged.append)]
    assert read == whole and len(whole) > 40
    newest = Newest(tmp_path).look()
    assert (newest.jobs, newest.nodes) == (whole[-1][0].jobs, whole[-1][0].nodes)


def test_ticks_of_before_decision_117_are_read():
    """Written by the commit before it: a small queue's file, and a large one's, without wordings."""
    folder = Path(__file__).with_name("ticks_before_0117")
    expected = json.loads((folder / "expected.json").read_text())
    read = [
        [
            each.at_s,
            sorted([each.id, each.state, each.priority] for each in each.snapshot.jobs),
            sorted([wait.job, wait.code, wait.text] for wait in each.decision.waits),
        ]
        for each in ticks(folder)
    ]
    assert read == expected and len(read) == 12
    assert len(Newest(folder).look().jobs) == len(expected[-1][1])


# ---- retention


def test_old_and_too_many_ticks_go_the_oldest_first(tmp_path):
    recorder = Recorder(tmp_path, keep_days=1)
    for n in range(60):
        recorder.record(POLICY, shot(NOW + 3600 * n, jobs=n % 3), said())
    kept = [each.at_s for each in ticks(tmp_path)]
    assert kept[-1] == NOW + 59 * 3600 and kept[0] >= NOW + 35 * 3600 and 24 <= len(kept) <= 26
    size = usage(tmp_path).bytes / usage(tmp_path).files
    small = Recorder(tmp_path, keep_mb=10 * size / 1e6)
    small.record(POLICY, shot(NOW + 3600 * 60), said())
    kept = [each.at_s for each in ticks(tmp_path)]
    assert kept[-1] == NOW + 3600 * 60 and 8 <= len(kept) <= 11


@pytest.mark.parametrize("wrong", [{"keep_days": 0}, {"keep_mb": -1.0}])
def test_a_retention_of_nothing_is_refused(tmp_path, wrong):
    with pytest.raises(RecordError, match="more than 0"):
        Recorder(tmp_path, **wrong)


# ---- damage


def three(tmp_path):
    recorder = Recorder(tmp_path)
    for n in range(3):
        recorder.record(POLICY, shot(NOW + n, jobs=n + 1), said())
    (path,) = tmp_path.iterdir()
    return path


def cut(data):
    return data[:-7]


def flipped(data):
    at = data.rindex(b"\x1f\x8b") + 15
    return data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]


def foreign(data):
    return data + gzip.compress(b'{"at_s": 1, "policy": {"runs": [[5, 1]]}, "snapshot": {}, "decision": {}}\n')


@pytest.mark.parametrize(
    ("damage", "good"), [(cut, 2), (flipped, 2), (foreign, 3), (lambda data: b"hello", 0), (lambda data: data[:9], 0)]
)
def test_a_damaged_file_is_one_clear_error_after_what_is_good(tmp_path, damage, good):
    path = three(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    read = []
    with pytest.raises(RecordError) as error:
        read.extend(ticks(tmp_path))
    assert len(read) == good and str(path) in str(error.value) and "is damaged" in str(error.value)
    assert "\n" not in str(error.value)
    told = []
    Recorder(tmp_path).record(POLICY, shot(NOW + 99), said())  # a file behind it
    assert [each.at_s for each in ticks(tmp_path, told.append)][-1] == NOW + 99 and len(told) == 1


def test_no_ticks_and_no_room_are_said(tmp_path):
    with pytest.raises(RecordError, match=r"no ticks in .*beside the controller's ledger"):
        list(ticks(tmp_path / "nowhere"))
    (tmp_path / "file").write_text("")
    recorder = Recorder(tmp_path / "file" / "ticks")
    with pytest.raises(RecordError, match="can't be written"):
        recorder.record(POLICY, shot(), said())
    assert usage(tmp_path).mb_a_day is None


# ---- the controller's own


def test_a_small_site_takes_little_room_and_decides_again_the_same(tmp_path):
    """The lab-like site of the controller's tests over 300 ticks of 10 s, with jobs coming all the time: MB a day."""
    clock = FakeClock()
    slurm = FakeSlurm(clock)
    cloud, ledger = FakeCloud(clock, slurm), Ledger(tmp_path / "ledger.sqlite")
    ledger._db.execute("PRAGMA synchronous=OFF")
    controller = Controller(slurm, cloud, ledger, clock, Recorder(tmp_path / "ticks"))
    site, rng = document(tick_s=10, wait_limit_s=600, idle_s=300), random.Random(4)
    for _ in range(300):
        before = clock.at
        if rng.random() < 0.1:
            slurm.submit(nodes=rng.choice((1, 1, 2)), limit_s=3600.0, runs_s=rng.uniform(60, 1500))
        controller.tick(site)
        clock.at = max(clock.at, before + 10)
    recorded = list(ticks(tmp_path / "ticks"))
    assert 50 < len(recorded) < 300 and any(each.decision.launches for each in recorded)
    assert all(decide(each.snapshot, each.policy) == each.decision for each in recorded)
    taken = usage(tmp_path / "ticks")
    print(f"{len(recorded)} of 300 ticks, {taken.bytes} bytes in {taken.files} files, {taken.mb_a_day:.2f} MB a day")
    assert taken.mb_a_day < 5


def test_a_full_disk_stops_no_controller(tmp_path):
    clock = FakeClock()
    slurm = FakeSlurm(clock)
    (tmp_path / "file").write_text("")
    ledger = Ledger(tmp_path / "ledger.sqlite")
    controller = Controller(slurm, FakeCloud(clock, slurm), ledger, clock, Recorder(tmp_path / "file" / "ticks"))
    slurm.submit()
    controller.tick(document())
    assert any("can't be written" in event.text for event in ledger.events()) and ledger.noted("last_tick")


# ---- the newest one, by somebody who looks on


def test_who_looks_on_sees_each_tick_as_it_is_written(tmp_path):
    folder, recorder = tmp_path / "ticks", Recorder(tmp_path / "ticks")
    newest = Newest(folder)
    assert newest.look() is None
    for n in range(60):  # over an hour: two files
        at_s = NOW + 70 * n
        snapshot = shot(at_s, jobs=1 + n % 7)
        recorder.record(POLICY, snapshot, said())
        seen = newest.look()
        assert (seen.at_s, seen.jobs, seen.nodes, seen.homes) == (at_s, snapshot.jobs, (), ("home",))
        assert newest.look() is seen  # nothing new: nothing is read
    assert len(list(folder.iterdir())) == 2
    assert Newest(folder).look() == seen


def test_a_tick_that_is_being_written_counts_when_it_is_whole(tmp_path):
    folder, recorder = tmp_path / "ticks", Recorder(tmp_path / "ticks")
    for n in range(2):
        recorder.record(POLICY, shot(NOW + 10 * n, jobs=1 + n), said())
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    newest = Newest(folder)
    for part in range(len(whole) - 30, len(whole)):
        path.write_bytes(whole[:part])
        assert len(newest.look().jobs) == 1
    path.write_bytes(whole)
    assert len(newest.look().jobs) == 2
    path.with_name("ticks-20261121T130000Z-000.jsonl.gz").write_bytes(whole[:20])  # the next file is being begun
    assert len(newest.look().jobs) == 2 and len(Newest(folder).look().jobs) == 2


def test_a_damaged_newest_file_is_one_sentence(tmp_path):
    Recorder(tmp_path / "ticks").record(POLICY, shot(), said())
    (path,) = (tmp_path / "ticks").iterdir()
    path.write_bytes(gzip.compress(b'{"at_s": 1}\n'))
    with pytest.raises(RecordError, match="can't be read"):
        Newest(tmp_path / "ticks").look()
