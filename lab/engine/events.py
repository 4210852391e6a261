"""What a run shows: text for people, the CLI's JSON events, or one JSON object for a preview."""

import dataclasses
import datetime
import json
import sys
import threading
import time
from dataclasses import dataclass, field

from lab.engine.properties import masked
from lab.engine.provider import Diff
from lab.engine.state import Resource, encode_resource, urn_parts

SIGNS = {
    "create": "+",
    "update": "~",
    "delete": "-",
    "replace": "+-",
    "same": " ",
    "read": ">",
    "refresh": "~",
    "discard": "<",
}
CLEANUP = {"delete-replaced", "discard-replaced", "remove-pending-replace"}
PAST = {
    "create": "created",
    "update": "updated",
    "delete": "deleted",
    "replace": "replaced",
    "same": "unchanged",
    "read": "read",
    "discard": "discarded",
}


@dataclass
class Step:
    op: str
    urn: str
    old: Resource | None = None
    new: Resource | None = None
    diff: Diff = field(default_factory=Diff)
    refreshed: bool = False

    @property
    def resource(self) -> Resource:
        return self.new or self.old

    @property
    def shown(self) -> bool:
        """Default providers and clean-up of replaced resources are neither shown nor counted."""
        return not self.resource.is_default_provider and self.op not in CLEANUP


class Events:
    """Thread-safe. `form` is `text`, `events` (a JSON line each) or `object` (collected, printed by the caller)."""

    def __init__(self, form: str, preview: bool, mask):
        self.form, self.preview, self._mask = form, preview, mask
        self.counts: dict[str, int] = {}
        self.steps: list[dict] = []
        self.diagnostics: list[dict] = []
        self._lock = threading.Lock()
        self._sequence = 0
        self._started = time.monotonic()

    def prelude(self, config: dict[str, str]) -> None:
        self._event("preludeEvent", {"config": config})

    def before(self, step: Step) -> None:
        if step.shown and step.op != "same":
            self._event("resourcePreEvent", {"metadata": _metadata(step), **self._planning()})

    def done(self, step: Step, counted: bool = True) -> None:
        if not step.shown:
            return
        with self._lock:
            if counted:
                self.counts[step.op] = self.counts.get(step.op, 0) + 1
            if self.form == "object" and (step.op != "same" or step.refreshed or step.resource.is_stack):
                self.steps.append(_preview_step(step))
        self._event("resOutputsEvent", {"metadata": _metadata(step), **self._planning()})
        if self.form == "text" and step.op != "same":
            type_, name = urn_parts(step.urn)
            self._print(
                f" {SIGNS.get(step.op, step.op):2} {type_.rsplit('$', 1)[-1]} {name} "
                + (step.op if self.preview else PAST.get(step.op, step.op))
                + _why(step)
            )

    def failed(self, step: Step) -> None:
        if self.form == "object" and step.shown:
            with self._lock:
                self.steps.append(_preview_step(step))
        self._event("resOpFailedEvent", {"metadata": _metadata(step), "status": 2, "steps": 0})

    def diagnostic(self, severity: str, message: str, urn: str = "") -> None:
        """`severity`: debug, info, info#err, warning or error."""
        message = self._mask(message)
        if severity == "debug":
            return
        entry = {**({"urn": urn} if urn else {}), "message": message, "severity": severity}
        prefix = "" if severity.startswith("info") else f"{severity}: "
        with self._lock:
            self.diagnostics.append({**entry, "message": prefix + message})  # of the object, as the CLI has it
        self._event("diagnosticEvent", {**entry, "color": "never"})
        if self.form == "text":
            place = f"{urn_parts(urn)[1]}: " if urn.count("::") >= 3 else ""
            self._print(f"{prefix}{place}{message.rstrip()}")

    def summary(self, succeeded: bool) -> None:
        seconds = time.monotonic() - self._started
        self._event(
            "summaryEvent",
            {
                "maybeCorrupt": False,
                "durationSeconds": round(seconds),
                "resourceChanges": dict(self.counts),
                "policyPacks": {},
                "isPreview": self.preview,
                "result": "succeeded" if succeeded else "failed",
            },
        )
        if self.form == "text":
            self._print("Resources:" + (" (planned)" if self.preview else ""))
            for op, count in sorted(self.counts.items()):
                self._print(
                    f"    {SIGNS.get(op, op):2} {count} "
                    + (f"to {op}" if self.preview and op != "same" else PAST.get(op, op))
                )
            self._print(f"Duration: {seconds:.1f}s" + ("" if succeeded else ", failed"))
        if self.form == "events":
            self._event("cancelEvent", {})

    def preview_object(self, config: dict[str, str]) -> str:
        nanoseconds = int((time.monotonic() - self._started) * 1e9)
        return json.dumps(
            {
                **({"config": config} if config else {}),
                "steps": self.steps,
                **({"diagnostics": self.diagnostics} if self.diagnostics else {}),
                "duration": nanoseconds,
                "changeSummary": self.counts,
            },
            indent=4,
        )

    def _planning(self) -> dict:
        return {"planning": True} if self.preview else {}

    def _event(self, kind: str, payload: dict) -> None:
        if self.form != "events":
            return
        with self._lock:
            self._sequence += 1
            event = {"sequence": self._sequence, "timestamp": int(datetime.datetime.now().timestamp()), kind: payload}
            sys.stdout.write(json.dumps(event) + "\n")
            sys.stdout.flush()

    def _print(self, line: str) -> None:
        with self._lock:
            print(line, flush=True)


def _why(step: Step) -> str:
    keys = step.diff.replaces or step.diff.keys
    return f" ({', '.join(keys)})" if keys and step.op in ("update", "replace") else ""


def shown_state(resource: Resource) -> dict:
    hidden = dataclasses.replace(resource, inputs=masked(resource.inputs), outputs=masked(resource.outputs))
    return encode_resource(hidden, lambda _text: {})


def _metadata(step: Step) -> dict:
    out = {
        "op": step.op,
        "urn": step.urn,
        "type": step.resource.type,
        "provider": step.resource.provider,
        "old": shown_state(step.old) if step.old else None,
        "new": shown_state(step.new) if step.new else None,
    }
    if step.diff.keys:
        out["diffs"] = step.diff.keys
    if step.diff.detailed:
        out["detailedDiff"] = step.diff.detailed
    return out


def _preview_step(step: Step) -> dict:
    unchanged = step.refreshed and step.op == "same"  # which the CLI shows as it was before it looked
    out = {"op": "refresh" if unchanged else step.op, "urn": step.urn}
    if step.resource.provider:
        out["provider"] = step.resource.provider
    if step.old:
        out["oldState"] = shown_state(step.old)
    if step.new:
        state = shown_state(step.old if unchanged and step.old else step.new)
        if step.op != "read" and not step.refreshed:  # before it is done, none of these is known
            state.pop("outputs", None)
            state.pop("id", None)
        out["newState"] = state
    if step.diff.keys:
        out["diffReasons"] = step.diff.keys
    if step.diff.replaces:
        out["replaceReasons"] = step.diff.replaces
    return {**out, "detailedDiff": step.diff.detailed or None}
