"""Releases of Helm, without Helm: no chart repository can be reached from a lab, so no chart is loaded or rendered.

What can be known without the chart is checked. What was asked for is recorded in a ConfigMap of the release's
namespace, so that a refresh and a destroy have something to look at: not Helm's own record, which would say that the
chart is installed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from lab.kubernetes_plugin.api import Api, ApiError
from lab.provider.schema import Problem
from lab.provider.service import PluginError
from lab.provider.wire import UNKNOWN, Props

RELEASE = "kubernetes:helm.sh/v3:Release"
STATUS = "stand-in: chart not rendered"
LABELS = {"lab.ironburst/stand-in": "helm-release"}
TIMEOUT_S = 300


class Releases:
    """The releases of one cluster. `namespace`: of those that name none."""

    def __init__(self, api: Api, namespace: str):
        self._api, self._namespace = api, namespace

    @staticmethod
    def check(clear: Props, olds: Props, logical: str, seed: bytes, namespace: str) -> tuple[Props, list[Problem]]:
        """The inputs with what the official plugin fills in, and what is wrong with them."""
        made = hashlib.sha256(seed + logical.encode()).hexdigest()[:8]
        out = {**clear, "name": clear.get("name") or olds.get("name") or f"{logical}-{made}"}
        out["namespace"] = clear.get("namespace") or namespace
        if not clear.get("skipAwait"):
            out.setdefault("timeout", TIMEOUT_S)
        return out, list(_problems(clear))

    @staticmethod
    def planned(inputs: Props) -> Props:
        """The outputs that a preview knows."""
        return {**inputs, "status": UNKNOWN, "resourceNames": UNKNOWN}

    def _path(self, inputs: Props, name: bool = True) -> str:
        root = f"/api/v1/namespaces/{inputs.get('namespace') or self._namespace}/configmaps"
        return f"{root}/{_record_name(inputs)}" if name else root

    def create(self, inputs: Props) -> Props:
        """The outputs. PluginError if the name is taken, or the namespace isn't there (Helm makes it where asked)."""
        namespace = inputs["namespace"]
        if inputs.get("createNamespace"):
            self._make_namespace(namespace)
        try:
            self._api.call("POST", self._path(inputs, name=False), _record(inputs, 1))
        except ApiError as error:
            if error.reason == "AlreadyExists":
                raise PluginError("cannot re-use a name that is still in use") from None
            if error.status == 404:
                raise PluginError(f'create: failed to create: namespaces "{namespace}" not found') from None
            raise
        return _outputs(inputs, 1)

    def _make_namespace(self, name: str) -> None:
        try:
            self._api.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

    def read(self, state: Props) -> Props | None:
        """What was recorded; None if there is no record (any more)."""
        try:
            record = self._api.call("GET", self._path(state))
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        kept = {key: value for key, value in state.items() if not key.startswith("__")}
        return _outputs(kept, int(record["data"]["revision"]))

    def update(self, inputs: Props, state: Props) -> Props:
        """A new revision. PluginError if the release is gone."""
        revision = int((state.get("status") or {}).get("revision", 0)) + 1
        try:
            self._api.call("PUT", self._path(inputs), _record(inputs, revision))
        except ApiError as error:
            if error.status == 404:
                raise PluginError(f'"{inputs["name"]}" has no deployed releases') from None
            raise
        return _outputs(inputs, revision)

    def delete(self, state: Props) -> None:
        """PluginError if it is gone, as Helm says it."""
        try:
            self._api.call("DELETE", self._path(state))
        except ApiError as error:
            if error.status == 404:
                raise PluginError(f"uninstall: Release not loaded: {state['name']}: release: not found") from None
            raise


def _problems(inputs: Props) -> Iterator[Problem]:
    """Stricter than the official plugin: a version that isn't written is the newest of the day, so it is asked for."""
    chart = inputs.get("chart")
    if chart != UNKNOWN and not str(chart).startswith("oci://"):
        repository = (inputs.get("repositoryOpts") or {}).get("repo") if isinstance(chart, str) else None
        if repository != UNKNOWN and urlsplit(str(repository)).scheme not in ("https", "http"):
            yield "repositoryOpts.repo", "is needed, with the address of the chart's repository (or chart: oci://...)"
    if not inputs.get("version"):
        yield "version", "is needed: without one, Helm installs the newest of the day"


def _record_name(inputs: Props) -> str:
    return f"lab-helm-release-{inputs['name']}"


def _record(inputs: Props, revision: int) -> dict[str, Any]:
    values = json.dumps(inputs.get("values") or {}, sort_keys=True)
    data = {
        "note": STATUS,
        "chart": inputs["chart"],
        "version": inputs["version"],
        "repository": (inputs.get("repositoryOpts") or {}).get("repo", ""),
        "values-sha256": hashlib.sha256(values.encode()).hexdigest(),  # they may hold secrets
        "revision": str(revision),
    }
    return {"metadata": {"name": _record_name(inputs), "labels": LABELS}, "data": data}


def _outputs(inputs: Props, revision: int) -> Props:
    status = {
        "chart": inputs["chart"],
        "name": inputs["name"],
        "namespace": inputs["namespace"],
        "revision": revision,
        "status": STATUS,
        "version": inputs["version"],
    }
    return {**inputs, "status": status, "resourceNames": {}}
