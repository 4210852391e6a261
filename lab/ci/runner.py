"""Runs one job: its steps in their order, in a fresh checkout, with what its rights give it and nothing more."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.ci.expressions import Refused, filled, said, value, whole
from lab.ci.workflow import Job

INPUTS = {
    "actions/checkout": {"fetch-depth", "persist-credentials"},
    "aws-actions/configure-aws-credentials": {"role-to-assume", "aws-region", "role-duration-seconds"},
}
PINNED = re.compile(r"([\w-]+/[\w-]+)@[0-9a-f]{40}")
STATUS = re.compile(r"\b(always|success|failure|cancelled)\(\)")
NO_PUSH = "refused://this-job-may-not-push"


@dataclass
class Result:
    """`conclusion`: success, failure or skipped; `summary`: what it wrote of itself."""

    job: Job
    conclusion: str
    log: str = ""
    summary: str = ""


@dataclass(frozen=True)
class Start:
    """What a job starts from. `github`, `vars`: contexts; `checkout(folder, depth)` fills a folder; `sign_in(role,
    seconds)`: credentials for a role, for so long, by a token that says who the job is; None: the job gets no token.
    """

    github: Mapping[str, Any]
    vars: Mapping[str, str]
    checkout: Callable[[Path, int], None]
    sign_in: Callable[[str, int], Mapping[str, str]] | None
    environment: Mapping[str, str]
    """variables of the machine"""


@dataclass
class _Run:
    job: Job
    start: Start
    folder: Path
    env: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)
    outputs: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    failed: bool = False
    lines: list[str] = field(default_factory=list)

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def contexts(self) -> dict[str, Any]:
        own = {"env": self.env, "matrix": self.job.matrix, "steps": self.outputs}
        return {"github": self.start.github, "vars": self.start.vars, **own}

    def functions(self) -> dict[str, Callable[..., Any]]:
        return {
            "always": lambda: True,
            "success": lambda: not self.failed,
            "failure": lambda: self.failed,
            "cancelled": lambda: False,
            "fromJSON": json.loads,
        }

    def text(self, given: Any) -> str:
        return filled(said(given), self.contexts(), self.functions())

    def wanted(self, condition: Any) -> bool:
        """Whether a step runs: without a word on the steps before it, only after their success."""
        text = "success()" if condition is None else str(condition)
        text = re.sub(r"^\s*\$\{\{(.*)\}\}\s*$", r"\1", text)
        if not STATUS.search(text):
            text = f"success() && ({text})"
        return bool(value(text, self.contexts(), self.functions()))

    def say(self, text: str) -> None:
        for mask in self.masks:
            text = text.replace(mask, "***")
        self.lines.append(text)


def condition(job: Job, start: Start) -> bool:
    """Whether the job runs at all."""
    given = job.said.get("if")
    return given is None or bool(whole(f"${{{{ {given} }}}}", {"github": start.github, "vars": start.vars}, {}))


def run(job: Job, start: Start, folder: Path) -> Result:
    """Raises Refused where a step asks for something that isn't implemented."""
    shutil.rmtree(folder, ignore_errors=True)
    this = _Run(job, start, folder)
    this.workspace.mkdir(parents=True)
    this.masks.append(start.github["token"])
    this.env = {key: this.text(each) for key, each in job.said.get("env", {}).items()}
    for n, step in enumerate(job.said["steps"]):
        if not this.wanted(step.get("if")):
            continue
        this.say(f"## {step.get('name') or step.get('uses') or step['run']}")
        try:
            done = _action(this, step) if "uses" in step else _script(this, step, n)
        except PermissionError as error:
            this.say(f"Error: {error}")
            done = False
        this.failed = this.failed or not done
    summary = folder / "summary"
    text = summary.read_text() if summary.exists() else ""
    return Result(job, "failure" if this.failed else "success", "\n".join(this.lines), text)


def _action(this: _Run, step: Mapping[str, Any]) -> bool:
    found = PINNED.fullmatch(step["uses"])
    if not found or found[1] not in INPUTS:
        raise Refused(f"the action {step['uses']} isn't implemented, or isn't pinned by its commit")
    given = {key: this.text(each) for key, each in step.get("with", {}).items()}
    if unknown := given.keys() - INPUTS[found[1]]:
        raise Refused(f"{found[1]}: the input {min(unknown)} isn't implemented")
    if found[1] == "actions/checkout":
        this.start.checkout(this.workspace, int(given.get("fetch-depth", "1")))
        if given.get("persist-credentials") == "false" or not this.job.may("contents", "write"):
            _git(this.workspace, "remote", "set-url", "--push", "origin", NO_PUSH)
        return True
    if not this.start.sign_in:
        raise PermissionError("It looks like you might be trying to authenticate with OIDC. Did you mean to set the "
                              "`id-token` permission? Credentials could not be loaded")  # fmt: skip
    got = this.start.sign_in(given["role-to-assume"], int(given.get("role-duration-seconds", "3600")))
    this.masks += got.values()
    this.env |= got | {"AWS_REGION": given["aws-region"], "AWS_DEFAULT_REGION": given["aws-region"]}
    return True


def _script(this: _Run, step: Mapping[str, Any], n: int) -> bool:
    files = {name: this.folder / name for name in ("output", "env", "path")}
    for file in files.values():
        file.write_text("")
    env = {key: this.text(each) for key, each in step.get("env", {}).items()}
    github = this.start.github
    own = {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_REF_NAME": github["ref_name"],
        "GITHUB_API_URL": github["api_url"],
        "GITHUB_REPOSITORY": github["repository"],
        "GITHUB_WORKSPACE": str(this.workspace),
        "GITHUB_STEP_SUMMARY": str(this.folder / "summary"),
        **{f"GITHUB_{name.upper()}": str(file) for name, file in files.items()},
    }
    path = os.pathsep.join([*reversed(this.paths), this.start.environment["PATH"]])
    script = this.folder / f"step{n}.sh"
    script.write_text(this.text(step["run"]))
    done = subprocess.run(
        ["bash", "-e", str(script)],  # what GitHub runs where no shell is named: without pipefail
        cwd=this.workspace,
        env={**this.start.environment, **own, **this.env, **env, "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60 * this.job.said["timeout-minutes"],
    )
    this.masks += re.findall(r"^::add-mask::(.+)$", done.stdout, re.MULTILINE)
    this.say(done.stdout)
    this.env |= pairs(files["env"].read_text())
    this.paths += files["path"].read_text().split("\n")[:-1]
    if "id" in step:
        this.outputs[step["id"]] = {"outputs": pairs(files["output"].read_text())}
    if done.returncode:
        this.say(f"Error: Process completed with exit code {done.returncode}.")
    return done.returncode == 0


def pairs(text: str) -> dict[str, str]:
    """Of a file of GITHUB_ENV or GITHUB_OUTPUT: `name=value`, or `name<<END`, lines, `END`. Raises Refused."""
    found: dict[str, str] = {}
    lines = iter(text.splitlines())
    for line in lines:
        name, equals, rest = line.partition("=")
        heredoc = re.match(r"([^=]+?)<<(.+)", line)
        if heredoc:
            inner = []
            for each in lines:
                if each == heredoc[2]:
                    break
                inner.append(each)
            else:
                raise Refused(f"Invalid value. Matching delimiter not found '{heredoc[2]}'")
            found[heredoc[1]] = "\n".join(inner)
        elif equals:
            found[name] = rest
        elif line:
            raise Refused(f"Invalid format '{line}'")
    return found


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
