"""The role's program between a real journal and real log centres: nothing is lost, nothing is there twice."""

import base64
import http.server
import json
import os
import shlex
import signal
import ssl
import subprocess
import threading
from datetime import date

import pytest
from programs import load

from ironburst.adapters import log_centre
from ironburst.ports.logs import LogsError
from lab.system import wait_for
from tests import logs
from tests.planted import Plants

program = load("roles/logs/files/ironburst-logs.py")
CENTRES = [
    pytest.param(logs.Victoria, id="victorialogs"),
    pytest.param(logs.OpenSearch, id="opensearch", marks=pytest.mark.slow),
]


@pytest.fixture
def journal():
    with logs.journal() as made:
        yield made


@pytest.fixture(params=CENTRES)
def centre(request, tmp_path):
    with logs.centre(request.param, tmp_path / "centre") as made:
        yield made


def numbers(centre):
    """Of `line N`, as often as they are there."""
    return sorted(int(each["message"].split()[1]) for each in centre.documents() if each["message"].startswith("line "))


def test_lines_arrive_also_those_of_a_time_without_centre(centre, journal, tmp_path):
    template = centre.kind == "elasticsearch"
    with logs.sending(tmp_path / "sender", centre.url + centre.path, journal, template=template) as sender:
        journal.lines(0, 3000)
        wait_for(lambda: numbers(centre)[-1:] == [2999], 60, "the first lines")
        journal.lines(3000, 3000)  # and it goes amid them
        centre.stop(signal.SIGKILL if template else signal.SIGTERM)  # VictoriaLogs keeps the last second in memory
        journal.lines(6000, 3000)
        wait_for(lambda: "gives no answer" in (tmp_path / "sender/said").read_text(), 60, "it is missed")
        os.killpg(sender.pid, signal.SIGKILL)
        sender.wait(20)
    with logs.sending(tmp_path / "sender", centre.url + centre.path, journal, template=template):
        centre.start()
        journal.lines(9000, 1000)
        wait_for(lambda: numbers(centre)[-1:] == [9999], 90, "the last lines")
        found = numbers(centre)
    assert sorted(set(found)) == list(range(10_000))
    if template:
        assert len(found) == 10_000, "each once"
    else:  # it has no ids: a batch that wasn't answered is there twice, with the same id
        assert len({each["id"] for each in centre.documents()}) == len(set(found)) + len(
            {each["id"] for each in centre.documents() if not each["message"].startswith("line ")}
        )


# ---- secrets
LEAKS = {  # as programs' lines have them: {} is the secret
    "sudo": "    ops : PWD=/root ; USER=root ; COMMAND=/usr/bin/mysql --password={} -e select",
    "sudo, apart": "    ops : PWD=/root ; USER=root ; COMMAND=/opt/tool --api-key {} --verbose",
    "environment": "slurmctld: debug: env SLURM_JWT={}",
    "environment, in a list": "exec: environ=['HOME=/root', 'WANDB_API_KEY={}']",
    "JSON": '{{"level": "debug", "munge_key": {json}, "node": "dgx01"}}',
    "JSON in JSON": "body {twice}",
    "YAML": "diff: +    bind_password: {}",
    "shell": "+ curl -H 'X-Auth-Token: {}' https://10.0.0.9/redfish/v1",
    "quoted": "+ export RESTIC_PASSWORD={quoted}",
    "colon": "wrong password: {}",
    "sssd": "ldap_default_authtok = {}",
    "login": "curl -u ops:{} https://10.0.0.9/redfish/v1",
}
WORDS = {  # that show by themselves what they are
    "header": "> Authorization: Bearer {}",
    "bearer": "request with bearer {} was refused",
    "URL": "cloning https://ci:{}@git.example.org/site.git",
    "sshpass": "sshpass -p {} ssh root@dgx01",
}


@pytest.mark.parametrize("how", sorted(LEAKS | WORDS))
def test_a_secret_does_not_leave_the_host(how):
    plants = Plants()
    value = plants.plant(how, "{}" if how in WORDS else "p\"l/a+n&t <{}> '%\\")
    twice = json.dumps(json.dumps({"password": value, "node": "dgx01"}))
    text = (LEAKS | WORDS)[how].format(value, json=json.dumps(value), quoted=shlex.quote(value), twice=twice)
    assert plants.found("before", text) == [f"before: {how}"]
    assert plants.found(how, program.redacted(text)) == [], program.redacted(text)


@pytest.mark.parametrize(
    "token",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJyb290In0.c2lnbmF0dXJl",
        "ghp_0123456789abcdefghijABCDEFGHIJ",
        "abcdef.0123456789abcdef",
        "hf_ABCDEFGHIJabcdefghij",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----",
        "-----BEGIN RSA PRIVATE KEY-----\nb3BlbnNzaC1rZXk",
    ],
)
def test_tokens_are_known_by_their_form(token):
    assert program.redacted(f"wrote {token}") == "wrote [redacted]"


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid (PCI:0000:17:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "Accepted publickey for root from 10.0.0.1 port 22 ssh2: ED25519 SHA256:abc",
        "Failed password for root from 10.0.0.1 port 22 ssh2",
        "error: Node dgx01 appears to have a different slurm.conf than the slurmctld",
        "launch task StepId=4711.0 request from UID:1000 GID:1000 HOST:10.0.0.10 PORT:43210",
        "error: Munge decode failed: Invalid credential",
        "pam_unix(sudo:session): session opened for user root(uid=0) by ops(uid=1000)",
        "kubelet.go:2447: Error syncing pod, keyspace=4, author=none, tokens/s 311.2",
        "passed 12 of 12 checks; bypass=0; monkey: 3",
    ],
)
def test_other_lines_stay_as_they_are(text):
    assert program.redacted(text) == text


def test_what_comes_after_a_quoted_secret_is_told():
    assert program.redacted('{"password": "a\\"b", "node": "dgx01"}') == '{"password": [redacted], "node": "dgx01"}'


def test_planted_secrets_do_not_arrive(centre, journal, tmp_path):
    plants = Plants()
    for how, text in (LEAKS | WORDS).items():
        value = plants.plant(how, "{}" if how in WORDS else "p\"l/a+n&t <{}> '%\\")
        twice = json.dumps(json.dumps({"password": value}))
        text = text.format(value, json=json.dumps(value), quoted=shlex.quote(value), twice=twice)
        journal.write(f"{how}: {text}", "sudo", INVOKED_WITH=value)
    journal.write("line 1")
    template = centre.kind == "elasticsearch"
    with logs.sending(tmp_path / "sender", centre.url + centre.path, journal, template=template):
        wait_for(lambda: numbers(centre) == [1], 60, "the last line")
    found = centre.documents()
    assert len([each for each in found if each["program"] == "sudo"]) == len(LEAKS | WORDS)
    assert plants.found("centre", json.dumps(found)) == []
    centre.stop(signal.SIGTERM)
    assert plants.in_folder(centre.folder) == []
    centre.start()


# ---- a centre that refuses
class Fake(http.server.BaseHTTPRequestHandler):
    """Elasticsearch, as it answers by its documentation: {action: {status}} of each line, or one error for all."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        rows = self.rfile.read(int(self.headers["Content-Length"])).decode().splitlines()
        server = self.server
        server.headers_seen.append(dict(self.headers))
        status = server.whole.pop(0) if server.whole else 200
        items = []
        for action, text in zip(rows[::2], rows[1::2], strict=True):
            name, made = json.loads(action)["create"]["_id"], json.loads(text)
            its = server.each(made) if status == 200 else 0
            if its == 201:
                its = 409 if name in server.got else 201
                server.got[name] = made
            items.append({"create": {"_id": name, "status": its}})
        answer = {"items": items} if status == 200 else {"error": {"type": "cluster_block_exception"}, "status": status}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def fake():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Fake) as server:
        server.got, server.whole, server.headers_seen, server.each = {}, [], [], lambda _: 201
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def way(fake, monkeypatch, tmp_path):
    monkeypatch.setattr(program, "RETRY_S", (0.01, 0.01))
    settings = {"url": f"http://127.0.0.1:{fake.server_port}/_bulk", "user": "ironburst"}
    return program.Sender(settings, tmp_path, "word")


def entries(number):
    return [
        {"__CURSOR": f"s={n}", "__REALTIME_TIMESTAMP": "1795000000000000", "_HOSTNAME": "dgx01.example.org"}
        | {"SYSLOG_IDENTIFIER": "slurmd", "PRIORITY": "3", "MESSAGE": f"line {n}"}
        for n in range(number)
    ]


@pytest.mark.parametrize("refused", [401, 403, 404, 429, 500, 503])
def test_a_centre_that_refuses_all_gets_it_again(fake, way, refused, capsys):
    fake.whole = [refused] * 3
    assert way.until_taken(way.send, entries(20)) is True
    assert len(fake.got) == 20
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and f"refuses: HTTP {refused}" in said[0], "once"


def test_lines_that_a_busy_centre_left_out_are_sent_again_and_none_is_there_twice(fake, way):
    turns = iter([201, 429, 503] * 20)
    fake.each = lambda _: next(turns, 201)
    assert way.until_taken(way.send, entries(20)) is True
    assert len(fake.got) == 20


def test_a_line_that_the_centre_can_not_take_holds_nothing_up(fake, way, capsys):
    fake.each = lambda made: 400 if made["message"] == "line 3" else 201
    assert way.until_taken(way.send, entries(20)) is True
    assert len(fake.got) == 19 and "1 lines were refused by the centre" in capsys.readouterr().err
    fake.each, fake.whole = lambda _: 201, [413]
    assert way.until_taken(way.send, entries(40)[20:]) is True
    assert len(fake.got) == 39, "in halves"


def test_it_signs_in_and_its_password_is_nowhere_else(fake, way, tmp_path):
    way.until_taken(way.send, entries(1))
    signed = base64.b64decode(fake.headers_seen[0]["Authorization"].split()[1]).decode()
    assert signed == "ironburst:word"


def test_what_a_line_becomes():
    made = program.document(entries(1)[0])
    assert made["@timestamp"] == "2026-11-18T11:06:40.000000Z" and made["host"] == "dgx01", "as the document names it"
    assert (made["program"], made["severity"], made["message"]) == ("slurmd", "err", "line 0")
    assert program.document(entries(1)[0], ["kernel", "ironburst*"]) is None
    binary = entries(1)[0] | {"MESSAGE": [*b"a\xff\x00"], "PRIORITY": ["4", "3"], "_PID": ["1", "2"]}
    assert program.document(binary)["message"] == "a�\x00" and program.document(binary)["severity"] == "warning"
    relayed = entries(1)[0] | {"IRONBURST_NODE": "head", "IRONBURST_LEASE": "l1", "IRONBURST_PROGRAM": "x"}
    assert "lease" not in program.document(relayed), "anybody can write such fields"
    assert "lease" not in program.document(relayed, relay={"_SYSTEMD_UNIT": "ironburst-receive.service"})


def test_only_a_centre_with_a_certificate_of_its_authority_is_told_anything(fake, tmp_path):
    authority, key = tmp_path / "ca.pem", tmp_path / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    make += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(authority)]
    subprocess.run(make, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority, key)
    fake.socket = context.wrap_socket(fake.socket, server_side=True)
    url = f"https://localhost:{fake.server_port}/_bulk"
    lines = [program.document(each) for each in entries(2)]
    with pytest.raises(program.AwayError, match="certificate"):
        program.Centre({"url": url}).send(lines)
    with pytest.raises(program.AwayError, match=r"certificate|mismatch"):
        other = {"url": url.replace("localhost", "127.0.0.1"), "ca": str(authority)}
        program.Centre(other).send(lines)
    assert fake.got == {}
    assert program.Centre({"url": url, "ca": str(authority)}).send(lines) == 0 and len(fake.got) == 2
    with pytest.raises(LogsError, match="certificate"):
        log_centre.way(url.removesuffix("/_bulk"))("/_bulk", b"{}\n")
    way = log_centre.way(url.removesuffix("/_bulk"), ca=authority.read_text())
    assert json.loads(way("/_bulk", b""))["items"] == []


@pytest.mark.slow
def test_old_days_are_deleted_and_no_line_makes_fields(tmp_path):
    with logs.centre(logs.OpenSearch, tmp_path / "centre") as made:
        way = program.Centre({"url": made.url + "/_bulk"})
        way.prepare()
        lines = [program.document(each | {"__CURSOR": f"s={day}"}) for day, each in enumerate(entries(40))]
        for day, each in enumerate(lines):
            each["@timestamp"] = f"2026-{10 + day // 30}-{day % 30 + 1:02}T00:00:00.000000Z"
        lines[0]["of a user"] = {"a": 1}
        assert way.send(lines) == 0 and way.send(lines) == 0, "also a second time"
        logs.asked(f"{made.url}/other-2020.01.01", b"", "PUT")
        gone = way.tidy(30, date(2026, 11, 10))
        assert gone == [f"ironburst-logs-2026.10.{day:02}" for day in range(1, 11)]
        left = {each["index"] for each in json.loads(logs.asked(f"{made.url}/_cat/indices?h=index&format=json"))}
        assert len(left) == 31 and "other-2020.01.01" in left
        mapping = json.loads(logs.asked(f"{made.url}/ironburst-logs-2026.10.11/_mapping"))
        fields = mapping["ironburst-logs-2026.10.11"]["mappings"]
        assert fields["dynamic"] == "false" and fields["properties"]["host"] == {"type": "keyword"}
