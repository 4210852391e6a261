"""The way on which the API server is difficult: what it refuses, and that the rest comes through as it is."""

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import requests

from lab.kubernetes import authority, difficult

NODE = "/api/v1/nodes/dgx01"


class Server(BaseHTTPRequestHandler):
    """An API server that says what it was asked; a watch of it has one event, and then is silent for ever."""

    protocol_version = "HTTP/1.1"
    silence = threading.Event()

    def _answer(self):
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        said = {"method": self.command, "token": self.headers["Authorization"], "sent": sent, "path": self.path}
        body = json.dumps(said).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body) + 1000 * ("watch" in self.path)))
        self.end_headers()
        self.wfile.write(body)
        if "watch" in self.path:
            self.wfile.flush()
            self.silence.wait(30)

    do_GET = do_PATCH = do_POST = _answer

    def log_message(self, *_):
        pass


@pytest.fixture
def way(tmp_path, monkeypatch):
    monkeypatch.setattr(difficult, "WATCH_S", 0.3)
    for name, text in authority.files("127.0.0.1").items():
        (tmp_path / name).write_text(text)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "apiserver.crt", tmp_path / "apiserver.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    made = difficult.Way(("127.0.0.1", 0), f"https://127.0.0.1:{server.server_port}", tmp_path, tmp_path / "told")
    for each in (server, made):
        threading.Thread(target=each.serve_forever, args=(0.05,), daemon=True).start()
    session = requests.Session()
    session.trust_env, session.verify = False, str(tmp_path / "ca.crt")
    session.headers["Authorization"] = "Bearer it"

    def call(method, path, **more):
        return session.request(method, f"https://127.0.0.1:{made.server_port}{path}", timeout=10, **more)

    yield call
    Server.silence.set()
    for each in (server, made):
        each.shutdown()
        each.server_close()
    Server.silence.clear()


def told(tmp_path):
    return json.loads((tmp_path / "told").read_text())


def test_the_first_of_two_writes_is_a_conflict(way, tmp_path):
    first, second, third = (way("PATCH", NODE, data="{}") for _ in range(3))
    assert [each.status_code for each in (first, second, third)] == [409, 200, 409]
    assert first.json()["reason"] == "Conflict" and "modified" in first.json()["message"]
    assert second.json() == {"method": "PATCH", "token": "Bearer it", "sent": "{}", "path": NODE}
    assert told(tmp_path)[difficult.CONFLICT] == 2


def test_one_of_nine_is_too_many(way, tmp_path):
    answers = [way("GET", NODE) for _ in range(2 * difficult.EACH)]
    assert [each.status_code for each in answers].count(429) == 2 == told(tmp_path)[difficult.BUSY]
    busy = answers[difficult.EACH - 1]
    assert busy.headers["Retry-After"] == "1" and busy.headers["Content-Type"].startswith("text/plain")


def test_a_watch_is_cut_in_the_middle_and_has_expired_then(way, tmp_path):
    watch = f"{NODE}?watch=1&resourceVersion=5"
    for _ in range(2):
        with pytest.raises(requests.exceptions.ChunkedEncodingError):
            list(way("GET", watch, stream=True).iter_lines())
        expired = way("GET", watch)
        said = expired.json()
        assert (expired.status_code, said.get("code")) == (410, 410) or said["object"]["code"] == 410
        assert expired.status_code == 410 or said["type"] == "ERROR"
    assert (told(tmp_path)[difficult.CUT], told(tmp_path)[difficult.EXPIRED]) == (2, 2)
