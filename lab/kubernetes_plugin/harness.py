"""The kubernetes stand-in for its tests: its process."""

from __future__ import annotations

from pathlib import Path

from lab.kubernetes_plugin.objects import kind_of
from lab.kubernetes_plugin.releases import RELEASE
from lab.provider import harness
from lab.provider.wire import Props

BIN = Path(__file__).parent / "bin"


class Engine(harness.Engine):
    """Its process, and the calls an engine makes."""

    package, folder = "kubernetes", BIN

    def check(self, urn: str, news: Props, olds: Props | None = None, seed: bytes | None = None) -> Props:
        """With apiVersion and kind, as every SDK sends them."""
        token = urn.split("::", 3)[2].rsplit("$", 1)[-1]
        kind = kind_of(token)
        named = {} if token == RELEASE else {"apiVersion": kind.api_version, "kind": kind.name}
        return super().check(urn, {**named, **news}, olds, seed)
