"""The API server behind the plugin: signing in with a kubeconfig, what kinds it has, and single calls."""

from __future__ import annotations

import base64
import json
import subprocess
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import requests
import yaml

from lab.provider.fence import OutsideLab, in_lab
from lab.provider.service import PluginError
from lab.provider.wire import Props

APPLY, JSON_PATCH, JSON = "application/apply-patch+yaml", "application/json-patch+json", "application/json"
TIMEOUT_S = 60
OUTSIDE = (
    "is outside the lab: this stand-in for the kubernetes plugin speaks only to literal addresses on loopback or in "
    "10.78.0.0/16"
)


class ApiError(Exception):
    """The API server's refusal: `status` (403), `reason` ("Forbidden"), and its message."""

    def __init__(self, status: int, reason: str, message: str, details: Mapping[str, Any]):
        super().__init__(message)
        self.status, self.reason, self.details = status, reason, details


class NoMatch(Exception):
    """The API server has no such kind."""


class Unreachable(Exception):
    """The API server doesn't answer, or not as one."""


@dataclass(frozen=True)
class Kind:
    """A kind, as an object names it: `rbac.authorization.k8s.io/v1`, `ClusterRole`."""

    api_version: str
    name: str

    def __str__(self) -> str:
        return f"{self.api_version}/{self.name}"


@dataclass(frozen=True)
class Place:
    """Where the objects of a kind are: the path of its group and version, its plural, and whether in namespaces."""

    root: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        inside = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{self.root}{inside}/{self.plural}" + (f"/{name}" if name else "")


def parsed(text: str) -> Props:
    """A kubeconfig, given as its contents or as a path. ValueError if it is none."""
    content = text
    if "\n" not in text and Path(text).expanduser().is_file():
        content = Path(text).expanduser().read_text()
    try:
        config = yaml.safe_load(content)
    except yaml.YAMLError:
        config = None
    if not isinstance(config, dict) or not config.get("clusters"):
        raise ValueError("is no kubeconfig: it names no cluster")
    return config


def active(config: Props, settings: Props) -> tuple[Props, Props, str]:
    """(cluster, user, namespace) of the context that is used. ValueError if there is none."""

    def named(section: str, name: str | None) -> Props:
        found = [each for each in config.get(section) or [] if each.get("name") == name]
        if not found:
            raise ValueError(f"names {name!r}, which isn't among its {section}")
        return dict(found[0][section.removesuffix("s")])

    context = named("contexts", settings.get("context") or config.get("current-context"))
    cluster = named("clusters", settings.get("cluster") or context.get("cluster"))
    user = named("users", context.get("user"))
    return cluster, user, settings.get("namespace") or context.get("namespace") or "default"


def executed(plugin: Props) -> str:
    """The token that a kubeconfig's credential plugin gives; empty: there is no plugin."""
    if not plugin:
        return ""
    command = [plugin["command"], *plugin.get("args", [])]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S)
        return str(json.loads(done.stdout)["status"]["token"])
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PluginError(f"the kubeconfig's credential plugin {command[0]} can't be run: {error}") from None
    except (ValueError, KeyError, TypeError):
        raise PluginError(f"the kubeconfig's credential plugin {command[0]} gave no token: {done.stderr}") from None


class Api:
    """Calls of one API server. Raises OutsideLab for one that isn't of the lab."""

    def __init__(self, cluster: Props, user: Props):
        self.server = str(cluster.get("server", "")).rstrip("/")
        if not in_lab(self.server):
            raise OutsideLab(f"{self.server!r} {OUTSIDE}")
        token = user.get("token") or executed(user.get("exec") or {})
        if not token:
            raise PluginError(
                "the kubeconfig's user has neither a token nor a credential plugin: the stand-in knows no other way to "
                "sign in (no client certificates)"
            )
        self._files = TemporaryDirectory(prefix="kubernetes-stand-in-")
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy, no .netrc
        self._session.headers["Authorization"] = f"Bearer {token}"
        self._session.verify = self._authority(cluster)
        self._places: dict[Kind, Place] = {}
        self._lock = threading.Lock()

    def _authority(self, cluster: Props) -> str | bool:
        if cluster.get("certificate-authority"):
            return str(cluster["certificate-authority"])
        if not cluster.get("certificate-authority-data"):
            return not cluster.get("insecure-skip-tls-verify")
        path = Path(self._files.name) / "authority.crt"
        path.write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
        return str(path)

    def call(
        self, method: str, path: str, body: Any = None, kind: str = JSON, **query: str | list[str] | None
    ) -> dict[str, Any]:
        """The answer to a call. Raises ApiError or Unreachable."""
        data = None if body is None else json.dumps(body)
        try:
            answer = self._session.request(
                method,
                self.server + path,
                data=data,
                params={name: value for name, value in query.items() if value is not None},
                headers={"Content-Type": kind},
                timeout=TIMEOUT_S,
                allow_redirects=False,
            )
            content: dict[str, Any] = answer.json()
        except requests.RequestException as error:
            raise Unreachable(f"{method} {self.server}{path} had no answer: {error}") from None
        if not answer.ok:
            message = content.get("message") or answer.reason
            raise ApiError(answer.status_code, content.get("reason", ""), message, content.get("details") or {})
        return content

    def place(self, kind: Kind) -> Place:
        """Where a kind is; asked once. Raises NoMatch."""
        with self._lock:
            if kind not in self._places:
                self._places |= self._kinds(kind.api_version)
            if kind not in self._places:
                raise NoMatch(f'no matches for kind "{kind.name}" in version "{kind.api_version}"')
            return self._places[kind]

    def _kinds(self, api_version: str) -> dict[Kind, Place]:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            listed = self.call("GET", root)["resources"]
        except ApiError as error:
            if error.status == 404:
                return {}
            raise
        whole = [each for each in listed if "/" not in each["name"]]
        return {Kind(api_version, each["kind"]): Place(root, each["name"], each["namespaced"]) for each in whole}
