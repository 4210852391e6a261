"""Receipts: kept, read again, damaged; what differs, in words; inputs by digest, secrets never in clear."""

import json

import pytest

from ironburst.convergence import inputs, receipts
from ironburst.convergence.ports import Connection
from ironburst.convergence.receipts import Entry, Receipt, Store


def entry(**changes):
    return Entry(
        **(
            {"at": 1.0, "seconds": 2.0, "outcome": "converged", "why": ["first converge"], "serial": 1, "lock": None}
            | changes
        )
    )


def test_what_is_written_is_read_again(tmp_path):
    store = Store(tmp_path / "r")
    state = Receipt(
        "dgx01", "lab", Connection("10.0.0.1", options=("-v",)), {"a": "1"}, {"packages": ["x"]}, {"package x": "1"}
    ).with_entry(entry())
    store.write(state)
    assert store.read("dgx01", "lab") == state
    assert (tmp_path / "r" / "dgx01.json").stat().st_mode & 0o077 == 0 and (tmp_path / "r").stat().st_mode & 0o077 == 0
    assert store.read("dgx01", "other") == Receipt("dgx01", "other")  # another cluster's receipt proves nothing


def test_the_file_is_read_by_other_versions_too(tmp_path):
    Store(tmp_path).write(Receipt("dgx01", "lab", Connection("10.0.0.1"), drained_by_us=True))
    data = json.loads((tmp_path / "dgx01.json").read_text())
    assert list(data) == [
        *("version", "host", "cluster", "connection", "inputs", "watch"),
        *("state", "unwatched", "software", "held", "history"),
    ]
    assert data["held"] is True and data["connection"]["address"] == "10.0.0.1"
    del data["held"]  # as it was written before drains were kept
    (tmp_path / "dgx01.json").write_text(json.dumps(data))
    assert Store(tmp_path).read("dgx01", "lab") == Receipt("dgx01", "lab", Connection("10.0.0.1"))


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"version": 9}', '{"version": 1, "cluster": "lab"}', '{"version": 1, "cluster": "lab", "x": 1}'],
)
def test_a_damaged_receipt_is_none(tmp_path, text):
    (tmp_path / "dgx01.json").write_text(text)
    assert Store(tmp_path).read("dgx01", "lab") == Receipt("dgx01", "lab")


def test_the_salt_is_made_once_and_private(tmp_path):
    store = Store(tmp_path / "r")
    assert store.salt() == Store(tmp_path / "r").salt() and len(store.salt()) == 64
    assert (tmp_path / "r" / "salt").stat().st_mode & 0o077 == 0
    (tmp_path / "r" / "salt").write_text("no hex")
    with pytest.raises(receipts.ReceiptError, match="salt can't be read"):
        store.salt()


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(receipts.ReceiptError, match="give another with --state"):
        Store(tmp_path / "file" / "r").write(Receipt("a", "b"))


def test_a_history_keeps_the_last(tmp_path):
    state = Receipt("dgx01", "lab")
    for number in range(receipts.KEPT + 5):
        state = state.with_entry(entry(at=float(number)))
    assert len(state.history) == receipts.KEPT and state.history[-1].at == receipts.KEPT + 4


@pytest.mark.parametrize(
    ("fact", "old", "new", "told"),
    [
        ("file /a", "file 0644 root:root 1", "absent", "file /a: is gone"),
        ("file /a", "absent", "file 0644 root:root 1", "file /a: is there, was not"),
        ("file /a", "file 0644 root:root 1", "file 0600 root:root 1", "file /a: mode was 0644, is 0600"),
        (
            "file /a",
            "file 0644 root:root 1",
            "file 0644 slurm:root 2",
            "file /a: owner was root:root, is slurm:root, content is another",
        ),
        ("package x", "1 hold", "1", "package x: was 1 hold, is 1"),
        ("package x", "1", "absent", "package x: was 1, is absent"),
        (
            "service s",
            "enabled active /u=1",
            "enabled inactive /u=1",
            "service s: was enabled active, is enabled inactive",
        ),
        ("service s", "enabled active /u=1", "enabled active /u=1 /d/o.conf=2", "service s: /d/o.conf is another"),
        ("command x", "0 aa", "0 bb", "command x: is another"),
        ("sysctl v", "1", "2", "sysctl v: was 1, is 2"),
        ("user a", "1 1 /home", "1 2 /home", "user a: is another"),
        ("command x", "0 aa", "? TimeoutExpired: x", "command x: TimeoutExpired: x"),
        ("command x", "? broken", "? broken", "command x: broken"),
    ],
)
def test_differences_are_words(fact, old, new, told):
    assert receipts.differences({fact: old}, {fact: new}) == [told]


def test_no_difference_and_facts_on_one_side_only():
    assert receipts.differences({"a": "1"}, {"a": "1"}) == []
    assert receipts.differences({"package a": "1"}, {}) == ["package a: was 1, is not looked at"]


def test_package_changes_from_and_to():
    before = {"package driver": "580 hold", "package gone": "1", "file /a": "x"}
    now = {"package driver": "590 hold", "package gone": "absent", "package new": "2", "file /a": "y"}
    assert receipts.package_changes(before, now) == {
        "driver": ["580 hold", "590 hold"],
        "gone": ["1", None],
        "new": [None, "2"],
    }


def test_where_receipts_are():
    assert str(receipts.default_folder("prod", {"IRONBURST_STATE": "/s"})) == "/s/receipts"
    assert str(receipts.default_folder("prod", {"HOME": "/h"})) == "/h/.local/state/ironburst/prod/receipts"
    assert str(receipts.default_folder("prod", {"XDG_STATE_HOME": "/x"})) == "/x/ironburst/prod/receipts"


# ---- inputs

DOCUMENT = {
    "version": 1,
    "serial": 3,
    "cluster": "lab",
    "software": {"driver": "580"},
    "ssh": {"user": "root"},
    "scheduler": {"munge_key": "env:KEY", "head": "head"},
    "pools": [{"name": "p5"}],
    "hosts": [
        {"name": "head", "roles": ["slurm_head"], "address": "10.0.0.1", "software": {"slurm": "24.11"}},
        {"name": "n1", "roles": ["slurm_node"], "address": "10.0.0.2"},
        {"name": "n2", "roles": ["slurm_node"], "address": "10.0.0.3"},
    ],
}


@pytest.fixture
def repository(tmp_path):
    roles = tmp_path / "playbooks" / "roles"
    for role, text in {
        "slurm_node": "key: '{{ cluster_scheduler.munge_key }}' {{ lookup('env', 'TUNING') }}",
        "slurm_head": "- include_role: {name: packages}\n- '{{ cluster_pools }} {{ cluster_hosts }}'",
        "packages": "nothing",
    }.items():
        (roles / role / "tasks").mkdir(parents=True)
        (roles / role / "tasks" / "main.yml").write_text(text)
    (tmp_path / "ironburst" / "health").mkdir(parents=True)
    (tmp_path / "inventory").mkdir()
    (tmp_path / "inventory" / "stack.yml").write_text("plugin: stack_document\n")
    return tmp_path


def of(repository, name, document=DOCUMENT, secret="s3cr3t", environment=None):
    return sources(repository, document, secret, environment).of(name)


def sources(repository, document, secret="s3cr3t", environment=None):
    return inputs.Sources(
        repository, repository / "inventory", document, "00" * 32, lambda reference: secret, environment or {}
    )


def changed(repository, name, before, **changes):
    return inputs.changed(before, of(repository, name, **changes))


def test_inputs_of_a_host_change_with_what_it_is_made_from(repository):
    before = of(repository, "n1")
    assert changed(repository, "n1", before) == []
    assert changed(repository, "n1", before, secret="other") == ["secret env:KEY"]
    assert changed(repository, "n1", before, environment={"TUNING": "1"}) == ["environment TUNING"]
    assert changed(repository, "n1", before, document=DOCUMENT | {"software": {"driver": "590"}}) == [
        "cluster_software"
    ]
    assert "s3cr3t" not in json.dumps(before)
    (repository / "playbooks" / "roles" / "slurm_node" / "tasks" / "main.yml").write_text("other")
    assert "playbooks" in changed(repository, "n1", before)


def test_a_host_does_not_change_with_what_its_roles_never_read(repository):
    more = DOCUMENT | {
        "serial": 9,
        "pools": [],
        "hosts": [*DOCUMENT["hosts"], {"name": "n3", "roles": ["slurm_node"], "address": "10.0.0.4"}],
    }
    assert changed(repository, "n1", of(repository, "n1"), document=more) == []
    assert changed(repository, "head", of(repository, "head"), document=more) == ["cluster_hosts", "cluster_pools"]


def test_a_host_changes_with_what_it_is_told_of_others(repository):
    def with_head(release):
        return DOCUMENT | {"hosts": [DOCUMENT["hosts"][0] | {"software": {"slurm": release}}, *DOCUMENT["hosts"][1:]]}

    assert changed(repository, "n1", of(repository, "n1"), document=with_head("25.05")) == ["node_head_slurm"]

    def trays(*addresses):
        tray = {"roles": ["imex"], "hall": "a", "rack": "r1"}
        hosts = [tray | {"name": f"t{n}", "address": address} for n, address in enumerate(addresses)]
        return DOCUMENT | {"hosts": [*DOCUMENT["hosts"], *hosts, tray | {"name": "x", "rack": "r2", "address": "::1"}]}

    before = trays("10.0.1.2", "10.0.1.1")
    more = trays("10.0.1.2", "10.0.1.1", "10.0.1.3")
    assert changed(repository, "t1", of(repository, "t1", before), document=more) == ["node_imex"]
    assert changed(repository, "x", of(repository, "x", before), document=more) == []


def test_what_is_read_for_inputs_grows_as_the_hosts_do(repository, monkeypatch):
    """By the bytes of digests: with the square of the hosts it is 16 times as much for 4 times as many."""
    plain, read = inputs._of, []
    monkeypatch.setattr(inputs, "_of", lambda value: read.append(len(json.dumps(value))) or plain(value))

    def bytes_for(count):
        hosts = [{"name": f"m{n:03}", "roles": ["slurm_head"], "address": "10.0.0.9"} for n in range(count)]
        read.clear()
        of_site = sources(repository, DOCUMENT | {"hosts": [*DOCUMENT["hosts"], *hosts]})
        assert all("cluster_hosts" in of_site.of(host["name"]) for host in hosts)
        return sum(read)

    assert bytes_for(200) < 5 * bytes_for(50)


def test_other_files_count_too(repository):
    before = of(repository, "n1")
    (repository / "inventory" / "group_vars").mkdir()
    (repository / "inventory" / "group_vars" / "all.yml").write_text("x: 1\n")
    (repository / "ironburst" / "health" / "checks.py").write_text("x = 1\n")
    assert changed(repository, "n1", before) == ["health library", "inventory"]


def test_without_a_receipt_everything_is_new():
    assert inputs.changed(None, {"a": "1"}) == ["first converge"]


def test_the_lock_has_a_short_name():
    assert inputs.lock_digest(None) is None
    assert inputs.lock_digest({"driver": "580"}) != inputs.lock_digest({"driver": "590"})
