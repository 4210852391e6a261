"""The providers of a run: started, configured and found by their reference `<urn>::<id>`."""

import threading
from pathlib import Path

from lab.engine.errors import StepFailed
from lab.engine.events import Events
from lab.engine.goal import package_of
from lab.engine.journal import Journal
from lab.engine.plugins import Processes, find_plugin, start_plugin
from lab.engine.provider import Provider
from lab.engine.state import provider_urn


class Registry:
    def __init__(
        self,
        journal: Journal,
        processes: Processes,
        events: Events,
        root: Path,
        plugin_folders: dict[str, Path],
        preview: bool,
    ):
        self._journal, self._processes, self._events = journal, processes, events
        self._root, self._folders, self._preview = root, plugin_folders, preview
        self._by_reference: dict[str, Provider] = {}
        self._lock = threading.RLock()
        self.address = ""  # of the engine's own server; set before the first plugin starts

    def start(self, urn: str, type_: str) -> Provider:
        """A new plugin process for a provider resource, not configured yet."""
        path = find_plugin(package_of(type_), self._folders)
        _, address = start_plugin(self._processes, path, self.address, self._root, self._on_line)
        provider = Provider(urn, type_, address, self._preview)
        provider.handshake(self.address, self._root, path)
        return provider

    def add(self, reference: str, provider: Provider) -> None:
        with self._lock:
            self._by_reference[reference] = provider

    def get(self, reference: str) -> Provider:
        """The provider; one that is only in the state is started and configured from there."""
        with self._lock:
            if reference not in self._by_reference:
                entry = self._journal.providers.get(reference)
                if entry is None:
                    named = provider_urn(reference) or reference
                    raise StepFailed(f"unknown provider {named!r}: not registered, and not in the state")
                provider = self.start(entry.urn, entry.type)
                provider.configure(entry.inputs, entry.id)
                self._by_reference[reference] = provider
            return self._by_reference[reference]

    def cancel(self) -> None:
        """Tell all providers that the run is over."""
        for provider in list(self._by_reference.values()):
            provider.cancel()

    def _on_line(self, text: str, is_stderr: bool) -> None:
        self._events.diagnostic("info#err" if is_stderr else "info", text)
