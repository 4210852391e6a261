"""ClusterDocument: what the lab's declaration becomes, and how it is published and read."""

import json
from pathlib import Path

import pytest

from ironburst import document
from ironburst.burst import Policy
from ironburst.burst.limits import WaitTarget
from ironburst.cli import main
from ironburst.config import load
from ironburst.controller import policy_view
from ironburst.document import build

LAB = Path(__file__).parents[3] / "stacks/Pulumi.lab.yaml"
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/training"
OBSERVED = build.Observed(
    instances={"fixed-1": {"id": "i-1", "address": "10.90.1.4"}},
    pool_zones={"p5": [{"zone": "us-east-1a", "place": {"subnet_id": "subnet-1", "launch_template_id": "lt-1"}}]},
    notices={"p5": "http://queue"},
)


@pytest.fixture
def lab():
    return build.build(load.load(LAB), OBSERVED)


def test_the_lab_document(lab):
    assert [(h.name, h.kind, h.partition) for h in lab.hosts] == [
        ("head", "bare_metal", None),
        ("dgx01", "bare_metal", "home"),
        ("dgx02", "bare_metal", "home"),
        ("fixed-1", "cloud", "fixed"),
    ]
    assert lab.scheduler.head_address == "10.78.0.10"
    expected = (8, 8, "LAB-DGX01")
    assert (lab.host("dgx01").gpu.count, lab.host("dgx01").fabric_links, lab.host("dgx01").serial) == expected
    pool = lab.pool("p5")
    assert pool.nodes == ["p5-1", "p5-2", "p5-3"]
    assert (pool.partition, pool.fabric, pool.fabric_links, pool.boot_s) == ("burst-p5", "efa", 32, 45)
    assert pool.image == "/ironburst/lab/p5/image"
    assert pool.usd_per_hour["on-demand"] > pool.usd_per_hour["spot"] > 0


def test_a_fixed_nodes_gpu_hour_costs_its_part_of_the_on_demand_price():
    value = load.read_value(LAB)
    group = value["cloud"]["groups"][0]

    def usd():
        return build.build(load.from_value(value), OBSERVED).host("fixed-1").usd_per_gpu_hour

    assert usd() == pytest.approx(55.04 / 8)  # the list price
    value["cloud"]["price"] = {"p5.48xlarge": {"on_demand": 41.28}}
    assert usd() == pytest.approx(41.28 / 8)
    group |= {
        "placement_group": False,
        "capacity_block": {"id": "cr-0123456789abcdef0", "ends": "2099-01-01T11:30:00Z"},
    }
    assert usd() == 0.0, "which was paid for before"


def test_budgets_and_the_policys_settings_reach_the_controller():
    value = load.read_value(LAB)
    value["budget"] |= {"usd_per_day": 200, "accounts": {"vision": 900}}
    value["burst"] = {"wait_target": "18m", "spot_max_nodes": 2}
    declared = build.build(load.from_value(value), OBSERVED)
    assert declared.budget == document.BudgetDocument(usd_per_month=2000, usd_per_day=200, accounts={"vision": 900})
    policy = policy_view.policy(document.parse(declared.model_dump(mode="json")))
    assert policy.limits.target == WaitTarget.of_mean(0.3) and policy.spot_max_nodes == 2
    value["burst"] = {"wait_target": {"mean": "18m", "p99": "30h", "max": "3d"}}
    target = policy_view.policy(build.build(load.from_value(value), OBSERVED)).limits.target
    assert (target.mean_h, target.p99_h, target.max_h, target.p999_h) == (0.3, 30, 72, pytest.approx(38 * 0.3 / 0.31))
    value["burst"] = {"wait_limit": "4h"}
    old = build.build(load.from_value(value), OBSERVED).model_dump(mode="json")
    for part, names in (
        ("burst", ("wait_target", "spot_max_nodes", "folders", "accounts")),
        ("budget", ("usd_per_day", "accounts")),
    ):
        for name in names:
            del old[part][name]  # as an older ironburst published it
    read = document.parse(old)
    assert policy_view.policy(read) == Policy("home", 4 * 3600.0, settle_s=30.0) and read.budget.accounts == {}


def test_a_declared_price_replaces_the_catalogues(lab):
    value = load.read_value(LAB)
    value["cloud"]["price"] = {"p5.48xlarge": {"on_demand": 1.5}}
    declared = build.build(load.from_value(value), OBSERVED).pool("p5").usd_per_hour
    assert declared == {"on-demand": 1.5, "spot": lab.pool("p5").usd_per_hour["spot"]}


def test_no_secret_is_in_the_document(lab):
    text = lab.model_dump_json()
    assert "password" not in text.replace('"sudo_password":""', "")  # of a hall: a reference
    assert "aws-secretsmanager:ironburst/lab/munge-key" in text


def test_publishing_counts_only_what_changed(tmp_path, lab):
    path = tmp_path / "lab.json"
    assert document.publish(lab, path).serial == 1
    assert document.publish(lab, path).serial == 1
    assert document.publish(lab.model_copy(update={"pools": []}), path).serial == 2
    assert document.read(path).pools == []
    with pytest.raises(document.DocumentError, match="not of 'other'"):
        document.publish(lab.model_copy(update={"cluster": "other"}), path)
    assert document.read(path).cluster == "lab"
    assert path.stat().st_mode & 0o777 == 0o644  # who reads it isn't who published it


def test_readers_ignore_unknown_fields_and_refuse_unknown_versions(tmp_path, lab):
    path = tmp_path / "lab.json"
    data = lab.model_dump(mode="json") | {"new": 1}
    path.write_text(json.dumps(data))
    assert document.read(path) == lab
    path.write_text(json.dumps(data | {"version": 7}))
    with pytest.raises(document.DocumentError, match="has version 7; this ironburst reads versions 1, 2, 3, 4, 5, 6:"):
        document.read(path, last_good=tmp_path / "good.json")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1}', None])
def test_a_damaged_document_gives_way_to_the_last_good_copy(tmp_path, lab, text):
    path, good = tmp_path / "lab.json", tmp_path / "good.json"
    document.publish(lab, path)
    assert document.read(path, last_good=good).serial == 1
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert document.read(path, last_good=good).cluster == "lab"
    with pytest.raises(document.DocumentError) as raised:
        document.read(path)
    assert "publish" in str(raised.value)


def test_a_place_that_can_not_be_written_is_one_sentence(lab, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        document.DocumentError, match=r"file/lab\.json can't be written \(.*\): give a place that may be written to"
    ):
        document.publish(lab, tmp_path / "file" / "lab.json")


def test_publish_reads_the_stack_output(tmp_path, lab, monkeypatch, capsys):
    source = tmp_path / "out.json"
    for text, code in ((lab.model_dump_json(), 0), ("nonsense", 2), ("{}", 2)):
        source.write_text(text)
        with source.open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            assert main(["publish", "--to", str(tmp_path / "doc.json")]) == code
    assert "serial 1" in capsys.readouterr().out


# ---- software, and what else a host is declared to have


def built(change):
    value = load.read_value(LAB)
    change(value)
    return build.build(load.from_value(value), OBSERVED)


def test_every_host_and_pool_has_its_exact_software(lab):
    dgx = lab.host("dgx01")
    expected = ("debian13", "580.95.05", "580.95.05", "inbox")
    assert (dgx.os, dgx.software.driver, dgx.software.fabric_manager, dgx.software.rdma) == expected
    assert dgx.software.packages["nvidia_driver"] == ["nvidia-open=580.95.05-*"]
    assert (lab.pool("p5").software.rdma, lab.pool("p5").os) == ("efa", "debian13")
    head = lab.host("head")
    assert head.software.driver is None and head.software.packages["slurm_head"]
    assert not head.software.packages["slurm_node"]
    cluster = lab.software
    expected = ("580.95.05", "containerd", ["containerd"])
    assert (cluster.driver, cluster.container_runtime, cluster.container_runtimes) == expected


def test_roles_are_what_the_declaration_needs(lab):
    least = [
        "base",
        "nvidia_driver",
        "fabric_manager",
        "cuda",
        "nvidia_container_toolkit",
        "container_runtime",
        "rdma",
        "dcgm",
        "metrics",
    ]
    assert lab.host("dgx01").roles == lab.pool("p5").roles == [*least, "node_health", "slurm_node"]
    assert lab.host("head").roles == ["base", "metrics", "prometheus", "slurm_head"]

    def everything(value):
        value.update(metrics=True, data_science=["pytorch"], filesystem={"kind": "nfs", "source": "10.0.0.5:/export"})
        value["halls"][0]["subnet_managers"] = ["head", "dgx01"]
        dgx = value["halls"][0]["nodes"][1]
        dgx.update(mig=[{"gpus": [0], "profiles": {"1g.10gb": 7}}], scratch={}, platform="generic-hgx-b200-8-gpu")
        dgx["mig"][0]["profiles"] = {"1g.23gb": 7}
        dgx["gpu_power_limit_w"] = 800

    full = built(everything)
    assert full.host("dgx01").gpu_power_limit_w == 800 and full.host("head").gpu_power_limit_w is None
    more = {"nvlsm", "mig", "gpu_power_limit", "metrics", "scratch", "shared_filesystem", "data_science"}
    assert set(full.host("dgx02").roles) == {*least, "node_health", "slurm_node"} | more
    assert set(full.host("dgx01").roles) == {*full.host("dgx02").roles, "infiniband_fabric"}
    assert full.host("head").roles == [
        "base",
        "infiniband_fabric",
        "metrics",
        "prometheus",
        "shared_filesystem",
        "slurm_head",
    ]


def test_mig_scratch_file_system_and_subnet_managers():
    def change(value):
        value["halls"][0]["subnet_managers"] = ["head", "dgx01"]
        value["halls"][0]["nodes"][1].update(
            mig=[{"profiles": {"1g.10gb": 7}}], scratch={"path": "/local", "devices": ["/dev/nvme1n1"]}
        )
        value["filesystem"] = {"kind": "lustre", "source": "mgs@o2ib:/fs", "options": "flock"}

    parsed = built(change)
    assert [one.model_dump() for one in parsed.host("dgx01").mig] == [
        {"gpus": list(range(8)), "profiles": {"1g.10gb": 7}}
    ]
    assert parsed.host("dgx02").scratch.model_dump() == {
        "path": "/local",
        "devices": ["/dev/nvme1n1"],
        "filesystem": "xfs",
    }
    assert parsed.host("fixed-1").mig is None and parsed.host("fixed-1").scratch is None
    assert parsed.filesystem.model_dump() == {"kind": "lustre", "source": "mgs@o2ib:/fs", "options": "flock"}
    managers = [one.model_dump() for one in parsed.subnet_managers["hall-a"]]
    assert managers == [{"host": "head", "priority": 14}, {"host": "dgx01", "priority": 13}]


def test_what_differs_in_a_group():
    def change(value):
        value["cloud"]["pools"][0].update(
            os="ubuntu2404", kernel="6.8.0-55", software={"cuda": "12.9", "container_runtime": ["docker", "enroot"]}
        )

    parsed = built(change)
    pool = parsed.pool("p5").software
    expected = ("ubuntu2404", "12.9", "6.8.0-55", ["docker", "enroot"])
    assert (parsed.pool("p5").os, pool.cuda, pool.kernel, pool.container_runtimes) == expected
    assert pool.packages["kernel"] == ["linux-image-6.8.0-55-generic", "linux-headers-6.8.0-55-generic"]
    assert parsed.host("dgx01").software.cuda == "13.0" and parsed.host("dgx01").os == "debian13"


def test_a_document_without_the_new_fields_is_still_read(lab):
    """One that an older ironburst published."""
    data = lab.model_dump(mode="json")
    for part in (*data["hosts"], *data["pools"]):
        for key in ("os", "software", "mig", "scratch"):
            del part[key]
    for part in data["pools"]:
        for key in (
            "capacity_ends_s",
            "capacity_starts_s",
            "account",
            "data",
            "licences",
        ):
            del part[key]
    del data["burst"]["settle_s"], data["topology"]
    for part in data["hosts"]:
        del part["data"], part["gpu_power_limit_w"]
    for key in ("filesystem", "subnet_managers", "data_science", "data"):
        del data[key]
    assert document.parse(data).host("dgx01").software is None


def test_the_fabric_of_a_hall_is_slurms_topology_with_every_node_of_slurm():
    def change(value):
        hall = value["halls"][0]
        hall["switches"] = [{"names": "leaf1", "kind": "leaf", "ports": 64}]
        hall["cables"] = [{"ends": ["dgx[01-02]/ib1", "leaf1/[1-2]"], "type": "dac", "speed": "NDR", "length_m": 2}]

    assert built(change).topology.splitlines()[1:] == [
        "SwitchName=leaf1 Nodes=dgx[01-02]",
        "SwitchName=fixed Nodes=fixed-1",
        "SwitchName=p5 Nodes=p5-[1-3]",
    ]
    assert built(lambda value: None).topology == ""


@pytest.mark.parametrize(("region", "domain"), [("us-east-1", "amazonaws.com"), ("cn-north-1", "amazonaws.com.cn")])
def test_data_sets_and_who_has_them(region, domain):
    def change(value):
        value["cloud"].update(
            region=region,
            data={
                "imagenet": {"s3": "training/imagenet", "kms_key": f"arn:aws:kms:{region}:123456789012:key/0a1b2c3d"},
                "genomes": {"fsx": "fs-0123456789abcdef0", "mount_name": "abcd", "path": "/genomes"},
            },
        )
        value["cloud"]["groups"][0]["data"] = ["genomes"]
        value["cloud"]["pools"][0]["data"] = ["c4", "imagenet"]

    parsed = built(change)
    source = f"fs-0123456789abcdef0.fsx.{region}.{domain}@tcp:/abcd"
    imagenet = {"kind": "s3", "source": "training/imagenet", "path": "/data/imagenet"}
    genomes = {"kind": "lustre", "source": source, "path": "/genomes"}
    assert parsed.model_dump()["data"] == {"imagenet": imagenet, "genomes": genomes}
    pool, fixed = parsed.pool("p5"), parsed.host("fixed-1")
    assert (pool.data, fixed.data, parsed.host("dgx01").data) == (["c4", "imagenet"], ["genomes"], [])
    assert {name: each.model_dump() for name, each in parsed.data_of(pool).items()} == {"imagenet": imagenet}
    assert {name: each.model_dump() for name, each in parsed.data_of(fixed).items()} == {"genomes": genomes}
    assert "data_sets" in pool.roles and "data_sets" in fixed.roles and "data_sets" not in parsed.host("dgx01").roles


def test_names_that_nobody_declared_give_no_role():
    def change(value):
        value["cloud"]["pools"][0]["data"] = ["c4"]

    parsed = built(change)
    assert parsed.data_of(parsed.pool("p5")) == {} and "data_sets" not in parsed.pool("p5").roles


def test_where_jobs_may_go_and_how_long_they_settle():
    def change(value):
        value["cloud"]["pools"][0].update(capacity_ends="2026-12-01T11:30:00Z", data=["imagenet"], licences=["matlab"])
        del value["burst"]["settle"]

    parsed = built(change)
    pool = parsed.pool("p5")
    expected = (1796124600.0, ["imagenet"], ["matlab"], "efa")
    assert (pool.capacity_ends_s, pool.data, pool.licences, pool.fabric) == expected
    assert parsed.burst.settle_s == 30


def test_a_pool_of_a_capacity_block():
    """What it costs was paid, and its end is when AWS begins to take it back."""

    def change(value):
        pool = value["cloud"]["pools"][0]
        del pool["markets"], pool["zones"][1:]
        begins, ends = "2026-12-01T11:30:00Z", "2026-12-03T11:30:00Z"
        pool["capacity_block"] = {"id": "cr-0a", "starts": begins, "ends": ends, "account": "vision"}

    pool = built(change).pool("p5")
    assert (pool.markets, pool.usd_per_hour, pool.price_as_of) == (["capacity-block"], {"capacity-block": 0.0}, None)
    assert (pool.bought, pool.account) == (True, "vision")
    begins_s = 1796124600.0
    assert (pool.capacity_starts_s, pool.capacity_ends_s) == (begins_s, begins_s + 2 * 86400 - 1800)


def test_a_pool_of_a_group_of_reservations():
    def change(value):
        pool = value["cloud"]["pools"][0]
        pool |= {"markets": ["on-demand"], "capacity_reservation_group": GROUP}

    pool = built(change).pool("p5")
    assert pool.bought
    assert pool.usd_per_hour["on-demand"] > 0 and pool.account is None


def test_a_pool_of_several_types():
    """Slurm is told of the least of them, the prices are each one's own."""

    def change(value):
        pool = value["cloud"]["pools"][0]
        del pool["instance_type"]
        pool |= {"instance_types": ["g6e.24xlarge", "g6e.12xlarge"], "prefer": "order", "slurm": None}

    pool = built(change).pools[0]
    assert (pool.instance_type, pool.prefer, pool.fabric_links) == ("g6e.24xlarge", "order", 1)
    assert (pool.gpu.model, pool.gpu.count, pool.gpu.pcie_width) == ("L40S", 4, 8)
    assert (pool.slurm.cpus, pool.slurm.memory_mb) == (48, int(393216 * 0.95))
    (other,) = pool.other_types
    assert (pool.usd_per_hour["on-demand"], other.usd_per_hour["on-demand"]) == (15.06559, 10.49264)
    assert (other.instance_type, set(other.interruptions_per_hour)) == ("g6e.12xlarge", {"spot"})
    assert pool.price("g6e.12xlarge", "on-demand") == 10.49264 and pool.price("p5.48xlarge", "on-demand") is None
    assert pool.dearest_usd_per_hour == 15.06559


def test_a_conflict_gives_no_document():
    def change(value):
        value["software"]["driver"] = "535"

    with pytest.raises(document.DocumentError, match="CUD-001"):
        built(change)


def test_a_reader_says_when_what_it_gives_may_be_old(tmp_path, lab):
    path, good = tmp_path / "lab.json", tmp_path / "good.json"
    document.publish(lab, path)
    read = document.Reader(path, good)
    assert read().serial == 1 and read.stale == ""
    whole = path.read_text()
    path.write_text(whole[:100])
    assert read().serial == 1 and "can't be read, serial 1 counts on" in read.stale and str(path) in read.stale
    path.write_text(whole)
    assert read().serial == 1 and read.stale == ""
    document.publish(lab.model_copy(update={"pools": []}), path)
    assert read().serial == 2 and read.stale == ""
    path.write_text(whole)  # somebody put yesterday's back
    assert read().serial == 1 and "serial 1, older than 2" in read.stale
    assert document.Reader(path, good)().serial == 1


def test_a_reader_goes_on_without_a_good_copy_on_disk(tmp_path, lab):
    path, folder = tmp_path / "lab.json", tmp_path / "good"
    document.publish(lab, path)
    folder.write_text("")  # a file where the folder should be: nothing can be written there
    read = document.Reader(path, folder / "good.json")
    assert read() == document.read(path) and "no good copy is kept" in read.stale
    path.write_text(json.dumps({"version": 7}))
    assert read().serial == 1 and "has version 7" in read.stale
    with pytest.raises(document.DocumentError, match="has version 7"):
        document.Reader(path, folder / "good.json")()


def test_a_good_copy_is_written_only_when_it_changes(tmp_path, lab):
    path, good = tmp_path / "lab.json", tmp_path / "good.json"
    document.publish(lab, path)
    read = document.Reader(path, good)
    read()
    good.unlink()
    read()
    assert not good.exists()


@pytest.mark.parametrize(
    ("os", "user"),
    [("ubuntu2204", "ubuntu"), ("ubuntu2404", "ubuntu"), ("debian13", "admin"), ("rhel9", "ec2-user"), (None, "root")],
)
def test_who_logs_in_at_a_cloud_host(os, user):
    assert document.Ssh(user="root").user_at("cloud", os) == user
    assert document.Ssh(user="root", cloud_user="rocky").user_at("cloud", os) == "rocky"
    assert document.Ssh(user="operator", cloud_user="rocky").user_at("bare_metal", os) == "operator"


@pytest.mark.parametrize(
    ("tick", "given", "kill_wait_s"), [("10s", None, 90), ("30s", None, 80), ("100s", None, 30), ("10s", "45s", 45)]
)
def test_a_job_may_save_for_what_the_notice_leaves(tick, given, kill_wait_s):
    value = load.read_value(LAB)
    value["burst"] = value["burst"] | {"tick": tick}
    value["scheduler"]["kill_wait"] = given
    value["scheduler"]["mail"] = {"relay": "mail.example.org", "sender": "slurm@example.org"}
    scheduler = build.build(load.from_value(value), OBSERVED).scheduler
    assert (scheduler.kill_wait_s, scheduler.mail.sender) == (kill_wait_s, "slurm@example.org")
