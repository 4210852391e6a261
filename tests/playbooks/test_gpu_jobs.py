"""Prolog and epilog tell DCGM's exporter which job has which GPU.

Shapes: the driver's /proc/driver/nvidia/gpus/BUS/information (as in NVIDIA's README, and issues that quote it) and
`nvidia-smi --query-gpu=... --format=csv,noheader` of machines whose device files are numbered in another order than
the bus: four cards of one board, where minor 0 is the last on the bus. Environments: prolog_epilog.html of Slurm and
its gres_common.c, gres_mps.c, gres_shard.c. File names: dcgm-exporter's hpc.go takes digits, or digits.digits.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import yaml
from jinja2 import Template
from programs import PLAYBOOKS, load

from lab.system import wait_for

FILES = PLAYBOOKS / "roles/node_health/files"
PROGRAM = PLAYBOOKS / "roles/metrics/files/ironburst-gpu-jobs.py"
NAMES = re.compile(r"^\d+(\.\d+)?$")  # of hpc.go
SMI = """\
0, 00000000:01:00.0, GPU-0fa1
1, 00000000:41:00.0, GPU-1fa1
2, 00000000:81:00.0, GPU-2fa1
3, 00000000:C1:00.0, GPU-3fa1
"""
MINORS = {"0000:01:00.0": 2, "0000:41:00.0": 3, "0000:81:00.0": 1, "0000:c1:00.0": 0}
INFORMATION = """\
Model: 		 NVIDIA A100-SXM4-80GB
IRQ:   		 {minor}
GPU UUID: 	 GPU-????????-????-????-????-????????????
Bus Type: 	 PCIe
Bus Location: 	 {bus}
Device Minor: 	 {minor}
GPU Excluded:	 No
"""


class Node:
    """A node's folders, and nvidia-smi; `start` and `stop` run the program as prolog and epilog do."""

    def __init__(self, folder):
        self.folder, self.jobs = folder, folder / "run/gpu-jobs"
        (folder / "bin").mkdir()
        (folder / "run").mkdir()
        self.gpus(MINORS)
        self.smi(SMI)
        text = PROGRAM.read_text().replace("/run/ironburst", str(folder / "run"))
        (folder / "program").write_text(text.replace("/proc/driver/nvidia/gpus", str(folder / "gpus")))

    def gpus(self, minors):
        for bus, minor in minors.items():
            (self.folder / "gpus" / bus).mkdir(parents=True, exist_ok=True)
            (self.folder / "gpus" / bus / "information").write_text(INFORMATION.format(minor=minor, bus=bus))

    def smi(self, text="", script=None):
        path = self.folder / "bin/nvidia-smi"
        path.write_text(script or f"#!/bin/sh\n/bin/cat <<'X'\n{text}X\n")
        path.chmod(0o755)

    def call(self, verb, **environment):
        env = {"PATH": f"{self.folder}/bin", **environment}
        argv = [self.python if hasattr(self, "python") else sys.executable, str(self.folder / "program"), verb]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0  # Slurm drains a node and requeues the job where a prolog fails
        return done.stderr

    def start(self, job, gpus=None, **more):
        return self.call("start", SLURM_JOB_ID=str(job), **({"SLURM_JOB_GPUS": gpus} if gpus else {}), **more)

    def stop(self, job):
        return self.call("stop", SLURM_JOB_ID=str(job))

    def said(self):
        """{index: jobs}, as the exporter reads them."""
        files = self.jobs.iterdir() if self.jobs.exists() else ()
        return {file.name: file.read_text().split() for file in files if NAMES.match(file.name)}


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_numbers_of_device_files_become_indices_by_the_bus(node):
    node.start(41, "0,3")
    assert node.said() == {"3": ["41"], "1": ["41"]}
    assert {path.stat().st_mode & 0o777 for path in node.jobs.iterdir()} == {0o644}
    node.start(42, "1", CUDA_VISIBLE_DEVICES="0")  # with ConstrainDevices CUDA's are the job's own count
    assert node.said() == {"3": ["41"], "1": ["41"], "2": ["42"]}


def test_the_epilog_takes_its_jobs_files_alone(node):
    node.start(41, "0,3")
    node.start(42, "1")
    node.stop(41)
    assert node.said() == {"2": ["42"]}
    assert node.stop(41) == ""  # Slurm may run it twice
    node.stop(4)
    assert node.said() == {"2": ["42"]}


def test_a_requeued_job_and_one_that_left_its_file_behind(node):
    node.start(41, "0,3")
    node.stop(41)
    node.start(41, "2")  # its second run, elsewhere on the node
    assert node.said() == {"0": ["41"]}
    node.start(43, "2")  # 41's epilog never ran: the node's slurmd was killed
    assert node.said() == {"0": ["43"]}


@pytest.mark.parametrize(
    "environment",
    [
        {"SLURM_JOB_GPUS": "3", "CUDA_VISIBLE_DEVICES": "3", "SLURM_SHARDS_ON_NODE": "4"},
        {"CUDA_VISIBLE_DEVICES": "3", "SLURM_SHARDS_ON_NODE": "1"},
        {"SLURM_JOB_GPUS": "3", "CUDA_VISIBLE_DEVICES": "3", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "50"},
        {"SLURM_JOB_GPUS": "MIG-5fc0bd9f-d2b3-5d0b-9ac5-6d1a1d4a7d61"},
        {"SLURM_JOB_GPUS": "MIG-GPU-0fa1/1/0", "CUDA_VISIBLE_DEVICES": "MIG-GPU-0fa1/1/0"},
        {"CUDA_VISIBLE_DEVICES": "NoDevFiles"},
        {},
    ],
    ids=["shards", "shards, CUDA's alone", "MPS", "slice", "slice of old drivers", "no files", "no GPU"],
)
def test_what_is_shared_or_a_slice_is_nobodys(node, environment):
    node.start(7, **{"gpus": None} | environment)
    assert node.said() == {}


def test_a_shared_gpu_takes_away_what_a_job_left_on_it(node):
    node.start(41, "3")
    node.start(7, "3", SLURM_SHARDS_ON_NODE="1")
    assert node.said() == {}


def test_whole_gpus_of_a_node_with_slices_are_found_by_uuid(node):
    """Slurm counts the whole ones first, then the slices, type after type (ironburst-slices.py)."""
    (node.folder / "run/slices").write_text("GPU-1fa1\nGPU-3fa1\nMIG-a\nMIG-b\n")
    node.start(41, "0,1,2")
    assert node.said() == {"1": ["41"], "3": ["41"]}
    node.start(42, "9")
    assert len(node.said()) == 2


def test_uuids_of_whole_gpus(node):
    node.start(41, "GPU-2fa1")
    assert node.said() == {"2": ["41"]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # a GPU fell off the bus: nvidia-smi says so in a line of its own, and the others move up
        (
            "Unable to determine the device handle for GPU0000:C1:00.0: Unknown Error\n" + SMI[: SMI.index("3,")],
            {"1": ["41"]},
        ),
        (SMI.replace("1, 0", "[Unknown Error], 0"), {"3": ["41"]}),
        ("No devices were found\n", {}),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", {}),
        ("", {}),
    ],
)
def test_what_nvidia_smi_does_not_say_gets_no_job(node, text, found):
    node.smi(text)
    node.start(41, "0,3")
    assert node.said() == found


QUERY = (Path(__file__).parents[1] / "unit/health/healthy/nvidia-smi-a100-sxm4-40gb-q-x").read_text()


@pytest.mark.parametrize(("query", "found"), [(QUERY, {"0": ["41"]}), ("<nvidia_smi_log>", {}), ("", {})])
def test_where_proc_says_no_numbers_nvidia_smi_is_asked(node, query, found):
    """`nvidia-smi -q -x` of a machine with A100s; its first GPU's UUID is that of index 0."""
    shutil.rmtree(node.folder / "gpus")
    uuid = re.search(r"<uuid>(GPU-[^<]+)</uuid>", QUERY)[1]
    (node.folder / "csv").write_text(f"0, 00000000:07:00.0, {uuid}\n")
    (node.folder / "xml").write_text(query)
    node.smi(
        script=f'#!/bin/sh\ncase "$1" in -q) /bin/cat {node.folder}/xml ;; *) /bin/cat {node.folder}/csv ;; esac\n'
    )
    assert node.start(41, "0") == "" and node.said() == found


def test_nvidia_smi_that_hangs_holds_no_job_up(node):
    text = (node.folder / "program").read_text().replace("TIMEOUT = 5 ", "TIMEOUT = 0.2 ")
    (node.folder / "program").write_text(text)
    node.smi(script="#!/bin/sh\ntrap '' TERM\nexec /bin/sleep 60\n")
    node.start(41, "0")  # the limit of call() is what it must not reach
    assert node.said() == {}


def test_a_full_or_foreign_folder_fails_no_job(node):
    node.jobs.write_text("a file where the folder should be")
    assert node.start(41, "0") and node.stop(41) == ""


@pytest.mark.parametrize("name", ["ironburst-prolog", "ironburst-epilog"])
def test_slurms_programs_go_on_whatever_it_does(tmp_path, name):
    """Also without it, where no exporter is."""
    text = (
        (FILES / name).read_text().replace("/usr/local/sbin/", f"{tmp_path}/").replace("/run/ironburst", str(tmp_path))
    )
    (tmp_path / name).write_text(text)
    (tmp_path / "gate.ok").touch()
    (tmp_path / "ironburst-health").write_text("#!/bin/sh\n")
    (tmp_path / "ironburst-health").chmod(0o755)
    for script in (None, "#!/bin/sh\necho noise; exit 3\n", f"#!/bin/sh\necho $1 $SLURM_JOB_ID >> {tmp_path}/called\n"):
        if script:
            (tmp_path / "ironburst-gpu-jobs").write_text(script)
            (tmp_path / "ironburst-gpu-jobs").chmod(0o755)
        env = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "dgx01"}
        done = subprocess.run(["sh", tmp_path / name], env=env, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stdout) == (
            0,
            "",
        )  # what a prolog prints are commands to Slurm (TaskProlog) or a log
    assert (tmp_path / "called").read_text() == {"ironburst-prolog": "start 5\n", "ironburst-epilog": "stop 5\n"}[name]


def test_a_node_that_failed_the_gate_maps_nothing(tmp_path):
    text = (
        (FILES / "ironburst-prolog")
        .read_text()
        .replace("/usr/local/sbin/", f"{tmp_path}/")
        .replace("/run/ironburst", str(tmp_path))
    )
    (tmp_path / "ironburst-gpu-jobs").write_text(f"#!/bin/sh\ntouch {tmp_path}/called\n")
    (tmp_path / "ironburst-gpu-jobs").chmod(0o755)
    assert subprocess.run(["sh", "-c", text], timeout=30).returncode == 1 and not (tmp_path / "called").exists()


def test_the_exporter_reads_where_they_are_written():
    unit = (PLAYBOOKS / "roles/metrics/templates/dcgm-exporter.conf.j2").read_text()
    assert f"--hpc-job-mapping-dir {load('roles/metrics/files/ironburst-gpu-jobs.py').JOBS}\n" in unit


def test_it_runs_with_the_python_of_el8(node):
    python = next(iter(sorted(Path.home().glob(".pyenv/versions/3.6.*/bin/python3"))), None)
    if python is None:
        pytest.skip("no Python 3.6 in ~/.pyenv: `pyenv install 3.6`")
    node.python = str(python)
    node.start(41, "0,3")
    assert node.said() == {"3": ["41"], "1": ["41"]}


# ---- the lab's exporter, which copies series as the real one does


@pytest.fixture
def exporter(node, tmp_path):
    """Starts the stub with the fields that the role writes, and a GPU of the lab's for each of SMI's; scrapes it."""
    started = []
    template = Template((PLAYBOOKS / "roles/metrics/templates/dcgm-fields.csv.j2").read_text())
    defaults = yaml.safe_load((PLAYBOOKS / "roles/metrics/defaults/main.yml").read_text())
    (tmp_path / "fields.csv").write_text(template.render(metrics_dcgm_fields=defaults["metrics_dcgm_fields"]))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        at = f"127.0.0.1:{free.getsockname()[1]}"

    def start(*more):
        stub = PLAYBOOKS.parent / "lab/packages/stubs/dcgm-exporter"
        argv = [sys.executable, str(stub), "-f", str(tmp_path / "fields.csv"), "-a", at, *more]
        env = os.environ | {"PATH": f"{node.folder}/bin:{os.environ['PATH']}"}
        started.append(subprocess.Popen(argv, env=env, stderr=subprocess.PIPE, text=True))
        return started[-1]

    def scrape():
        with urllib.request.urlopen(f"http://{at}/metrics", timeout=20) as answer:
            return answer.read().decode()

    def answers():
        try:
            return scrape()
        except OSError:
            return None

    start.scrape, start.answers = scrape, answers
    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_job_is_a_label_of_its_gpus_series_from_prolog_to_epilog(node, exporter, tmp_path):
    node.smi("".join(f"{line}, NVIDIA H100 80GB HBM3\n" for line in SMI.splitlines()))
    exporter("--hpc-job-mapping-dir", str(node.jobs))
    wait_for(exporter.answers, 60, "the exporter")
    busy = re.compile(r'^DCGM_FI_PROF_GR_ENGINE_ACTIVE\{gpu="(\d)".*hpc_job="(\d+)"\} ([\d.]+)$', re.MULTILINE)
    assert busy.findall(exporter.scrape()) == []
    node.smi(SMI)
    node.start(41, "0,3")
    node.smi("".join(f"{line}, NVIDIA H100 80GB HBM3\n" for line in SMI.splitlines()))
    text = exporter.scrape()
    assert busy.findall(text) == [("1", "41", "0.95"), ("3", "41", "0.95")]
    (node.jobs / "1").write_text("41\n42\n")  # a foreign prolog
    assert [job for gpu, job, _ in busy.findall(exporter.scrape()) if gpu == "1"] == ["41", "42"]
    (node.jobs / "1").write_text("41\n")
    node.stop(41)
    assert busy.findall(exporter.scrape()) == []
    fields = (tmp_path / "fields.csv").read_text()
    assert set(re.findall(r"^# TYPE (DCGM_\w+)", text, re.MULTILINE)) == set(
        re.findall(r"^(DCGM_\w+)", fields, re.MULTILINE)
    ) - {"DCGM_EXP_XID_ERRORS_COUNT"}  # without an error it has no series


@pytest.mark.parametrize("more", [("--hpc-jobs", "/x"), ("--hpc-job-mapping-dir",)])
def test_the_stub_refuses_what_the_real_one_refuses(exporter, more):
    process = exporter(*more)
    assert process.wait(30) == 1 and "flag provided but not defined" in process.stderr.read()
