"""MIG slices in Slurm: types in slurm.conf, a line a device in gres.conf, links and UUIDs on the node, in one order.

Output of nvidia-smi is written after NVIDIA's MIG guide and nvsmi_device_v12.dtd, not captured.
"""

import json
import os
import re
import subprocess

import pytest
import test_templates as templates
from programs import PLAYBOOKS, load
from sample import lab_document

from ironburst.document.model import MigDocument
from lab.hosts import rootfs
from lab.packages import repository
from lab.system import LAB_ROOT, run
from tests.sites import need_lab

LAYOUT = MigDocument(gpus=[0, 2], profiles={"3g.40gb": 1, "1g.10gb": 2})
BY_GPU = {0: dict(LAYOUT.profiles), 1: {}, 2: dict(LAYOUT.profiles), 3: {}}
LISTED = "".join(
    f"GPU {gpu}: NVIDIA H100 80GB HBM3 (UUID: GPU-0000000{gpu}-1)\n"
    + "".join(
        f"  MIG {name}     Device  {device}: (UUID: MIG-{gpu}-{device})\n"
        for device, name in enumerate(("3g.40gb", "1g.10gb", "1g.10gb") if gpu in (0, 2) else ())
    )
    for gpu in range(4)
)
PLACES = {0: (1, 0), 1: (9, 0), 2: (11, 0)}  # device: GPU and compute instance
QUERIED = (
    "<nvidia_smi_log>"
    + "".join(
        f"<gpu id='{gpu}'><minor_number>{gpu}</minor_number><mig_devices>"
        + "".join(
            f"<mig_device><index>{device}</index><gpu_instance_id>{gi}</gpu_instance_id>"
            f"<compute_instance_id>{ci}</compute_instance_id></mig_device>"
            for device, (gi, ci) in (PLACES if gpu in (0, 2) else {}).items()
        )
        + "</mig_devices></gpu>"
        for gpu in range(4)
    )
    + "</nvidia_smi_log>"
)


@pytest.fixture
def program():
    return load("roles/slurm_node/files/ironburst-slices.py")


def sliced_document(mig=LAYOUT):
    document = lab_document()
    hosts = [host.model_copy(update={"mig": [mig]}) if host.name == "dgx01" else host for host in document.hosts]
    return document.model_copy(update={"hosts": hosts})


@pytest.fixture
def node(tmp_path, program):
    """What the driver of a node with LAYOUT on GPUs 0 and 2 shows: (/proc's folder, /dev, /run)."""
    capabilities, dev = tmp_path / "proc", tmp_path / "dev"
    (dev / "nvidia-caps").mkdir(parents=True)
    for gpu in range(4):
        (dev / f"nvidia{gpu}").touch()
        for gi, ci in PLACES.values():
            folder = capabilities / f"gpu{gpu}/mig/gi{gi}"
            (folder / f"ci{ci}").mkdir(parents=True)
            minor = 3 + 135 * gpu + 9 * gi
            for path, number in ((folder / "access", minor), (folder / f"ci{ci}/access", minor + 1 + ci)):
                path.write_text(f"DeviceFileMinor: {number}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
                (dev / f"nvidia-caps/nvidia-cap{number}").touch()
    program.minor = minor_without_devices(program.minor)
    return capabilities, dev, tmp_path / "run"


def minor_without_devices(minor):
    """The program asks the driver's tool for files that are missing in /dev; this machine has neither."""

    def asked(path):
        old, os.path.exists = os.path.exists, lambda _: True
        try:
            return minor(path)
        finally:
            os.path.exists = old

    return asked


def found(program, node):
    return program.devices(BY_GPU, program.listed(LISTED), program.placed(QUERIED), str(node[0]))


def test_jobs_ask_for_slices_by_their_profile_and_for_the_other_gpus_by_their_model():
    plain, nodes, partitions = templates.settings(templates.render("slurm.conf.j2", sliced_document()))
    assert nodes["dgx01"]["Gres"] == "gpu:h100:6,gpu:1g.10gb:4,gpu:3g.40gb:2"
    assert nodes["dgx02"]["Gres"] == "gpu:h100:8"
    assert plain["AccountingStorageTRES"] == "gres/gpu,gres/gpu:1g.10gb,gres/gpu:3g.40gb"
    assert plain["TaskProlog"] == "/usr/local/sbin/ironburst-task-prolog"
    assert partitions["home"]["DefMemPerGPU"] == str(1000 // 12), "whoever asks for one device takes a twelfth"
    every = MigDocument(gpus=list(range(8)), profiles={"1g.10gb": 7})
    assert templates.settings(templates.render("slurm.conf.j2", sliced_document(every)))[1]["dgx01"]["Gres"] == (
        "gpu:1g.10gb:56"
    )
    without = templates.settings(templates.render("slurm.conf.j2"))[0]
    assert without["AccountingStorageTRES"] == "gres/gpu" and "TaskProlog" not in without


def test_gres_conf_and_the_node_name_the_same_devices_in_the_same_order(program, node):
    lines = [line for line in templates.render("gres.conf.j2", sliced_document()).splitlines() if "=dgx01 " in line]
    types = [re.search(r"Type=(\S+)", line)[1] for line in lines]
    assert types == ["h100"] * 6 + ["1g.10gb"] * 4 + ["3g.40gb"] * 2
    links = [set(re.search(r"MultipleFiles=(\S+)", line)[1].split(",")) for line in lines if "MultipleFiles" in line]
    layout = {gpu: dict(LAYOUT.profiles) if gpu in LAYOUT.gpus else {} for gpu in range(8)}
    named = [(gpu, profile, number) for gpu, profile, number in program.wanted(layout)]
    assert [
        {f"/dev/ironburst-mig/{gpu}-{profile}-{number}.{suffix}" for suffix in ("gpu", "gi", "ci")}
        for gpu, profile, number in named
        if profile
    ] == links
    assert [gpu for gpu, profile, _ in named if not profile] == [
        int(re.search(r"File=/dev/nvidia(\d+)", line)[1]) for line in lines if "MultipleFiles" not in line
    ]


def test_links_lead_to_the_devices_of_a_slice_and_the_map_has_its_uuid(program, node):
    _, dev, folder = node
    program.write(found(program, node), str(dev), str(folder))
    link = dev / "ironburst-mig/2-1g.10gb-1.gi"
    assert link.readlink() == (dev / f"nvidia-caps/nvidia-cap{3 + 135 * 2 + 9 * 11}")
    assert link.with_suffix(".gpu").readlink() == (dev / "nvidia2")
    uuids = (folder / "slices").read_text().split()
    assert uuids == [
        "GPU-00000001-1",
        "GPU-00000003-1",
        "MIG-0-1",
        "MIG-0-2",
        "MIG-2-1",
        "MIG-2-2",
        "MIG-0-0",
        "MIG-2-0",
    ]
    program.write([], str(dev), str(folder))
    assert list((dev / "ironburst-mig").iterdir()) == []


def test_what_is_not_as_declared_keeps_slurmd_from_starting(program, node):
    with pytest.raises(program.Failed, match=r"GPU 0 has 2 slices 1g\.10gb, declared are more: converge the node"):
        list(program.devices({0: {"1g.10gb": 3}}, program.listed(LISTED), program.placed(QUERIED), str(node[0])))
    with pytest.raises(program.Failed, match="does not say which device file"):
        program.devices(BY_GPU, program.listed(LISTED), program.placed(QUERIED), str(node[0] / "nowhere"))
    (node[1] / f"nvidia-caps/nvidia-cap{3 + 9 * 9}").unlink()
    with pytest.raises(program.Failed, match=r"nvidia-cap84 is not there"):
        program.write(found(program, node), str(node[1]), str(node[2]))
    for text in ("", "No devices were found\n"):
        with pytest.raises(program.Failed, match="names no GPU"):
            program.listed(text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"SLURM_STEP_GPUS": "2,0"}, "export CUDA_VISIBLE_DEVICES=MIG-b,GPU-a\n"),
        ({"SLURM_JOB_GPUS": "1"}, "export CUDA_VISIBLE_DEVICES=MIG-a\n"),
        ({"SLURM_JOB_GPUS": "0,1,2", "SLURM_STEP_GPUS": "1"}, "export CUDA_VISIBLE_DEVICES=MIG-a\n"),
        ({"SLURM_JOB_GPUS": "7"}, "export CUDA_VISIBLE_DEVICES=none\n"),
        ({}, ""),
    ],
)
def test_tasks_are_told_the_uuids_of_their_devices(tmp_path, given, said):
    (tmp_path / "slices").write_text("GPU-a\nMIG-a\nMIG-b\n")
    text = (PLAYBOOKS / "roles/slurm_node/files/ironburst-task-prolog").read_text()
    script = text.replace("/run/ironburst/slices", str(tmp_path / "slices"))
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, env={"PATH": os.environ["PATH"]} | given
    )
    assert (done.returncode, done.stdout) == (0, said)


def test_the_layout_is_read_as_the_role_mig_writes_it(program):
    text = json.dumps({"0": {"1g.10gb": 7}, "1": {}})
    layout = {int(gpu): profiles for gpu, profiles in json.loads(text).items()}
    assert next(iter(program.wanted(layout))) == (1, None, 0) and len([*program.wanted(layout)]) == 8


PACKAGES = ("slurmd", "slurm-client", "slurm-wlm-basic-plugins", "libslurm42t64", "libhwloc15", "libmunge2", "libnuma1")
# slurmd knows itself by its name, which Debian's alternatives make
LOOK = """set -e
mount -t overlay overlay -o lowerdir=$1,upperdir=$2/up,workdir=$2/work $2/mnt
cp -a $2/files/. $2/mnt/
mount -t proc proc $2/mnt/proc
ln -sf slurmd-wlm $2/mnt/usr/sbin/slurmd
echo 'slurm:x:64030:64030::/:/bin/false' >> $2/mnt/etc/passwd
exec chroot $2/mnt slurmd -N dgx01 -G
"""


@pytest.fixture
def disk(tmp_path):
    """A folder whose `files` lie over a bare Debian 13: Slurm's packages and settings, and device files."""
    need_lab()
    files = tmp_path / "files"
    pool = repository.repositories(LAB_ROOT) / "debian/pool"
    for name in PACKAGES:
        run(["dpkg-deb", "-x", str(next(pool.glob(f"{name}_*.deb"))), str(files)])
    etc = files / "etc/slurm"
    etc.mkdir(parents=True, exist_ok=True)
    for name in ("slurm.conf", "gres.conf", "cgroup.conf"):
        text = templates.render(f"{name}.j2", sliced_document(), slurm_head_cgroup=False)
        # there is no munged
        (etc / name).write_text(text.replace("AuthType=auth/munge", "AuthType=auth/none\nCredType=cred/none"))
    (files / "dev/ironburst-mig").mkdir(parents=True)
    for gpu in range(8):
        os.mknod(files / f"dev/nvidia{gpu}", 0o20666, os.makedev(195, gpu))
    links = sorted(set(re.findall(r"/dev/ironburst-mig/[^,\s]+", (etc / "gres.conf").read_text())))
    for minor, link in enumerate(links):
        os.mknod(files / link[1:], 0o20666, os.makedev(235, minor))
    for name in ("up", "work", "mnt"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.mark.lab
@pytest.mark.slow
def test_a_real_slurmd_takes_the_slices_and_numbers_them_as_the_list_does(disk, program):
    argv = ["unshare", "--mount", "sh", "-c", LOOK, "sh", str(rootfs.base_image(LAB_ROOT)), str(disk)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120)
    said = done.stdout + done.stderr
    assert "error" not in said, said
    seen = [(kind, files.split(",")[0]) for kind, files in re.findall(r"Name=gpu Type=(\S+) .*?File=(\S+)", said)]
    layout = {gpu: dict(LAYOUT.profiles) if gpu in LAYOUT.gpus else {} for gpu in range(8)}
    assert seen == [
        (profile, f"/dev/ironburst-mig/{gpu}-{profile}-{number}.gpu") if profile else ("h100", f"/dev/nvidia{gpu}")
        for gpu, profile, number in program.wanted(layout)
    ]
