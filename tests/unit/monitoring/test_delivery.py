"""A real Prometheus and a real Alertmanager, with what `ironburst monitoring` writes: an alert arrives by mail at a
real SMTP server and by HTTP at a receiver, and each at its own audience.
"""

import asyncio
import json
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from ironburst.cli import main
from lab.system import wait_for
from tests import prometheus

LAB = Path(__file__).parents[3] / "stacks/Pulumi.lab.yaml"


class Mails:
    """An SMTP server on the loopback: `got` are (recipients, text)."""

    def __init__(self):
        self.got, self.loop = [], asyncio.new_event_loop()
        server = self.loop.run_until_complete(asyncio.start_server(self.talk, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    async def talk(self, reader, writer):
        def say(line):
            writer.write(line.encode() + b"\r\n")

        recipients = []
        say("220 mail.example.org ESMTP")
        while line := (await reader.readline()).decode().strip():
            word = line.split()[0].upper()
            if word == "DATA":
                say("354 go on")
                text = (await reader.readuntil(b"\r\n.\r\n")).decode()
                self.got.append((recipients, text))
            elif word == "QUIT":
                say("221 bye")
                break
            elif word == "RCPT":
                recipients = [*recipients, line.partition("<")[2].partition(">")[0]]
            say("250 ok")
        writer.close()


@contextmanager
def http(answer):
    """A server on the loopback: `answer(method, path, body)` gives the text, or None for 404."""

    class Handler(BaseHTTPRequestHandler):
        def answered(self):
            text = answer(self.command, self.path, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            self.send_response(404 if text is None else 200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write((text or "").encode())

        do_GET = do_POST = answered

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()


def stack(folder, **monitoring):
    declared = yaml.safe_load(LAB.read_text())
    declared["config"]["ironburst:cluster"]["monitoring"] = monitoring
    (folder / "Pulumi.x.yaml").write_text(yaml.safe_dump(declared))
    return folder / "Pulumi.x.yaml"


# Of the head's exporter: a file of its own about another node; one disk supply lost; a rented node without a job
SAMPLES = """\
node_load1 0.5
ironburst_node_psu_input{hall="hall-a",rack="r01",node="dgx02",psu="PSU2"} 0
ironburst_lease_without_job_seconds{node="burst-p5-1"} 9000
ironburst_job_idle_gpus{hpc_job="4711",user="alice",account="vision"} 8
ironburst_job_idle_gpus{hpc_job="4712",user="bob",account="nlp"} 2
"""


@pytest.fixture(scope="module")
def programs():
    return {
        "prometheus": prometheus.program("prometheus"),
        "promtool": prometheus.program("promtool"),
        "alertmanager": prometheus.program("prometheus-alertmanager"),
        "amtool": prometheus.program("amtool"),
    }


def test_an_alert_arrives_where_it_is_meant_to(programs, tmp_path):
    mails, posted = Mails(), {}

    def answer(method, path, body):
        if method == "GET":
            return SAMPLES if path == "/metrics" else None
        posted.setdefault(path, []).append(json.loads(body))
        return "ok"

    with ExitStack() as rooms:
        port = rooms.enter_context(http(answer))
        for name in ("hook", "slack", "vision"):
            (tmp_path / name).write_text(f"http://127.0.0.1:{port}/{name}\n")
        file = stack(
            tmp_path,
            relay={"host": f"127.0.0.1:{mails.port}", "sender": "ironburst@example.org", "tls": False},
            tell=[
                {"audience": "operators", "mail": ["ops@example.org", "night@example.org"]},
                {"audience": "operators", "severity": "page", "service": "slack", "secret": f"file:{tmp_path}/slack"},
                {"audience": "money", "service": "webhook", "secret": f"file:{tmp_path}/hook"},
                {"audience": "money", "account": "vision"}
                | {"service": "webhook", "secret": f"file:{tmp_path}/vision"},
            ],
        )
        alertmanager_at, prometheus_at = prometheus.free_address(), prometheus.free_address()
        out = tmp_path / "out"
        assert main(["monitoring", str(file), "--to", str(out), "--alertmanager", alertmanager_at]) == 0
        assert (out / "alertmanager.yml").stat().st_mode & 0o777 == 0o600
        for name, what in (
            ("promtool", ["check", "config", "prometheus.yml"]),
            ("amtool", ["check-config", "alertmanager.yml"]),
        ):
            ran = subprocess.run([programs[name], *what], cwd=out, capture_output=True, text=True)
            assert ran.returncode == 0, ran.stdout + ran.stderr
        faster(out, port)
        am = ["--config.file=alertmanager.yml", f"--storage.path={tmp_path}/am", "--cluster.listen-address="]
        rooms.enter_context(
            prometheus.started(
                [*prometheus.alertmanager(programs["alertmanager"]), *am, f"--web.listen-address={alertmanager_at}"],
                out,
                alertmanager_at,
            )
        )
        own = ["--config.file=prometheus.yml", f"--storage.tsdb.path={tmp_path}/tsdb"]
        rooms.enter_context(
            prometheus.started(
                [programs["prometheus"], *own, f"--web.listen-address={prometheus_at}"], out, prometheus_at
            )
        )
        wait_for(
            lambda: any("PSU2" in text for _, text in mails.got) and {"/hook", "/slack", "/vision"} <= posted.keys(),
            240,
            "the mail, the webhook and the page",
        )
    (recipients, text) = next(mail for mail in mails.got if "PSU2" in mail[1])
    assert recipients == ["ops@example.org", "night@example.org"]
    assert "From: ironburst@example.org" in text and "Subject: firing: PowerSupplyWithoutInput dgx02 (1)" in text
    assert "PSU2 of dgx02 has no input" in text and "Look at its plug" in text
    told = [alert["labels"] for body in posted["/hook"] for alert in body["alerts"]]
    assert ("LeaseWithoutJob", "burst-p5-1", "money") in {
        (each["alertname"], each.get("node"), each["audience"]) for each in told
    }
    assert {each["alertname"] for each in told} <= {"LeaseWithoutJob", "JobIdle"}
    team = [alert["labels"] for body in posted["/vision"] for alert in body["alerts"]]
    assert {(each["alertname"], each["hpc_job"]) for each in team} == {("JobIdle", "4711")}, "its own jobs alone"
    assert not any("LeaseWithoutJob" in text for _, text in mails.got), "money's is not the operators'"
    pages = json.dumps(posted["/slack"])
    assert "PowerSupplyWithoutInput" not in pages, "a ticket wakes nobody"
    assert {"attachments", "channel"} & set(posted["/slack"][0])


def faster(folder, port):
    """Seconds for minutes, and one target, on the loopback; nothing else of what was written is changed."""
    config = yaml.safe_load((folder / "prometheus.yml").read_text())
    config["global"] |= {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    rules = yaml.safe_load((folder / "ironburst-alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            rule["for"] = "1s"
    (folder / "ironburst-alerts.yml").write_text(yaml.safe_dump(rules))
    told = yaml.safe_load((folder / "alertmanager.yml").read_text())
    told["route"] |= {"group_wait": "1s", "group_interval": "1s"}
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(told))
    node = json.loads((folder / "targets/node.json").read_text())
    head = next(each for each in node if each["labels"]["role"] == "head")
    gone = {"targets": ["127.0.0.1:1"], "labels": head["labels"] | {"node": "head-b"}}  # a page: HeadSilent
    (folder / "targets/node.json").write_text(json.dumps([head | {"targets": [f"127.0.0.1:{port}"]}, gone]))
    for other in ("dcgm", "ironburst"):
        (folder / f"targets/{other}.json").write_text("[]")
