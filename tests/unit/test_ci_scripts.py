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


# ---- ci/up.sh: only the tip of the branch


def git(folder, *arguments):
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", **who}
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


class Repository:
    """A bare `origin`, a person's clone of it, and checkouts as a forge makes them: shallow, HEAD detached."""

    def __init__(self, folder):
        self.folder, self.clone, self.calls = folder, folder / "clone", folder / "calls"
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", "origin")
        git(folder, "clone", "--quiet", "origin", "clone")
        git(self.clone, "checkout", "--quiet", "-B", "main")
        (folder / "bin").mkdir()
        for tool in ("pulumi", "ironburst"):
            path = folder / "bin" / tool
            path.write_text(f'#!/bin/sh\necho "{tool} $*" ${{PULUMI_SKIP_CHECKPOINTS-}} >> {self.calls}\n')
            path.chmod(0o755)
        (folder / "up.env").touch()
        plans = 'while [ $# -gt 0 ]; do [ "$1" != --up-environment ] || cp {0}/up.env "$2"; shift; done\n'
        with (folder / "bin" / "ironburst").open("a") as ironburst:
            ironburst.write(plans.format(folder))

    def push(self, text):
        (self.clone / "ceiling").write_text(text)
        git(self.clone, "add", "ceiling")
        git(self.clone, "commit", "--quiet", "-m", text)
        git(self.clone, "push", "--quiet", "origin", "main")
        return git(self.clone, "rev-parse", "HEAD")

    def checkout(self, commit, name="checkout"):
        folder = self.folder / name
        git(self.folder, "init", "--quiet", name)
        git(folder, "remote", "add", "origin", f"file://{self.folder}/origin")
        git(self.folder / "origin", "config", "uploadpack.allowAnySHA1InWant", "true")
        git(folder, "fetch", "--quiet", "--depth", "1", "origin", commit)
        git(folder, "checkout", "--quiet", "--detach", "FETCH_HEAD")
        return folder

    def up(self, folder, **more):
        """Exit code, what was said, and the calls of pulumi and ironburst."""
        self.calls.write_text("")
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        env = {"PATH": path, "STACK": "prod", "DOCUMENT": "/srv/prod.json", "OUT": str(self.folder / "out"), **more}
        done = subprocess.run([CI / "up.sh"], cwd=folder, env=env, capture_output=True, text=True)
        return done.returncode, done.stderr.strip(), self.calls.read_text().splitlines()


@pytest.fixture
def repository(tmp_path):
    return Repository(tmp_path)


@pytest.mark.parametrize("named", [{}, {"GITHUB_REF_NAME": "main"}, {"CI_COMMIT_BRANCH": "main"}, {"BRANCH": "main"}])
def test_an_old_run_that_is_started_again_does_nothing(repository, named):
    old, tip = repository.push("1000"), repository.push("10")
    code, said, calls = repository.up(repository.checkout(old), **named)
    assert code == 3 and calls == [] and f"{old} isn't the tip" in said and tip in said and len(said.splitlines()) == 1
    code, said, calls = repository.up(repository.checkout(tip, "tip"), **named)
    assert (code, said) == (0, "") and calls[-1].rstrip() == "ironburst publish --to /srv/prod.json"
    assert any(call.startswith("pulumi up --stack prod") for call in calls)


def test_an_up_has_the_variables_that_the_plan_says_and_a_preview_has_none(repository):
    folder = repository.checkout(repository.push("10"))
    assert not [call for call in repository.up(folder)[2] if call.endswith(" true")]
    (repository.folder / "up.env").write_text("PULUMI_SKIP_CHECKPOINTS=true\n")
    calls = repository.up(folder)[2]
    assert not [call for call in calls if call.startswith("pulumi preview") and call.endswith(" true")]
    assert "pulumi up --stack prod --yes --skip-preview --non-interactive true" in calls


def test_a_person_s_clone_that_is_behind_does_nothing(repository):
    repository.push("1000")
    git(repository.folder, "clone", "--quiet", "origin", "behind")
    repository.push("10")
    code, said, calls = repository.up(repository.folder / "behind")
    assert code == 3 and calls == [] and "isn't the tip of main" in said
    assert repository.up(repository.clone)[0] == 0


def test_a_wanted_rollback_is_named_by_its_commit(repository):
    old, _ = repository.push("1000"), repository.push("10")
    folder = repository.checkout(old)
    code, _, calls = repository.up(folder, ROLLBACK=old)
    assert code == 0 and calls[-1] == "ironburst publish --to /srv/prod.json --older"
    assert repository.up(folder, ROLLBACK=old[:12])[0] == 3, "a name that was left behind lets nothing else through"


def test_a_tip_that_can_not_be_asked_is_none(repository):
    folder = repository.checkout(repository.push("10"))
    git(folder, "remote", "set-url", "origin", f"file://{repository.folder}/gone")
    code, said, calls = repository.up(folder, GITHUB_TOKEN="ghs_x")
    assert code == 3 and calls == [] and "can't be asked of origin" in said
    git(folder, "remote", "set-url", "origin", f"file://{repository.folder}/origin")
    assert repository.up(folder, BRANCH="deleted")[0] == 3


def test_a_repository_without_origin_has_its_own_tip(repository):
    old, _ = repository.push("1000"), repository.push("10")
    git(repository.clone, "remote", "remove", "origin")
    assert repository.up(repository.clone)[0] == 0
    git(repository.clone, "checkout", "--quiet", old)
    assert repository.up(repository.clone)[0] == 3
