"""The forge: a bare repository, its pull requests and comments, environments, and what starts which workflow."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lab.ci import workflow
from lab.ci.expressions import whole
from lab.ci.runner import Result, Start, condition, run
from lab.ci.workflow import Job
from lab.served import LOOPBACK, Answering, Server

SignIn = Callable[[str, str, int], Mapping[str, str]]
"""(role, subject of the job's token) -> variables with credentials; raises PermissionError"""


@dataclass
class Environment:
    """`reviewed`: its jobs wait for somebody; `main_only`: they start for the branch main alone."""

    vars: dict[str, str] = field(default_factory=dict)
    reviewed: bool = False
    main_only: bool = False


@dataclass
class Pull:
    number: int
    branch: str
    title: str
    body: str = ""
    fork: bool = False
    state: str = "open"
    comments: dict[int, str] = field(default_factory=dict)


class Forge:
    """One repository. `machine`: the runner's variables; `only`: the row of each matrix that is run, for a test's time;
    `approve(environment)`: what a reviewer says.
    """

    def __init__(self, folder: Path, name: str, machine: Mapping[str, str], sign_in: SignIn, only: Mapping[str, str]):
        self.folder, self.name, self.machine, self.sign_in, self.only = folder, name, machine, sign_in, only
        self.origin = folder / "origin.git"
        self.vars: dict[str, str] = {}
        self.environments: dict[str, Environment] = {}
        self.approve: Callable[[str], bool] = lambda _environment: False
        self.pulls: dict[int, Pull] = {}
        self._tokens: dict[str, Job] = {}
        self._numbers = iter(range(1, 1000))
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.origin))
        self._server = Server(LOOPBACK, _handler(self))
        self.url = self._server.url

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # -- what people do --------------------------------------------------------------------------------------------

    def pull_request(self, branch: str, title: str, fork: bool = False) -> tuple[Pull, list[Result]]:
        """Open one for a branch that was pushed."""
        pull = self._open(branch, title)
        pull.fork = fork
        return pull, self.synchronize(pull)

    def synchronize(self, pull: Pull) -> list[Result]:
        """Its branch was pushed to, or it was closed and opened again."""
        head = {"repo": {"full_name": f"{self.name}{'-fork' if pull.fork else ''}"}, "ref": pull.branch}
        event = {"pull_request": {"number": pull.number, "head": head, "base": {"sha": self.sha("main")}}}
        return self._run("pull_request", event, pull.branch, pull)

    def merge(self, pull: Pull) -> list[Result]:
        """Into main, with a merge commit."""
        before = self.sha("main")
        with_main = self.folder / "merging"
        self._clone(with_main, 0, pull.branch, merged=True)
        git(with_main, "push", "--quiet", "origin", "HEAD:main")
        subprocess.run(["rm", "-rf", str(with_main)], check=True)
        pull.state = "closed"
        return self._run("push", {"before": before, "after": self.sha("main")}, "main")

    def nightly(self, name: str) -> list[Result]:
        """The clock starts a workflow, on main."""
        return self._run("schedule", {}, "main", only=name)

    def sha(self, branch: str) -> str:
        return git(self.origin, "rev-parse", branch)

    # -- what follows ----------------------------------------------------------------------------------------------

    def _run(self, event: str, said: dict[str, Any], branch: str, pull: Pull | None = None, only: str | None = None):
        tree = self.folder / "reading"
        self._clone(tree, 1, branch, merged=bool(pull))
        flows = [workflow.read(path) for path in sorted((tree / ".github/workflows").glob("*.yml"))]
        subprocess.run(["rm", "-rf", str(tree)], check=True)
        results = []
        for flow in flows:
            if event not in flow.events or only not in (None, flow.name):
                continue
            if branch not in ((flow.events[event] or {}).get("branches", [branch]) if event == "push" else [branch]):
                continue
            for strategy, jobs in flow.jobs:
                for job in jobs:
                    if all(self.only.get(key, each) == each for key, each in job.matrix.items()):
                        results.append(self._job(job, event, said, branch, pull))
                        if results[-1].conclusion == "failure" and strategy.get("fail-fast", True):
                            break
        return results

    def _job(self, job: Job, event: str, said: dict[str, Any], branch: str, pull: Pull | None) -> Result:
        token = f"ghs_{secrets.token_hex(16)}"
        self._tokens[token] = job if not (pull and pull.fork) else Job(job.workflow, job.name, job.matrix, job.said)
        name = job.said.get("environment")
        where = whole(name, {"matrix": job.matrix}, {}) if name else None
        github = {"event": said, "event_name": event, "repository": self.name, "token": token, "api_url": self.url}
        github["ref_name"] = f"{pull.number}/merge" if pull else branch
        environment = self.environments.get(where or "", Environment())
        subject = f"environment:{where}" if where else "pull_request" if pull else f"ref:refs/heads/{branch}"
        signs_in = job.may("id-token", "write") and not (pull and pull.fork)
        start = Start(
            github=github,
            vars=self.vars | environment.vars,
            checkout=lambda folder, depth: self._clone(folder, depth, branch, merged=bool(pull)),
            sign_in=(lambda role, s: self.sign_in(role, f"repo:{self.name}:{subject}", s)) if signs_in else None,
            environment=self.machine,
        )
        if not condition(job, Start(github, self.vars, start.checkout, None, {})):  # before the environment is known
            return Result(job, "skipped")
        if environment.main_only and (pull or branch != "main"):
            return Result(job, "failure", f"Branch {branch!r} is not allowed to deploy to {where}")
        if environment.reviewed and not self.approve(where or ""):
            return Result(job, "failure", f"nobody approved {where}")
        try:
            return run(job, start, self.folder / f"{job.workflow}-{job.name}")
        finally:
            del self._tokens[token]

    def _clone(self, folder: Path, depth: int, branch: str, merged: bool) -> None:
        """A branch, or what a pull request's would be merged into main (refs/pull/N/merge), as deep as is asked."""
        whole = folder.with_name(f"{folder.name}-whole")
        git(self.folder, "clone", "--quiet", "--branch", branch, str(self.origin), str(whole))
        if merged:
            who = ("-c", "user.name=forge", "-c", "user.email=forge@invalid")
            git(whole, *who, "merge", "--quiet", "--no-ff", "-m", f"Merge {branch}", "origin/main")
        git(
            self.folder, "clone", "--quiet", *(["--depth", str(depth)] if depth else []), f"file://{whole}", str(folder)
        )
        git(folder, "remote", "set-url", "origin", str(self.origin))
        subprocess.run(["rm", "-rf", str(whole)], check=True)

    def _open(self, branch: str, title: str, body: str = "") -> Pull:
        number = next(self._numbers)
        self.pulls[number] = Pull(number, branch, title, body)
        return self.pulls[number]

    # -- the REST API ----------------------------------------------------------------------------------------------

    def answer(self, method: str, url: str, body: dict[str, Any], token: str) -> tuple[int, Any]:
        """Status and JSON of one call, of those that ci/forge.py makes."""
        job, at = self._tokens.get(token), urlsplit(url)
        if job is None:
            return 401, {"message": "Bad credentials"}
        if not job.may("pull-requests", "read" if method == "GET" else "write"):
            return 403, {"message": "Resource not accessible by integration"}
        asked = {key: each[0] for key, each in parse_qs(at.query).items()}
        parts = at.path.removeprefix(f"/repos/{self.name}/").split("/")
        match method, parts:
            case "GET", ["issues", number, "comments"]:
                size = int(asked.get("per_page", 30))
                first = (int(asked.get("page", 1)) - 1) * size
                found = [{"id": n, "body": text} for n, text in self.pulls[int(number)].comments.items()]
                return 200, found[first : first + size]
            case "POST", ["issues", number, "comments"]:
                self.pulls[int(number)].comments[made := secrets.randbits(32)] = body["body"]
                return 201, {"id": made}
            case "PATCH", ["issues", "comments", number]:
                pull = next(each for each in self.pulls.values() if int(number) in each.comments)
                pull.comments[int(number)] = body["body"]
                return 200, {"id": int(number)}
            case "GET", ["pulls"]:
                branch = asked["head"].partition(":")[2]
                found = [each for each in self.pulls.values() if (each.branch, each.state) == (branch, asked["state"])]
                return 200, [{"number": each.number} for each in found]
            case "POST", ["pulls"]:  # and no workflow starts: the token is a job's
                return 201, {"number": self._open(body["head"], body["title"], body["body"]).number}
            case "PATCH", ["pulls", number]:
                self.pulls[int(number)].body = body["body"]
                return 200, {"number": int(number)}
        return 404, {"message": f"Not Found: {method} {at.path} isn't implemented by lab/ci"}


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


def _handler(forge: Forge) -> type[Answering]:
    class Handler(Answering):
        def _answer(self) -> None:
            self.send(*forge.answer(self.command, self.path, json.loads(self.body() or "{}"), self.bearer()))

        do_GET = do_POST = do_PATCH = _answer

    return Handler
