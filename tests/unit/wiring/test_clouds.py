"""The clouds of documents and stack files: connected once, each with its own, and one that fails keeps no other."""

import argparse
from dataclasses import replace

import pytest
import yaml

from ironburst.adapters.several_clouds import SeveralClouds
from ironburst.cli import doctor, rights
from ironburst.config.load import KEY
from ironburst.doctor.checks import CheckResult
from ironburst.ports import InsufficientCapacity, LaunchRequest, OutcomeUnknown, Refused
from ironburst.system.bad_input import BadInput
from ironburst.wiring import clouds
from ironburst.wiring.google import GOOGLE
from tests import several_clouds
from tests.fakes import FakeClock, FakeCloud, FakeSlurm, document
from tests.fakes.several import Second, in_two


@pytest.fixture
def connected(monkeypatch):
    """What was connected, by provider; a provider in `broken` can't be."""
    clock = FakeClock()
    made = {"aws": FakeCloud(clock, FakeSlurm(clock)), "google": Second(clock, FakeSlurm(clock))}
    calls, broken = [], set()

    def row(name, provider):
        def api(there):
            calls.append((name, there.region))
            if name in broken:
                raise Refused(f"no credentials of {name}")
            return made[name]

        return replace(provider, api=api)

    monkeypatch.setitem(clouds.PROVIDERS, "aws", row("aws", clouds.PROVIDERS["aws"]))
    monkeypatch.setitem(clouds.PROVIDERS, "google", row("google", GOOGLE))
    return argparse.Namespace(calls=calls, broken=broken, **made)


def moved(declared, region):
    return declared.model_copy(update={"cloud": declared.cloud.model_copy(update={"region": region})})


def test_both_are_connected_once_and_again_where_one_moves(connected):
    connection, both = clouds.CloudConnection(), in_two(document())
    first = connection.follow(both)
    assert isinstance(first, SeveralClouds) and connection.follow(both) is first
    assert connected.calls == [("aws", "us-east-1"), ("google", "us-central1")]
    connection.follow(moved(both, "us-west-2"))
    assert connected.calls[2:] == [("aws", "us-west-2")]


def test_what_one_cloud_says_of_a_launch_is_so_whoever_else_is_silent(connected):
    both = clouds.CloudConnection().follow(in_two(document()))
    connected.aws.unlisted = OutcomeUnknown("no answer")
    with pytest.raises(OutcomeUnknown):
        both.by_token("ib-1")
    connected.google.refused["ib-1"] = InsufficientCapacity("none", "POOL")
    assert both.by_token("ib-1") is connected.google.refused["ib-1"]


def test_one_alone_is_asked_itself(connected):
    connection = clouds.CloudConnection()
    assert connection.follow(document()) is connected.aws


def test_one_that_is_named_no_more_stays_for_what_was_rented_there(connected):
    connection, both = clouds.CloudConnection(), in_two(document())
    connection.follow(both)
    alone = both.model_copy(update={"pools": both.pools[:1], "other_clouds": []})
    still = connection.follow(alone)
    assert still.described(["z/n/1"]) == [] and still.described(["i-1"]) == []


def test_one_that_cant_be_connected_keeps_no_other_and_is_tried_again(connected):
    connection, both = clouds.CloudConnection(), in_two(document())
    connected.broken.add("google")
    port = connection.follow(both)
    assert port.image_id("/ironburst/lab/p5/image") == "ami-1"
    with pytest.raises(Refused, match="no credentials of google"):
        port.image_id("family/g5")
    connected.broken.clear()
    assert connection.follow(both).image_id("family/g5") == "image-1"
    assert [name for name, _ in connected.calls] == ["aws", "google", "google"]


def test_alone_it_is_the_error_of_before(connected):
    connected.broken.add("aws")
    with pytest.raises(Refused, match="no credentials of aws"):
        clouds.CloudConnection().follow(document())


def request(token, place, zone="us-east-1a"):
    its = {"launch": token, "cluster": "lab", "pool": "p5", "market": "on-demand", "count": 1, "image_id": "x"}
    its["user_data"] = '{"nodes": ["p5-1"], "dead_man_s": 1, "hard_limit_s": 9}'
    return LaunchRequest(token=token, zone=zone, place=place, **its)


def test_a_launch_goes_where_its_place_is_and_one_of_an_older_ironburst_to_the_oldest(connected):
    port = clouds.CloudConnection().follow(in_two(document()))
    asked = [request("t1", {"provider": "google"}), request("t2", {"launch_template_id": "lt-1"})]
    answers = port.launch_all(asked)
    assert [each.id.partition("-")[0] for (each,) in answers] == ["z/n/1", "i"]
    connected.google.launch_all = lambda _: (_ for _ in ()).throw(Refused("rights"))
    lost, there = port.launch_all([request("t3", {"provider": "google"}), request("t4", {"provider": "aws"})])
    assert type(lost) is OutcomeUnknown and len(there) == 1, "what raised says of none whether it happened"


# ---- the command line


@pytest.fixture
def stack(tmp_path, monkeypatch):
    value = several_clouds.value()
    del value["budget"]["total_usd_per_month"]
    path = tmp_path / "Pulumi.two.yaml"
    path.write_text(yaml.safe_dump({"config": {"aws:region": "us-east-1", KEY: value}}))
    return path


def test_the_doctor_asks_each_and_says_whose_a_line_is(connected, stack, monkeypatch, capsys):
    def of(name):
        def asked(site):
            assert site.config.cloud.provider == name and not site.config.other_clouds
            yield CheckResult("quota", site.config.cloud.region, "ok", "there")

        return replace(clouds.PROVIDERS[name], doctor=asked)

    for name in ("aws", "google"):
        monkeypatch.setitem(clouds.PROVIDERS, name, of(name))
    asked = argparse.Namespace(stack_file=stack, cloud=True, slurm=False, place=None, document=None, json=False)
    assert doctor.run(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(None, 1)[1] for line in lines[:2]] == [
        "aws quota: us-east-1: there",
        "google quota: us-central1: there",
    ]


def test_the_doctor_shows_what_is_broken_in_the_second_cloud_alone_with_its_place(
    connected, stack, monkeypatch, capsys
):
    def sound(site):
        yield CheckResult("quota", site.config.cloud.region, "ok", "there")

    def broken(site):
        yield CheckResult("quota", "p5", "fail", "cloud.pools is too much", "lower max_nodes of cloud.pools")

    monkeypatch.setitem(clouds.PROVIDERS, "aws", replace(clouds.PROVIDERS["aws"], doctor=sound))
    monkeypatch.setitem(clouds.PROVIDERS, "google", replace(clouds.PROVIDERS["google"], doctor=broken))
    asked = argparse.Namespace(stack_file=stack, cloud=True, slurm=False, place=None, document=None, json=False)
    assert doctor.run(asked) == 3
    assert capsys.readouterr().out.splitlines()[1:] == [
        "fail     google quota: p5: other_clouds[0].pools is too much",
        "         -> lower max_nodes of other_clouds[0].pools",
        "1 ok, 1 fail",
    ]


def test_rights_that_cant_be_written_in_the_second_cloud_have_its_place(connected, stack, monkeypatch, capsys):
    def refused(wanted):
        raise BadInput("cloud.labels aren't declared")

    for name, its in (("aws", lambda wanted: {"up": {}}), ("google", refused)):
        monkeypatch.setitem(clouds.PROVIDERS, name, replace(clouds.PROVIDERS[name], rights=its))
    assert rights.run(argparse.Namespace(stack_file=stack, account=None, out=None)) == 2
    assert capsys.readouterr().err == "ironburst: other_clouds[0].labels aren't declared\n"


def test_rights_are_those_of_each(connected, stack, monkeypatch, capsys):
    for name in ("aws", "google"):
        its = replace(clouds.PROVIDERS[name], rights=lambda wanted: {"up": wanted.config.cloud.region})
        monkeypatch.setitem(clouds.PROVIDERS, name, its)
    assert rights.run(argparse.Namespace(stack_file=stack, account=None, out=None)) == 0
    assert yaml.safe_load(capsys.readouterr().out) == {"aws-up": "us-east-1", "google-up": "us-central1"}
