"""Data sets of cloud nodes, as they are declared."""

import pytest

from ironburst.config import load
from ironburst.config.checks import check
from tests import google_stack
from tests.unit.config.test_checks import NOW, findings

FSX = {"fsx": "fs-0123456789abcdef0", "mount_name": "abcd"}
KEY = "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"


@pytest.fixture
def said(declared):
    """`said(data, names)`: what is said of the lab's stack with these data sets, and these of its pool."""

    def check(data, names=(), **pool):
        declared["cloud"]["data"] = data
        declared["cloud"]["pools"][0].update(data=list(names), **pool)
        return [(each.path.split("cluster.", 1)[1], each.severity, each.message) for each in findings(declared)]

    return check


@pytest.mark.parametrize(
    ("place", "good"),
    [
        ("training-data/imagenet", True),
        ("training-data", True),
        ("training-data/a/b=1/", True),
        ("s3://training-data/imagenet", False),
        ("training-data//imagenet", False),
        ("training-data/imagenet/*", False),
        ("training-data/${aws:username}", False),
        ("training-data/../other", False),
        ("Training/imagenet", False),
        ("arn:aws:s3:::training-data/x", False),
        ("/imagenet", False),
    ],
)
def test_a_place_in_s3_is_a_bucket_and_a_prefix(said, place, good):
    got = said({"imagenet": {"s3": place}}, ["imagenet"])
    assert not got if good else "write for example training-data/imagenet, without s3://" in got[0][2]


def test_a_slash_at_the_end_is_the_same_place(declared):
    declared["cloud"]["data"] = {"imagenet": {"s3": "training-data/imagenet/"}}
    cloud = load.from_value(declared).cloud
    assert cloud and cloud.data["imagenet"].s3 == "training-data/imagenet"


@pytest.mark.parametrize(
    ("data_set", "words"),
    [
        ({}, "needs one source: s3 (bucket/prefix), or fsx with mount_name"),
        ({"s3": "training-data", **FSX}, "needs one source"),
        ({"fsx": FSX["fsx"]}, "needs mount_name beside fsx"),
        ({"s3": "training-data", "mount_name": "abcd"}, "needs mount_name beside fsx, and only there"),
        ({**FSX, "kms_key": KEY}, "has a kms_key without s3"),
        ({"s3": "training-data", "kms_key": "arn:aws:kms:us-east-1:123456789012:alias/x"}, "isn't of the form"),
        ({"s3": "training-data", "path": "/data/../etc"}, "isn't of the form"),
        ({"s3": "training-data", "path": "data"}, "isn't of the form"),
        ({"fsx": "fs-01", "mount_name": "abcd"}, "isn't of the form"),
    ],
)
def test_a_data_set_has_one_source_and_what_belongs_to_it(said, data_set, words):
    (only,) = said({"imagenet": data_set})
    assert only[0].startswith("cloud.data.imagenet") and only[1] == "error" and words in only[2]


def test_a_name_is_one_that_jobs_can_say(said):
    (only,) = said({"a,b": {"s3": "training-data"}})
    assert only[1] == "error" and "is not a name of a data set" in only[2]


def test_a_name_that_is_not_declared_stays_valid_and_is_told(said):
    path, severity, message = said({}, ["c4"])[0]
    assert (path, severity) == ("cloud.pools[0].data[0]", "warning")
    assert message == (
        "'c4' is not in cloud.data (nothing is declared there); somebody else has to bring it to these nodes"
    )
    assert "declared there: imagenet" in said({"imagenet": {"s3": "training-data"}}, ["c4", "imagenet"])[0][2]


@pytest.mark.parametrize(
    ("one", "other", "words"),
    [
        ("/data/a", "/data/a/b", "/data/a/b and /data/a (data set one)"),
        ("/data/a", "/data/a", "/data/a and /data/a (data set one)"),
        ("/data/a", "/data/ab", None),
        ("/data/a", "/usr/share/data", "in a folder of the system"),
        ("/data/a", "/shared/data", "/shared (scheduler.shared_filesystem)"),
        ("/data/a", "/scratch/data", "/scratch (scratch of p5)"),
    ],
)
def test_each_has_a_folder_of_its_own(said, one, other, words):
    data = {"one": {"s3": "training-data/1", "path": one}, "other": {"s3": "training-data/2", "path": other}}
    got = said(data, scratch={"path": "/scratch"})
    assert not got if words is None else (got[0][:2] == ("cloud.data.other.path", "error") and words in got[0][2])


@pytest.mark.parametrize("used", [["imagenet"], ["genomes"], []], ids=["copied", "mounted", "none"])
def test_a_node_that_joins_later_than_the_dead_mans_time_would_end_itself(said, declared, used):
    data = {"imagenet": {"s3": "training-data"}, "genomes": FSX}
    (only,) = said(data, used, boot="30m")
    assert only[0] == "cloud.pools[0].boot" and "burst.dead_man, 30m: raise that" in only[2]
    assert said(data, used, boot="29m") == []
    declared["burst"] = {**declared.get("burst", {}), "dead_man": "1h"}
    assert said(data, used, boot="30m") == []


def test_the_name_of_a_role_has_room(said, declared):
    declared["name"] = "a" * 32
    (only,) = said({"imagenet": {"s3": "training-data"}}, ["imagenet"], name="p" * 20)
    assert only[0] == "cloud.pools[0].name" and "shorten this one" in only[2]


# ---- of Google Cloud's nodes, out of Cloud Storage


@pytest.fixture
def said_in_google():
    """`said_in_google(data, names)`: what is said of these data sets in Google Cloud, and of these of a pool."""

    def said(data, names=()):
        value = google_stack.value()
        value["cloud"]["data"] = data
        value["cloud"]["pools"][0].update(data=list(names))
        try:
            found = check(load.from_value(value), NOW)
        except load.ConfigError as error:
            found = error.findings
        found = [(each.path.split("cluster.", 1)[1], each.severity, each.message) for each in found]
        return [each for each in found if ".data" in each[0]]

    return said


@pytest.mark.parametrize(
    ("place", "good"),
    [
        ("training-data/imagenet", True),
        ("training_data.example.com", True),
        ("training-data/a/b=1/", True),
        ("gs://training-data/imagenet", False),
        ("training-data//imagenet", False),
        ("training-data/imagenet/*", False),
        ('training-data/a") || (true', False),
        ("Training/imagenet", False),
    ],
)
def test_a_place_in_cloud_storage_is_a_bucket_and_a_prefix(said_in_google, place, good):
    got = said_in_google({"imagenet": {"gs": place}}, ["imagenet"])
    assert not got if good else "write for example training-data/imagenet, without gs://" in got[0][2]


def test_what_holds_of_each_clouds_data_holds_there(said_in_google):
    ((path, severity, message),) = said_in_google({"a": {"gs": "training", "path": "/usr/a"}})
    assert (path, severity) == ("cloud.data.a.path", "error") and "a folder of the system" in message
    assert said_in_google({}, ["c4"])[0][1] == "warning"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"s3": "training/a"}, "has s3, which another cloud's nodes read; this one's copy from gs (bucket/prefix)"),
        (FSX, "has fsx, which another cloud's nodes read; this one's copy from gs (bucket/prefix)"),
        ({"path": "/data/a"}, "is needed here and absent"),
    ],
)
def test_a_source_of_another_cloud_is_refused_in_one_sentence(said_in_google, source, words):
    ((path, severity, message),) = said_in_google({"a": source})
    assert path.startswith("cloud.data.a") and severity == "error" and words in message


def test_and_cloud_storage_is_refused_in_the_first_cloud(said):
    ((path, _, message),) = said({"a": {"gs": "training/a"}})
    assert path == "cloud.data.a"
    assert message == (
        "has gs, which another cloud's nodes read; this one's copy from s3 (bucket/prefix), or mount fsx"
    )
