"""Traces: every format becomes the same columns, and a damaged file is named in one sentence."""

import lzma
import math

import numpy as np
import pytest

from ironburst.replay import traces
from ironburst.replay.traces import Trace, TraceError

PLAIN = "submit_s,duration_s,num_gpus,vc\n60,120.5,8,b\n0,30,1,a\n"
SACCT = """JobIDRaw|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES|ReqTRES|User|Partition|Account|State
7|2026-03-01T12:00:00|2026-03-01T12:10:00|2026-03-01T13:10:00|3600|120|\
billing=8,gres/gpu:a100=4,gres/gpu=4||ann|home|ml|COMPLETED
7.batch|2026-03-01T12:10:00|2026-03-01T12:10:00|2026-03-01T13:10:00|3600||\
gres/gpu:a100=4,gres/gpu=4,node=1||||ml|COMPLETED
8|2026-03-01T11:00:00|2026-03-01T11:00:01|2026-03-01T11:00:31|30|UNLIMITED|\
gres/gpu:a100=2,gres/gpu:h100=1||bob||ml|CANCELLED by 7
9|2026-03-01T12:00:00|None|2026-03-01T12:10:00|0|60||cpu=8,gres/gpu=4|ann|home|ml|CANCELLED by 7
10|2026-03-01T12:00:00|2026-03-01T12:00:00|Unknown|99|60|cpu=8,gres/gpu=4||ann|home|ml|RUNNING
11|2026-03-01T12:00:00|2026-03-01T12:00:00|2026-03-01T12:00:09|9|Partition_Limit|cpu=8,mem=1G||ann|home|ml|FAILED
"""


def read(tmp_path, text, name="trace.csv"):
    path = tmp_path / name
    path.write_bytes(lzma.compress(text.encode()) if name.endswith(".xz") else text.encode())
    return traces.read(path)


@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.xz"])
def test_plain_is_sorted_by_submit(tmp_path, name):
    trace = read(tmp_path, PLAIN, name)
    assert trace.submit_s.tolist() == [0, 60] and trace.duration_s.tolist() == [30, 120.5]
    assert trace.gpus.tolist() == [1, 8] and trace.queue == ("a", "b")
    assert trace.user is None and trace.limit_s is None and trace.deadline_s is None
    assert trace.gpu_hours.tolist() == [30 / 3600, 8 * 120.5 / 3600]


def test_plain_may_know_more(tmp_path):
    trace = read(
        tmp_path,
        "submit_s,duration_s,num_gpus,user,limit_s,deadline_s\n0,30,1,ann,60,\n1,30,0,ann,60,\n2,5,2,bob,,99\n",
    )
    assert trace.user == ("ann", "bob") and trace.queue is None and trace.left_out == {"wants no GPU": 1}
    assert trace.limit_s[0] == 60 and math.isnan(trace.limit_s[1])
    assert math.isnan(trace.deadline_s[0]) and trace.deadline_s[1] == 99


@pytest.mark.parametrize("trailing", ["", "|"])  # --parsable2 and --parsable
def test_sacct(tmp_path, trailing):
    trace = read(tmp_path, SACCT.replace("\n", trailing + "\n"))
    assert np.diff(trace.submit_s).tolist() == [3600] and trace.submit_s[1] == 1772366400
    assert trace.duration_s.tolist() == [30, 3600] and trace.gpus.tolist() == [3, 4]
    assert trace.queue == ("ml", "home") and trace.user == ("bob", "ann")
    assert math.isnan(trace.limit_s[0]) and trace.limit_s[1] == 7200
    assert trace.left_out == {"never started": 1, "still running": 1, "wants no GPU": 1}


def test_sacct_with_times_as_seconds(tmp_path):
    trace = read(tmp_path, "JobIDRaw|Submit|Start|ElapsedRaw|AllocTRES\n7|1772366400|1772366460|60|gres/gpu=2\n")
    assert trace.submit_s.tolist() == [1772366400] and trace.limit_s is None and trace.user is None


def test_chronus_counts_minutes(tmp_path):
    trace = read(
        tmp_path, "job_id,user,num_gpu,submit_time,duration,expect_time_list\n0,vc_1,4,100,20,50\n1,vc_2,0,1,20,50\n"
    )
    assert (trace.submit_s[0], trace.duration_s[0], trace.deadline_s[0]) == (6000, 1200, 9000)
    assert trace.user == ("vc_1",) and trace.left_out == {"wants no GPU": 1}


def test_openb_rounds_a_part_of_a_gpu_up(tmp_path):
    header = "name,num_gpu,gpu_milli,qos,creation_time,deletion_time,scheduled_time\n"
    trace = read(
        tmp_path, header + "a,1,460,LS,5,100,10.0\nb,2,1000,BE,6,50,6.0\nc,0,0,BE,6,50,6.0\nd,1,1000,BE,6,50,\n"
    )
    assert trace.gpus.tolist() == [1, 2] and trace.submit_s.tolist() == [5, 6] and trace.duration_s.tolist() == [90, 44]
    assert trace.queue == ("LS", "BE") and trace.left_out == {"wants no GPU": 1, "never started": 1}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PLAIN + "x,1,1,a\n", ["line 4", "submit_s is 'x'", "a number"]),
        (PLAIN + "1,-5,1,a\n", ["line 4", "duration_s is '-5'", "0 or more"]),
        (PLAIN + "1,nan,1,a\n", ["line 4", "duration_s is 'nan'"]),
        (PLAIN + "1,5,0.5,a\n", ["line 4", "num_gpus is '0.5'", "whole number"]),
        (PLAIN + "1,5,1e30,a\n", ["line 4", "num_gpus is '1e30'"]),
        (PLAIN + "1,5\n", ["line 4 has 2 values", "names 4"]),
        ("when,how_long\n1,2\n", ["no known trace", "when, how_long", "submit_s, duration_s, num_gpus", "sacct"]),
        ("", ["no known trace", "nothing"]),
        ("submit_s,duration_s,num_gpus\n1,2,0\n", ["no job", "1 (wants no GPU)"]),
        (SACCT.replace("gres/gpu=4||ann", "gres/gpu=four||ann", 1), ["line 2", "AllocTRES is 'billing", "gres/gpu=4"]),
        (SACCT.replace("|120|", "|two|"), ["line 2", "TimelimitRaw is 'two'"]),
        (SACCT.replace("7|2026-03-01T12:00:00", "7|1st of March"), ["line 2", "Submit is '1st of March'"]),
        (SACCT.replace("|ann|home", "|ann|na|home"), ["line 2 has 13 values", "names 12"]),
        (
            "num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n1,1000,5,9,10\n",
            ["line 2", "deletion_time is '9'", "(10)"],
        ),
    ],
)
def test_a_damaged_file_is_told_in_one_sentence(tmp_path, text, told):
    with pytest.raises(TraceError) as caught:
        read(tmp_path, text)
    message = str(caught.value)
    assert "trace.csv" in message and "\n" not in message
    assert [part for part in told if part not in message] == []


def test_a_cut_off_archive_and_a_missing_file(tmp_path):
    path = tmp_path / "cut.csv.xz"
    path.write_bytes(lzma.compress(PLAIN.encode())[:-20])
    with pytest.raises(TraceError, match=r"cut\.csv\.xz can't be read"):
        traces.read(path)
    with pytest.raises(TraceError, match=r"there is no trace .*gone\.csv"):
        traces.read(tmp_path / "gone.csv")


def test_jitter_is_drawn_as_the_reference_figures_were():
    trace = Trace(
        np.arange(50.0) // 5,
        np.full(50, 9.0),
        np.ones(50),
        queue=tuple(f"q{i}" for i in range(50)),
        limit_s=np.arange(50),
    )
    moved = traces.jittered(trace, 1)
    random = np.random.default_rng(1)
    submit = trace.submit_s + random.uniform(0, 0.5, 50)
    duration = trace.duration_s + random.uniform(0, 0.5, 50)
    order = np.argsort(submit, kind="stable")
    assert moved.submit_s.tolist() == submit[order].tolist() and moved.duration_s.tolist() == duration[order].tolist()
    assert moved.queue == tuple(f"q{i}" for i in order) and moved.limit_s.tolist() == order.tolist()
    assert traces.jittered(trace, 2).submit_s.tolist() != moved.submit_s.tolist()


def test_split_keeps_the_last_part_aside():
    trace = Trace(np.arange(10), np.arange(10) + 1, np.ones(10), user=tuple("abcdefghij"))
    first, aside = traces.split(trace, 0.25)
    assert len(first) == 7 and aside.submit_s.tolist() == [7, 8, 9] and aside.user == ("h", "i", "j")
    for wrong in (0, 1, -0.1, math.nan):
        with pytest.raises(TraceError, match="more than 0 and less than 1"):
            traces.split(trace, wrong)


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (([1, 0], [1, 1], [1, 1]), "in order of submit_s"),
        (([0, 1], [1, -1], [1, 1]), "not negative"),
        (([0, 1], [1, 1], [1, 0]), "1 GPU or more"),
        (([0, 1], [1], [1, 1]), "the lengths are"),
    ],
)
def test_a_trace_that_cannot_be_is_refused(columns, told):
    with pytest.raises(TraceError, match=told):
        Trace(*columns)
