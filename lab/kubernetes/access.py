"""Who may sign in at the control plane, and with what: tokens, kubeconfigs, and a client of the API."""

import base64
import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from lab.system import LabError

ADMIN = "admin"
# who is there in every lab; the programs have the names that Kubernetes' own RBAC rules are made for
BUILT_IN: Mapping[str, Sequence[str]] = {
    ADMIN: ("system:masters",),
    "system:kube-controller-manager": (),
    "system:kube-scheduler": (),
    "kwok": ("system:masters",),
}
TIMEOUT_S = 30


class Refused(LabError):
    """The API's own refusal: `status` (403), `reason` ("Forbidden") and its message."""

    def __init__(self, status: int, reason: str, message: str):
        super().__init__(message)
        self.status, self.reason = status, reason


@dataclass(frozen=True)
class Account:
    """A user of the token file."""

    name: str
    token: str
    groups: tuple[str, ...]


def check_name(kind: str, name: str) -> None:
    """LabError if a user's or group's name can't stand in a token file and a file's name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9:@._-]*", name):
        raise LabError(f"{kind} {name!r}: use letters, digits and : @ . _ - and begin with a letter or digit")


def token_file(accounts: Sequence[Account]) -> str:
    """kube-apiserver's token-auth-file: token, user, uid, and the groups as one quoted field."""
    text = io.StringIO()
    rows = [[each.token, each.name, each.name, *([",".join(each.groups)] if each.groups else [])] for each in accounts]
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def accounts_of(text: str) -> list[Account]:
    """The accounts of a token file."""
    return [
        Account(name, token, tuple(groups[0].split(",")) if groups else ())
        for token, name, _, *groups in csv.reader(io.StringIO(text))
    ]


def kubeconfig(cluster: str, server: str, authority: bytes, account: Account) -> str:
    """A kubeconfig that verifies the server with `authority` (PEM) and signs in with the account's token."""
    entry = {"server": server, "certificate-authority-data": base64.b64encode(authority).decode()}
    context = {"cluster": cluster, "user": account.name}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": cluster, "cluster": entry}],
            "users": [{"name": account.name, "user": {"token": account.token}}],
            "contexts": [{"name": cluster, "context": context}],
            "current-context": cluster,
        },
        sort_keys=False,
    )


class Api:
    """A client of the API server, for the lab and its tests.

    `impersonate` (user, group): the administrator's calls are made, and judged, as that user's. `certificate`: PEM of
    the caller's certificate and key, in the place of a token.
    """

    def __init__(
        self,
        server: str,
        authority: Path,
        token: str = "",
        impersonate: tuple[str, str] | None = None,
        certificate: Path | None = None,
    ):
        self.server = server
        self.session = requests.Session()
        self.session.trust_env = False  # no proxy, no .netrc
        self.session.verify = str(authority)
        if token:
            self.session.headers["Authorization"] = f"Bearer {token}"
        if certificate:
            self.session.cert = str(certificate)
        if impersonate is not None:
            self.session.headers["Impersonate-User"], self.session.headers["Impersonate-Group"] = impersonate

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, patch: str = "merge"
    ) -> dict[str, Any]:
        """The JSON answer to a call; a PATCH is a merge patch, or a strategic-merge one. Refused if the API refuses;
        LabError if none answers.
        """
        kind = f"application/{patch}-patch+json" if method == "PATCH" else "application/json"
        try:
            answer = self.session.request(
                method, self.server + path, json=body, headers={"Content-Type": kind}, timeout=TIMEOUT_S
            )
            content: dict[str, Any] = answer.json()
        except requests.RequestException as error:
            raise LabError(f"{method} {self.server}{path} had no answer: {error}") from None
        if not answer.ok:
            raise Refused(answer.status_code, content.get("reason", ""), content.get("message", answer.text))
        return content
