"""What the runs of GitHub's workflows don't reach: the jump, and GitLab's API (as its documentation has the paths)."""

import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

CI = Path(__file__).parents[2] / "ci"


@pytest.fixture
def jump(tmp_path):
    """`jump(verb)` with a stand-in for sshuttle that writes its arguments, and sleeps as a daemon."""
    tool = tmp_path / "sshuttle"
    tool.write_text('#!/bin/sh\necho "$@" > arguments\nsleep 60 2>/dev/null &\necho $! > "$3"\n')
    tool.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OUT": str(tmp_path / "out")}

    def run(verb, **more):
        done = subprocess.run(
            [CI / "jump.sh", verb], cwd=tmp_path, env=env | more, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        assert done.returncode == 0, done.stderr

    return run


def test_the_jump_is_for_the_halls_networks_and_ends(jump, tmp_path):
    declared = {"SSH_JUMP": "ci@jump", "HALL_NETWORKS": "10.20.0.0/22 10.20.8.0/24"}
    jump("up", **declared)
    assert (tmp_path / "arguments").read_text().endswith("--remote ci@jump 10.20.0.0/22 10.20.8.0/24\n")
    pid = int((tmp_path / "out/jump.pid").read_text())
    jump("down", **declared)
    limit = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
        assert time.monotonic() < limit
        time.sleep(0.01)


def test_a_runner_in_the_hall_needs_none(jump, tmp_path):
    jump("up")
    jump("down")
    assert not (tmp_path / "arguments").exists()


@pytest.fixture
def gitlab():
    """A project's API: `notes` of its merge request 7, `merged`: its merge requests; anything else is 404."""

    class Handler(BaseHTTPRequestHandler):
        notes, merged, tokens = {1: "by a person"}, {}, set()

        def _answer(self):
            self.tokens.add(self.headers["PRIVATE-TOKEN"])
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
            path, _, asked = self.path.removeprefix("/projects/42/merge_requests").partition("?")
            said, code = {}, 200
            if (self.command, path) == ("GET", "/7/notes"):
                said = [{"id": n, "body": text} for n, text in self.notes.items()] if asked.endswith("page=1") else []
            elif (self.command, path) == ("POST", "/7/notes") or (self.command, path) == ("PUT", "/7/notes/2"):
                self.notes[2] = body["body"]
            elif (self.command, path) == ("GET", ""):
                said = [
                    {"iid": n} for n, each in self.merged.items() if f"source_branch={each['source_branch']}" in asked
                ]
            elif (self.command, path) == ("POST", ""):
                self.merged[8] = body
            elif (self.command, path) == ("PUT", "/8"):
                self.merged[8] |= body
            else:
                code = 404
            data = json.dumps(said).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PUT = _answer

        def log_message(self, *_): ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    Handler.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield Handler
    server.shutdown()
    server.server_close()


def forge(gitlab, *arguments, **more):
    env = {"CI_API_V4_URL": gitlab.url, "CI_PROJECT_ID": "42", "FORGE_TOKEN": "glpat-x", "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, CI / "forge.py", *arguments], env=env | more, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stderr


def test_gitlab_has_one_note_that_is_written_over(gitlab, tmp_path):
    text = tmp_path / "plan.md"
    for said in ("first", "second"):
        text.write_text(f"<!-- ironburst plan prod -->\n{said}")
        assert forge(gitlab, "comment", str(text), PULL="7") == (0, "")
    assert gitlab.notes == {1: "by a person", 2: "<!-- ironburst plan prod -->\nsecond"}
    assert gitlab.tokens == {"glpat-x"}


def test_gitlab_has_one_merge_request_of_a_branch(gitlab, tmp_path):
    text = tmp_path / "lock.md"
    for said in ("first", "second"):
        text.write_text(said)
        assert forge(gitlab, "open", "lock-prod", str(text), "prod: newer versions") == (0, "")
    ends = {"source_branch": "lock-prod", "target_branch": "main", "title": "prod: newer versions"}
    assert gitlab.merged == {8: ends | {"description": "second"}}


def test_a_refusal_and_a_text_that_is_not_there_are_one_sentence(gitlab, tmp_path):
    (tmp_path / "plan.md").write_text("x")
    code, said = forge(gitlab, "comment", str(tmp_path / "plan.md"), PULL="9")
    assert code == 1 and "was refused (404)" in said and len(said.splitlines()) == 1
    code, said = forge(gitlab, "comment", str(tmp_path / "none.md"), PULL="7")
    assert code == 1 and "isn't there" in said and len(said.splitlines()) == 1
