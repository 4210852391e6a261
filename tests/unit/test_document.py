"""ClusterDocument: what the lab's declaration becomes, and how it is published and read."""

import json
from pathlib import Path

import pytest

from ironburst import document
from ironburst.cli import main
from ironburst.config import load

LAB = Path(__file__).parents[2] / "stacks/Pulumi.lab.yaml"
OBSERVED = document.Observed(
    instances={"fixed-1": {"id": "i-1", "address": "10.90.1.4"}},
    pool_zones={"p5": [{"zone": "us-east-1a", "subnet_id": "subnet-1", "launch_template_id": "lt-1"}]},
    interruption_queue_urls={"p5": "http://queue"},
)


@pytest.fixture
def lab():
    return document.build(load.load(LAB), OBSERVED)


def test_the_lab_document(lab):
    assert [(h.name, h.kind, h.partition) for h in lab.hosts] == [
        ("head", "bare_metal", None),
        ("dgx01", "bare_metal", "home"),
        ("dgx02", "bare_metal", "home"),
        ("fixed-1", "cloud", "fixed"),
    ]
    assert lab.scheduler.head_address == "10.78.0.10"
    assert (lab.host("dgx01").gpu.count, lab.host("dgx01").fabric_links, lab.host("dgx01").serial) == (8, 8, "LAB-DGX01")
    pool = lab.pool("p5")
    assert pool.nodes == ["p5-1", "p5-2", "p5-3"]
    assert (pool.partition, pool.fabric, pool.fabric_links, pool.boot_s) == ("burst-p5", "efa", 32, 45)
    assert pool.image_parameter == "/ironburst/lab/p5/image"
    assert pool.usd_per_hour["on-demand"] > pool.usd_per_hour["spot"] > 0


def test_a_declared_price_replaces_the_catalogues(lab):
    value = load.read_value(LAB)
    value["cloud"]["price"] = {"p5.48xlarge": {"on_demand": 1.5}}
    declared = document.build(load.from_value(value), OBSERVED).pool("p5").usd_per_hour
    assert declared == {"on-demand": 1.5, "spot": lab.pool("p5").usd_per_hour["spot"]}


def test_no_secret_is_in_the_document(lab):
    text = lab.model_dump_json()
    assert "password" not in text
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


def test_readers_ignore_unknown_fields_and_refuse_unknown_versions(tmp_path, lab):
    path = tmp_path / "lab.json"
    data = lab.model_dump(mode="json") | {"new": 1}
    path.write_text(json.dumps(data))
    assert document.read(path) == lab
    path.write_text(json.dumps(data | {"version": 2}))
    with pytest.raises(document.DocumentError, match="has version 2; this ironburst reads version 1"):
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


def test_publish_reads_the_stack_output(tmp_path, lab, monkeypatch, capsys):
    source = tmp_path / "out.json"
    for text, code in ((lab.model_dump_json(), 0), ("nonsense", 2), ("{}", 2)):
        source.write_text(text)
        with source.open() as stdin:
            monkeypatch.setattr("sys.stdin", stdin)
            assert main(["publish", "--to", str(tmp_path / "doc.json")]) == code
    assert "serial 1" in capsys.readouterr().out
