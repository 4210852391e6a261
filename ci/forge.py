#!/usr/bin/env python3
"""Says a text on GitHub or GitLab: the one comment of a pull request, or a new pull request. Standard library alone.

comment FILE           into the pull request PULL; one that begins with the same line is replaced. Without PULL: into
                       the job's summary, or on standard output
open BRANCH FILE TITLE opens a pull request from BRANCH to BASE_BRANCH, or changes the text of the one that is open

The variables are the forges' own: GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_TOKEN; CI_API_V4_URL, CI_PROJECT_ID and
FORGE_TOKEN, a project's access token (GitLab's job token may not write notes).
"""

import json
import os
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

PAGE = 100


class Forge:
    """One repository's API. Paths are relative to it."""

    def __init__(self) -> None:
        env = os.environ
        self.gitlab = "CI_API_V4_URL" in env
        if self.gitlab:
            self.base = f"{env['CI_API_V4_URL']}/projects/{env['CI_PROJECT_ID']}"
            self.headers = {"PRIVATE-TOKEN": env["FORGE_TOKEN"]}
            self.pulls, self.text = "merge_requests", "description"
        else:
            self.base = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}"
            self.headers = {"Authorization": f"Bearer {env['GITHUB_TOKEN']}", "Accept": "application/vnd.github+json"}
            self.pulls, self.text = "pulls", "body"

    def call(self, method: str, path: str, **body: Any) -> Any:
        """Its JSON answer. SystemExit with one sentence where it is refused."""
        data = json.dumps(body).encode() if body else None
        headers = {**self.headers, "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.base}/{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")[:300]
            raise SystemExit(f"{method} {path} was refused ({error.code}): {said}") from None
        except urllib.error.URLError as error:
            raise SystemExit(f"{self.base} can't be reached: {error.reason}") from None

    def comment(self, pull: str, text: str) -> None:
        """Write it, or write it over the one that begins with the same line."""
        marker = text.split("\n", 1)[0]
        notes = f"merge_requests/{pull}/notes" if self.gitlab else f"issues/{pull}/comments"
        page = 1
        while found := self.call("GET", f"{notes}?per_page={PAGE}&page={page}"):
            for each in found:
                if each["body"].startswith(marker):
                    of_one = f"{notes}/{each['id']}" if self.gitlab else f"issues/comments/{each['id']}"
                    self.call("PUT" if self.gitlab else "PATCH", of_one, body=text)
                    return
            page += 1
        self.call("POST", notes, body=text)

    def open(self, branch: str, text: str, title: str) -> None:
        """Make it, or change the open one's text."""
        base = os.environ.get("BASE_BRANCH", "main")
        if self.gitlab:
            asked = {"source_branch": branch, "state": "opened"}
            ends = {"source_branch": branch, "target_branch": base}
        else:
            asked = {"head": f"{os.environ['GITHUB_REPOSITORY'].split('/')[0]}:{branch}", "state": "open"}
            ends = {"head": branch, "base": base}
        there = self.call("GET", f"{self.pulls}?{urllib.parse.urlencode(asked)}")
        if there:
            number = there[0]["iid" if self.gitlab else "number"]
            self.call("PUT" if self.gitlab else "PATCH", f"{self.pulls}/{number}", **{self.text: text})
        else:
            self.call("POST", self.pulls, title=title, **ends, **{self.text: text})


def main(verb: str, *given: str) -> None:
    """One of the two."""
    if verb == "open":
        branch, file, title = given
        Forge().open(branch, Path(file).read_text(), title)
        return
    pull, summary = os.environ.get("PULL"), os.environ.get("GITHUB_STEP_SUMMARY")
    try:
        text = Path(given[0]).read_text()
    except FileNotFoundError:
        raise SystemExit(f"{given[0]} isn't there: what writes it failed before, and says why above") from None
    if pull:
        Forge().comment(pull, text)
    elif summary:
        with Path(summary).open("a") as file:
            file.write(text)
    else:
        print(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
