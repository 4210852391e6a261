"""A node of Google Cloud brings its data out of Cloud Storage: the lab's, which judges each call by the right that the
stack gives (lab/google/cloud_storage.py).

What it plays is of cloud.google.com/storage/docs: json_api/v1/objects/list and get (and storage.v1.json), transcoding
(with `Accept-Encoding: gzip` what is stored compressed comes as it is; else a range is ignored and there is no length),
request-preconditions (412), requester-pays (400 without userProject), retry-strategy (408, 429, 5xx); and of
lanes-sh/link#100: storage.objects.list is asked of the bucket, which a condition on objects' names never lets through.
"""

import gzip
import http.client
import io
import json
import os
import sys

import pytest
from programs import copied_files, load

from ironburst.config.google import rights
from lab.google.cloud_storage import CloudStorage, Fault
from lab.google.declared import STORAGE_ROLES
from lab.google.iam import Binding
from lab.google.metadata import Metadata
from lab.google.server import Cloud
from lab.google.vm import Vm

EMAIL = "ib-lab--nodes-h100@lab-project.iam.gserviceaccount.com"
PACKED = gzip.compress(b"label\n" * 1000, mtime=0)
OBJECTS = {
    "imagenet/train/1.tar": b"0123456789" * 3,
    "imagenet/train/ä b%2F+?#&=.tar": b"x" * 16,
    "imagenet/empty": b"",
    "imagenet/labels.csv": PACKED,
    "imagenet/val/": b"",
    "imagenet-21k/secret": b"not ours",
    "secret": b"not ours",
}
FILES = copied_files(OBJECTS, "imagenet/")


@pytest.fixture
def storage():
    world = Cloud(seed=3)
    store = CloudStorage(world.iam)
    for key, data in OBJECTS.items():
        store.put("training", key, data, "gzip" if data == PACKED else "")
    store.put("none", "other", b"x")
    store.put("wide-open", "a/b", b"y")
    store.put("paid", "a", b"z")
    for place in ("training/imagenet", "training/bad", "none/data", "wide-open", "paid"):
        bucket, condition = rights.of_data(place)
        at = f"projects/_/buckets/{bucket}"
        world.iam.bindings.append(Binding(f"serviceAccount:{EMAIL}", STORAGE_ROLES[rights.READS_DATA], condition, at))
    store.requester_pays.add("paid")
    machine = Vm({"serviceAccounts": [{"email": EMAIL, "scopes": []}], "networkInterfaces": []}, "z", 0.0)
    store.metadata = Metadata(world, who=lambda _: machine)
    yield store
    for server in (store, store.metadata, world):
        (server.shutdown if server is not world else server.close)()


@pytest.fixture
def node(storage, monkeypatch, tmp_path):
    """`node(source)` -> exit status; `node.copied()`: {path: bytes} of the whole copies; `node.bucket`: its module."""
    monkeypatch.setenv("GCE_METADATA_HOST", storage.metadata.host)
    monkeypatch.setenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", storage.url)
    monkeypatch.setenv("IRONBURST_DATA_ROOT", str(tmp_path))
    program = load("roles/data_sets/files/ironburst-data.py", "google")
    monkeypatch.setitem(sys.modules, program.__name__, program)  # by this name its workers find their work
    mounts = []
    monkeypatch.setattr(program, "run", lambda *argv: mounts.append(argv))
    monkeypatch.setattr(program, "ROLE_S", 0)
    monkeypatch.setattr(program, "PART", 8)
    monkeypatch.setattr(program.store_of, "FIRST_S", 0.01)
    home = tmp_path / "var/lib/ironburst/.ironburst-data"

    def bring(source="training/imagenet"):
        sets = {"imagenet": {"kind": "gs", "source": source, "path": str(tmp_path / "data")}}
        settings = tmp_path / "etc/ironburst/data.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps({"region": "us-central1", "seconds": 60, "sets": sets}))
        monkeypatch.setattr(sys, "argv", ["ironburst-data", "--settings", str(settings)])
        mounts.clear()
        return program.main()

    def copied():
        whole = [each for each in home.iterdir() if each.suffix != ".part"]
        files = [(folder, path) for folder in whole for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for folder, path in files}

    bring.program, bring.bucket, bring.mounts, bring.copied = program, program.store_of, mounts, copied
    return bring


def test_all_objects_below_the_prefix_are_copied_as_they_are_stored_and_mounted_read_only(node, storage):
    """In pages of two, whatever is in their names; one that is stored compressed isn't unpacked on the way."""
    storage.page = 2
    assert node() == 0
    assert node.copied() == FILES
    assert [argv[:2] for argv in node.mounts] == [("mount", "--bind"), ("mount", "-o")]
    lists = [query for path, query, _ in storage.asked if path.endswith("/o")]
    assert len(lists) == 3 and {each["prefix"] for each in lists} == {"imagenet/"}
    assert all("pageToken" in each for each in lists[1:])


def test_a_bucket_without_a_prefix_is_copied_whole(node):
    assert node("wide-open") == 0 and node.copied() == {"a/b": b"y"}


@pytest.mark.parametrize(
    ("source", "words"),
    [
        # its names are seen by whoever may list the bucket: a policy of Google's knows no narrower right
        ("training/imagenet-21k", "gs://training/imagenet-21k/secret can't be copied: Refused: HTTP 403: "),
        ("missing/imagenet", "HTTP 404: The specified bucket does not exist."),
        ("none/data", "there is no object below gs://none/data/"),
        (
            "paid",
            "Bucket is a requester pays bucket but no user project provided. Nodes read no bucket whose readers pay",
        ),
    ],
)
def test_what_can_not_be_brought_is_one_sentence_and_leaves_nothing(node, capsys, source, words):
    assert node(source) == 1
    said = capsys.readouterr().err
    assert (
        said.startswith("data: ")
        and words in said
        and said.count("\n") == 1
        and node.copied() == {}
        and not node.mounts
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda held: held.put("training", "imagenet/train/1.tar", b"z" * 30), "HTTP 412: "),
        (lambda held: held.held["training"].pop("imagenet/train/1.tar"), "HTTP 404: No such object"),
    ],
    ids=["changed", "gone"],
)
def test_an_object_that_changes_while_it_is_copied(node, storage, monkeypatch, capsys, change, words):
    listed = node.program.listing

    def then_changed(*asked):
        found = listed(*asked)
        change(storage)
        return found

    monkeypatch.setattr(node.program, "listing", then_changed)
    assert node() == 1
    said = capsys.readouterr().err
    assert said.startswith(f"data: gs://training/imagenet/train/1.tar can't be copied: Refused: {words}")
    assert ("It was changed after it was listed." in said) == ("412" in words)
    assert node.copied() == {} and not node.mounts


def test_a_token_that_ends_is_asked_for_anew(node, storage, monkeypatch):
    """Before its time, and where it is refused all the same."""
    bucket = node.bucket.Bucket("", "training")
    assert len(list(bucket.objects("imagenet/"))) == 5
    first = set(storage.iam.tokens)
    list(bucket.objects("imagenet/"))
    assert set(storage.iam.tokens) == first
    storage.iam.tokens.clear()  # as if it had ended
    assert len(list(bucket.objects("imagenet/"))) == 5 and not first & set(storage.iam.tokens)
    monkeypatch.setattr(node.bucket, "SPARE_S", 3600)
    bucket = node.bucket.Bucket("", "training")
    list(bucket.objects("imagenet/"))
    before = set(storage.iam.tokens)
    list(bucket.objects("imagenet/"))
    assert len(set(storage.iam.tokens) - before) == 1


def test_a_token_that_is_refused_again_is_told(node, storage, monkeypatch):
    monkeypatch.setattr(node.bucket, "token", lambda: ("nobody's", 1e12))
    with pytest.raises(node.bucket.Refused, match="HTTP 401: Invalid Credentials"):
        list(node.bucket.Bucket("", "training").objects(""))
    assert len(storage.asked) == 2


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_is_to_be_asked_again_is_asked_again(node, storage, monkeypatch, status):
    waits = []
    monkeypatch.setattr(node.bucket.time, "sleep", waits.append)
    storage.faults += [Fault("/o?", status, 2, "7"), Fault("/o?", status, 1)]
    assert len(list(node.bucket.Bucket("", "training").objects("imagenet/"))) == 5
    assert waits[:2] == [7.0, 7.0] and len(waits) == 3 and waits[2] <= node.bucket.FIRST_S * 4


def test_not_for_ever(node, storage, monkeypatch):
    waits = []
    monkeypatch.setattr(node.bucket.time, "sleep", waits.append)
    storage.faults.append(Fault("/o?", 503, 100, "100000"))
    with pytest.raises(node.bucket.Refused, match="HTTP 503: injected"):
        list(node.bucket.Bucket("", "training").objects("imagenet/"))
    assert waits == [node.bucket.LONGEST_S] * (node.bucket.TRIES - 1)


def test_an_answer_that_breaks_off_is_asked_for_again(node, storage, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(node.program.time, "sleep", lambda _: None)
    storage.faults += [Fault("1.tar", 0, 2), Fault("labels.csv", 503, 3)]
    assert node() == 0 and node.copied() == FILES


def test_a_disk_that_is_full_is_no_fault_of_the_store(node, monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(node.program, "write", full)
    assert node() == 1
    assert "can't be written: No space left on device" in capsys.readouterr().err


def test_a_range_that_is_ignored_is_never_written(node, storage, monkeypatch):
    """As where a proxy between asks for no compressed answer: what comes is unpacked, and of no known length."""
    true = storage.answer
    monkeypatch.setattr(storage, "answer", lambda path, asked: true(path, {**asked, "accept-encoding": "identity"}))
    bucket = node.bucket.Bucket("", "training")
    (version,) = [each[1] for each in bucket.objects("imagenet/") if each[0].endswith("labels.csv")]
    with pytest.raises(node.bucket.Refused, match="an unknown number of bytes are offered where 8 were listed"):
        bucket.read("imagenet/labels.csv", version, 0, 8)


def test_one_connection_serves_all_requests_of_a_worker(node, storage):
    bucket = node.bucket.Bucket("", "training")
    listed = list(bucket.objects("imagenet/"))
    lines = []
    for name, version, length in listed:
        assert bucket.read(name, version, 0, length).read(100_000) == OBJECTS[name]
        lines.append(bucket._line.sock)
    assert len(lines) == 5 and all(line is lines[0] for line in lines)


def test_a_line_that_is_cut_is_no_fault_of_the_disks(node, storage, monkeypatch):
    """Else a reset connection would end the copy as a disk that can't be written."""
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(node.program.time, "sleep", lambda _: None)
    true, cuts = http.client.HTTPResponse.read, iter((ConnectionResetError(104, "reset"), TimeoutError("timed out")))

    def read(answer, *most):
        if answer.getheader("Content-Range") and (cut := next(cuts, None)):
            raise cut
        return true(answer, *most)

    monkeypatch.setattr(http.client.HTTPResponse, "read", read)
    assert node() == 0 and node.copied() == FILES


def test_somebody_else_at_the_metadata_servers_address_gets_no_trust(node, storage, monkeypatch):
    class Stranger(io.BytesIO):
        headers = http.client.HTTPMessage()

    said = Stranger(b'{"access_token": "x", "expires_in": 3600}')
    monkeypatch.setattr(node.bucket.urllib.request, "urlopen", lambda *_, **__: said)
    with pytest.raises(node.bucket.Broken, match="isn't Google's metadata server"):
        node.bucket.token()
