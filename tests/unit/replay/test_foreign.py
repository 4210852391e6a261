"""Traces as their publishers write them, a slice of each: the same columns come of them, and what is left out is told.

PHILLY: msr-fiddle/philly-traces, CC-BY-4.0, the README's example entry, its second and third job changed from it.
HELIOS: S-Lab-System-Group/HeliosData, CC-BY-4.0, the README's three rows, and two changed from them.
The others are in their formats, with jobs of our own.
"""

import json

import pytest

from ironburst.replay import foreign, traces
from ironburst.replay.traces import TraceError

GPUS = [f"gpu{n}" for n in range(8)]
PHILLY = [
    {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1506638472019_14199",
        "attempts": [
            {
                "start_time": "2017-10-07 01:12:09",
                "end_time": "2017-10-07 01:13:23",
                "detail": [{"ip": "m47", "gpus": GPUS}],
            },
            {
                "start_time": "2017-10-07 01:13:30",
                "end_time": "2017-10-09 06:53:12",
                "detail": [{"ip": "m412", "gpus": GPUS}],
            },
        ],
        "submitted_time": "2017-10-07 01:11:39",
        "user": "ce2f4c",
    },
    {"status": "Killed", "vc": "ee9e8c", "attempts": [], "submitted_time": "2017-10-07 01:11:39", "user": "a"},
    {
        "status": "Killed",
        "vc": "ee9e8c",
        "attempts": [
            {"start_time": "2017-10-07 01:12:09", "end_time": None, "detail": [{"ip": "m4", "gpus": ["gpu0"]}]}
        ],
        "submitted_time": "2017-10-07 01:11:39",
        "user": "a",
    },
]
HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1425511,uXBbc,vcJkd,1,1,1,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-10 04:55:09,36848,0
1425512,uVMrF,vchbv,4,16,1,FAILED,2020-06-09 18:41:27,2020-06-09 18:41:37,2020-06-09 18:45:46,249,10
1425513,uzqls,vcpDC,1,1,1,CANCELLED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-17 14:15:21,675233,0
1425514,uzqls,vcpDC,0,1,1,COMPLETED,2020-06-09 18:41:28,2020-06-09 18:41:28,2020-06-09 18:41:29,1,0
1425515,uzqls,vcpDC,8,1,1,CANCELLED,2020-06-09 18:41:28,,2020-06-09 18:41:29,0,1
"""
SWF = """; Version: 2.2
; Computer: eight nodes of eight
; MaxProcs: 64
    1      0     10   3600   8 -1 -1   8  7200 -1 1  3 1 -1 2 -1 -1 -1
    2     60      0      5  -1 -1 -1  16    -1 -1 0  4 1 -1 2 -1 -1 -1
    3     90     -1     -1  -1 -1 -1   4  3600 -1 5  4 1 -1 2 -1 -1 -1
    4     95      0    100   4 -1 -1   4  3600 -1 3  4 1 -1 2 -1 -1 -1
    5     99      0     -1   4 -1 -1   4  3600 -1 1  4 1 -1 2 -1 -1 -1
"""
SACCT = """JobID|JobName|Partition|Account|Submit|Start|End|Elapsed|Timelimit|AllocTRES|State|User
7|train|gpu|ml|2026-03-01T12:00:00|2026-03-01T12:10:00|2026-03-02T14:10:01|1-02:00:01|2-00:00:00|\
cpu=8,gres/gpu:h100=8,gres/gpu=8|COMPLETED|ann
7.batch|batch||ml|2026-03-01T12:10:00|2026-03-01T12:10:00|2026-03-02T14:10:01|1-02:00:01||gres/gpu=8|COMPLETED|
8_1|slice|gpu|ml|2026-03-01T12:00:00|2026-03-01T12:10:00|2026-03-01T12:20:00|00:10:00|UNLIMITED|\
cpu=8,gres/gpu:nvidia_h100_80gb_hbm3_1g.10gb=2,gres/gpu=2|COMPLETED|ann
9|wait|gpu|ml|2026-03-01T12:00:00|Unknown|Unknown|00:00:00|01:00:00||PENDING|ann
"""
ALL = ["JobIDRaw", "JobName", "Submit", "Start", "ElapsedRaw", "AllocTRES", "State", *(f"Other{n}" for n in range(20))]


def read(tmp_path, text, name="trace"):
    (tmp_path / name).write_text(text)
    return traces.read(tmp_path / name)


def slurm_job(**given):
    number = {"set": True, "infinite": False, "number": 120}
    job = {
        "job_id": 7,
        "user": "ann",
        "account": "ml",
        "partition": "gpu",
        "state": {"current": ["COMPLETED"], "reason": "None"},
        "time": {"submission": 100, "start": 160, "end": 3760, "elapsed": 3600, "limit": number},
        "tres": {
            "allocated": [
                {"type": "cpu", "name": "", "id": 1, "count": 8},
                {"type": "gres", "name": "gpu", "id": 1001, "count": 8},
                {"type": "gres", "name": "gpu:h100", "id": 1002, "count": 8},
            ],
            "requested": [],
        },
    }
    return job | given


def test_philly_runs_all_of_a_jobs_attempts(tmp_path):
    trace = read(tmp_path, json.dumps(PHILLY))
    assert trace.gpus.tolist() == [8] and trace.duration_s.tolist() == [74 + (2 * 24 + 5) * 3600 + 39 * 60 + 42]
    assert (trace.start_s - trace.submit_s).tolist() == [30]
    assert trace.queue == ("ee9e8c",) and trace.user == ("ce2f4c",)
    assert trace.left_out == {"never started": 1, "still running": 1}


def test_helios(tmp_path):
    trace = read(tmp_path, HELIOS)
    assert trace.gpus.tolist() == [1, 4, 1] and trace.duration_s.tolist() == [36848, 249, 675233]
    assert (trace.start_s - trace.submit_s).tolist() == [0, 10, 0] and trace.queue == ("vcJkd", "vchbv", "vcpDC")
    assert trace.left_out == {"wants no GPU": 1, "never started": 1}


@pytest.mark.parametrize("head", [3, 0])
def test_the_standard_workload_format(tmp_path, head):
    trace = read(tmp_path, "".join(SWF.splitlines(keepends=True)[3 - head :]))
    assert trace.gpus.tolist() == [8, 16] and trace.duration_s.tolist() == [3600, 5]
    assert trace.start_s.tolist() == [10, 60] and trace.limit_s[0] == 7200
    assert trace.queue == ("2", "2") and trace.user == ("3", "4")
    assert traces.jittered(trace, 1).note == "processors count as GPUs"
    assert trace.left_out == {"never started": 1, foreign.PART: 1, foreign.NO_RUN_TIME: 1}


def test_sacct_with_the_columns_that_people_ask_for(tmp_path):
    trace = read(tmp_path, SACCT)
    assert trace.gpus.tolist() == [8] and trace.duration_s.tolist() == [26 * 3600 + 1]
    assert trace.limit_s.tolist() == [48 * 3600] and trace.queue == ("gpu",)
    assert trace.left_out == {"has parts of GPUs (MIG) alone": 1, "never started": 1}


def test_sacct_with_all_columns_and_a_name_with_a_bar(tmp_path):
    values = ["7", "train", "100", "160", "3600", "cpu=8,gres/gpu=8", "COMPLETED", *[""] * 20]
    torn = [value.replace("train", "tr|ain") for value in values]
    trace = read(tmp_path, "\n".join("|".join(line) for line in (ALL, values, torn)) + "\n")
    assert trace.gpus.tolist() == [8] and trace.left_out == {traces.TORN: 1}
    with pytest.raises(TraceError, match="2 lines with another number of values"):
        read(tmp_path, "\n".join("|".join(line) for line in (ALL, torn, torn)) + "\n")


def test_sacct_as_json(tmp_path):
    waits = slurm_job(job_id=8, state={"current": "PENDING"}, time=slurm_job()["time"] | {"start": 0})
    without = slurm_job(job_id=9, tres={"allocated": [], "requested": []})
    trace = read(tmp_path, json.dumps({"jobs": [slurm_job(), waits, without], "meta": {}}, indent=1))
    assert trace.gpus.tolist() == [8] and trace.duration_s.tolist() == [3600] and trace.limit_s.tolist() == [7200]
    assert trace.submit_s.tolist() == [100] and trace.start_s.tolist() == [160] and trace.user == ("ann",)
    assert trace.left_out == {"never started": 1, "wants no GPU": 1}


SAMPLES = {
    "philly": json.dumps(PHILLY, indent=1),
    "helios": HELIOS,
    "swf": SWF,
    "sacct": SACCT,
    "json": json.dumps({"jobs": [slurm_job(), slurm_job(job_id=8)]}, indent=1),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_what_is_cut_doubled_or_without_its_numbers_is_one_sentence(tmp_path, name):
    lines = SAMPLES[name].splitlines(keepends=True)
    damaged = ["".join(lines[:n]) for n in range(len(lines))]
    damaged += ["".join(line * 2 for line in lines)]
    damaged += ["".join([*lines[:n], "N/A\n", *lines[n + 1 :]]) for n in range(len(lines))]
    damaged += [SAMPLES[name].replace(digit, "N/A") for digit in "0127"]
    for text in damaged:
        try:
            read(tmp_path, text)
        except TraceError as error:
            assert "\n" not in str(error)
