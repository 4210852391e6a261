"""What the gate makes of requests: whose they are, what it drops, and what it refuses. With real programs on both sides
it runs in tests/playbooks/test_agent.py.
"""

import http.client
import struct
import threading
from contextlib import contextmanager

import pytest

from ironburst.adapters.prometheus import Prometheus
from ironburst.controller.job_figures import measure
from ironburst.monitoring import receiving, remote_write
from ironburst.monitoring.receiving import Gate, Pusher, Server
from tests import dcgm, prometheus
from tests.dcgm import Gpu, Load

A, B = "127.0.0.5", "127.0.0.6"
P51, P52 = Pusher("p5-1", "l1/p5-1"), Pusher("p5-2", "l1/p5-2")
NOW_S = 1_795_000_000.0
TEMPERATURE = {"__name__": "DCGM_FI_DEV_GPU_TEMP", "gpu": "0", "job": "dcgm"}


def sample(value, at_s):
    return b"\x09" + struct.pack("<d", value) + b"\x10" + remote_write._as_varint(round(at_s * 1000))


def body(*series):
    """Of (labels, [(value, seconds)])."""
    sent = (
        remote_write.series_as_sent(
            remote_write.labels_as_sent({name.encode(): value.encode() for name, value in labels.items()}),
            [sample(*each) for each in samples],
        )
        for labels, samples in series
    )
    return remote_write.compressed(b"".join(sent))


class Home:
    """In Prometheus' place: what arrives, by its labels."""

    def __init__(self):
        self.answer, self.got = (200, ""), []

    def __call__(self, compressed):
        if self.answer[0] < 300:
            for series in remote_write.series(remote_write.decompressed(compressed)):
                labels = {name.decode(): value.decode() for name, value in remote_write.labels(series.labels).items()}
                self.got += [(labels, its[1:9], at_ms / 1000) for at_ms, its in series.samples]
        return self.answer


@pytest.fixture
def home():
    return Home()


@pytest.fixture
def gate(home):
    gate = Gate(lambda: {A: P51, B: P52}, home, lambda: NOW_S)
    assert gate.look() == ""
    return gate


def test_only_an_address_of_an_open_lease_counts(home, gate):
    status, why = gate.take("127.0.0.9", body((TEMPERATURE, [(41, NOW_S)])))
    assert status == 403 and "no open lease has the address 127.0.0.9" in why and home.got == []


def test_an_address_of_two_leases_proves_neither(home):
    gate = Gate(lambda: {A: None}, home, lambda: NOW_S)
    gate.look()
    status, why = gate.take(A, body((TEMPERATURE, [(41, NOW_S)])))
    assert status == 403 and "two open leases have the address" in why and home.got == []


def test_what_a_node_says_of_itself_is_overwritten(home, gate):
    """Of another's name, hall or role no rule may count it, and no job's figures take it for another node's."""
    lies = {"node": "dgx01", "lease": "l0/p5-9", "rented": "", "hall": "hall-a", "rack": "r1", "role": "head"}
    lies |= {"cluster": "other", "Hostname": "dgx01", "hpc_job": "4711"}
    assert gate.take(A, body((TEMPERATURE | lies, [(41, NOW_S)]))) == (200, "")
    assert gate.take(B, body((TEMPERATURE | lies, [(42, NOW_S)]))) == (200, "")
    its = TEMPERATURE | {"hpc_job": "4711", "rented": "true"}
    assert [labels for labels, _, _ in home.got] == [
        its | {"node": "p5-1", "lease": "l1/p5-1", "Hostname": "p5-1"},
        its | {"node": "p5-2", "lease": "l1/p5-2", "Hostname": "p5-2"},
    ]


@pytest.mark.parametrize("name", ["ironburst_usd_spent", "ironburst_slurm_up", "ironburst_node_psu_input", "up", ""])
def test_what_is_no_metric_of_a_nodes_exporters_goes_no_further(home, gate, name):
    assert gate.take(A, body((TEMPERATURE | {"__name__": name}, [(0, NOW_S)]))) == (204, "")
    assert home.got == []


@pytest.mark.parametrize("at_s", [NOW_S - 7201, NOW_S + 61, NOW_S + 365 * 86400, 0.0])
def test_a_sample_of_another_time_is_dropped_and_the_rest_goes_on(home, gate, at_s):
    """One from next year would make all that home scrapes too old for Prometheus."""
    status, why = gate.take(A, body((TEMPERATURE, [(41, at_s), (42, NOW_S)])))
    assert status == 400 and why == "1 samples dropped: more than 2 h old, or ahead of the clock here"
    assert [at for _, _, at in home.got] == [NOW_S]


def test_a_lease_has_only_so_many_series_and_they_do_not_end_the_others(home, gate, monkeypatch):
    monkeypatch.setattr(receiving, "SERIES", 3)
    five = body(*((TEMPERATURE | {"gpu": str(n)}, [(41, NOW_S)]) for n in range(5)))
    assert gate.take(A, five) == (400, "2 samples dropped: more than 3 series within an hour")
    assert [labels["gpu"] for labels, _, _ in home.got] == ["0", "1", "2"]
    assert gate.take(A, body((TEMPERATURE, [(41, NOW_S + 5)]))) == (200, ""), "what was there goes on"
    assert gate.take(B, body((TEMPERATURE, [(41, NOW_S)]))) == (200, "")


def test_labels_that_are_very_long_are_no_series(home, gate):
    status, why = gate.take(A, body((TEMPERATURE | {"gpu": "x" * 3000}, [(41, NOW_S)])))
    assert (status, home.got) == (400, []) and "labels of more than 2048 bytes" in why


@pytest.mark.parametrize("limit", ["SAMPLES_S", "DATA_S"])
def test_who_sends_too_much_is_told_to_wait_and_the_others_are_not(home, gate, monkeypatch, limit):
    monkeypatch.setattr(receiving, limit, 1e-9)
    assert gate.take(A, body((TEMPERATURE, [(41, NOW_S)]))) == (200, "")
    status, why = gate.take(A, body((TEMPERATURE, [(41, NOW_S + 5)])))
    assert status == 429 and "a second" in why, "the agent sends it again"
    assert gate.take(B, body((TEMPERATURE, [(41, NOW_S)]))) == (200, "")


def test_a_body_that_unfolds_to_too_much_is_not_unfolded(home, gate):
    bomb = remote_write._as_varint(receiving.DATA + 1) + b"\0"
    assert gate.take(A, bomb)[0] == 413
    assert gate.take(A, b"GET / HTTP/1.1")[0] == 400 and home.got == []


def test_what_home_cannot_take_is_sent_again(home, gate):
    home.answer = (503, "no answer")
    assert gate.take(A, body((TEMPERATURE, [(41, NOW_S)]))) == (503, "no answer")
    home.answer = (200, "")
    assert gate.take(A, body((TEMPERATURE, [(41, NOW_S)]))) == (200, "") and len(home.got) == 1


def test_a_ledger_that_cannot_be_read_is_believed_for_a_while(home, monkeypatch):
    reads = [{A: P51}]

    def read():
        if not reads:
            raise ValueError("the ledger is locked")
        return reads.pop()

    gate = Gate(read, home, lambda: NOW_S)
    assert gate.take(A, b"")[0] == 503, "not looked yet: nothing is dropped"
    assert gate.look() == "" and gate.look() == "the ledger is locked"
    assert gate.take(A, body((TEMPERATURE, [(41, NOW_S)]))) == (200, "")
    monkeypatch.setattr(receiving, "UNREAD_S", -1.0)
    gate.look()
    assert gate.take(A, body((TEMPERATURE, [(41, NOW_S)])))[0] == 503


def test_with_the_lease_its_series_end_and_the_next_one_at_the_address_is_itself(home):
    leases = {A: P51}
    gate = Gate(lambda: leases, home, lambda: NOW_S)
    gate.look()
    gate.take(A, body((TEMPERATURE, [(41, NOW_S - 5)]), (TEMPERATURE | {"__name__": "up"}, [(1, NOW_S - 5)])))
    leases.pop(A)
    assert gate.look() == ""
    labels, value, at_s = home.got[-1]
    assert (labels["node"], at_s, len(home.got)) == ("p5-1", NOW_S, 2)
    assert struct.unpack("<Q", value)[0] == 0x7FF0000000000002
    leases[A] = P52
    gate.look()
    gate.take(A, body((TEMPERATURE, [(41, NOW_S)])))
    assert home.got[-1][0]["lease"] == "l1/p5-2"


@pytest.mark.parametrize(
    ("status", "told"), [(204, 204), (400, 400), (404, 503), (401, 503), (500, 503), (503, 503), (302, 503)]
)
def test_prometheus_answer_drops_nothing_but_bad_samples(status, told):
    """404: its receiver isn't switched on; an agent that heard that would throw its samples away."""
    with answering(status) as at:
        assert receiving.forward_to(f"http://{at}/api/v1/write")(b"x")[0] == told
    assert receiving.forward_to("http://127.0.0.1:9/")(b"x")[0] == 503


@contextmanager
def answering(status):
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


# ---- over HTTP


@contextmanager
def served(gate):
    said = []
    with Server("127.0.0.1", 0, gate, lambda address, answer: said.append((address, *answer))) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_port, said
        server.shutdown()


def posted(port, address, data, path=receiving.PATH, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20, source_address=(address, 0))
    try:
        connection.request("POST", path, data, headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_the_address_is_the_connections_whatever_a_header_says(home, gate):
    with served(gate) as (port, said):
        one = body((TEMPERATURE, [(41, NOW_S)]))
        assert posted(port, A, one)[0] == 200
        status, why = posted(port, "127.0.0.9", one, **{"X-Forwarded-For": A, "Forwarded": f"for={A}"})
        assert status == 403 and "no open lease" in why
        assert said == [("127.0.0.9", 403, why.strip())] and len(home.got) == 1


def test_what_is_no_request_of_an_agent_is_refused_without_being_read(home, gate):
    with served(gate) as (port, _):
        assert posted(port, A, b"x", path="/api/v1/admin/tsdb/delete_series")[0] == 404
        assert posted(port, A, b"x" * 10, **{"Content-Length": "99999999"})[0] == 413
        assert posted(port, A, b"", **{"Content-Length": "-1"})[0] == 411
        assert posted(port, A, body((TEMPERATURE, [(41, NOW_S)])))[0] == 200


def test_a_node_does_not_take_all_connections(gate, monkeypatch):
    monkeypatch.setattr(receiving, "CONNECTIONS", 2)
    with served(gate) as (port, _):
        held = [http.client.HTTPConnection("127.0.0.1", port, timeout=20, source_address=(A, 0)) for _ in range(2)]
        for each in held:
            each.request("POST", receiving.PATH, body((TEMPERATURE, [(41, NOW_S)])))
            assert each.getresponse().status == 200
        with pytest.raises((http.client.HTTPException, OSError)):
            posted(port, A, body((TEMPERATURE, [(41, NOW_S)])))
        assert posted(port, B, body((TEMPERATURE, [(41, NOW_S)])))[0] == 200
        for each in held:
            each.close()


# ---- what a job made of rented GPUs


JOB, OTHER, AGAIN = 1000, 1001, 1002
START, HOUR = int(NOW_S) - 5400, 3600
END, GONE = START + HOUR, START + 2700
RENTED = [
    Gpu("p5-1", 0, [Load(START, END, (JOB,), 0.9, 0.6, 0.4, 60_000, 650.0, 2e10)], phase_s=3),
    Gpu("p5-1", 1, [Load(START, END, (JOB, OTHER), 0.5, 0.3, 0.2, 30_000, 400.0)], phase_s=3),
    Gpu("p5-2", 0, [Load(START, END, (JOB,), 0.3, 0.2, 0.1, 20_000, 300.0, 1e10)], phase_s=4, seen_to_s=GONE),
    Gpu(
        "p5-1",
        2,
        [Load(START, START + 900, (AGAIN,), 0.8, watts=500.0), Load(START + 1000, END, (AGAIN,), 0.2, watts=200.0)],
    ),
]


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """A Prometheus that got all of it through the gate, with samples every 5 s, as rented nodes have them."""
    folder = tmp_path_factory.mktemp("home")
    config = {"storage": {"tsdb": {"out_of_order_time_window": "2h"}}}
    patched = pytest.MonkeyPatch()
    patched.setattr(dcgm, "EVERY_S", 5)
    options = ["--web.enable-remote-write-receiver", "--storage.tsdb.retention.time=100y"]
    with prometheus.running(folder, config, *options) as url:
        to = receiving.forward_to(f"{url}{receiving.PATH}")
        gate = Gate(lambda: {A: P51, B: P52}, to, lambda: NOW_S)
        gate.look()
        for address, node in ((A, "p5-1"), (B, "p5-2")):
            lines = dcgm.openmetrics([gpu for gpu in RENTED if gpu.node == node], START, END).splitlines()
            series = {}
            for line in lines:
                if not line.startswith("#"):
                    name, rest = line.split("{", 1)
                    labels, figures = rest.rsplit("} ", 1)
                    value, at_s = map(float, figures.split())
                    series.setdefault((name, labels.replace(node, "ip-10-90-1-4")), []).append((value, at_s))
            for (name, labels), samples in series.items():
                parsed = dict(pair.split("=", 1) for pair in labels.split(","))
                its = {key: value.strip('"') for key, value in parsed.items()}
                answer = gate.take(address, body((its | {"__name__": name}, samples)))
                assert answer == (204, ""), answer
        yield Prometheus(url)
    patched.undo()


def near(value):
    return pytest.approx(value, rel=0.02)


def kwh(gpu, from_s, to_s):
    return gpu.joules(from_s, to_s) / 3.6e6


def test_a_gang_on_rented_nodes_of_which_one_ended_at_once(pushed):
    found = measure(pushed, JOB, ["p5-1", "p5-2"], START, END)
    assert (found.gpus, found.shared) == (2, 1), "the one that another job's number was on, too, is nobody's"
    lasting, lost = found.each
    assert (lasting.node, lost.node) == ("p5-1", "p5-2"), "by the lease's name, whatever the host calls itself"
    assert lasting.kwh == near(kwh(RENTED[0], START, END)) and lost.kwh == near(kwh(RENTED[2], START, GONE))
    assert (lasting.busy, lost.busy) == (near(0.9), near(0.3)) and found.memory_mib == 60_000
    share = 3600 / (3600 + 2700)
    assert found.busy == near(0.9 * share + 0.3 * (1 - share))
    assert END - 10 <= found.to_s <= END


@pytest.mark.parametrize(("from_s", "to_s", "busy"), [(START, START + 900, 0.8), (START + 1000, END, 0.2)])
def test_each_run_of_a_requeued_job_on_a_rented_node(pushed, from_s, to_s, busy):
    found = measure(pushed, AGAIN, ["p5-1"], from_s, to_s)
    assert found.busy == near(busy) and found.kwh == near(kwh(RENTED[3], from_s, to_s))
