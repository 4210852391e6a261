"""The engine's core: takes the program's wishes one by one, decides the operation of each, and carries it out."""

import dataclasses
import threading
import uuid
from collections.abc import Callable

from lab.engine.aliases import alias_urns
from lab.engine.errors import Refused, StepFailed
from lab.engine.events import Events, Step
from lab.engine.goal import Goal, package_of
from lab.engine.journal import Journal
from lab.engine.project import Config
from lab.engine.properties import UNKNOWN, Props, has_unknown, is_secret, reset_paths, same, secret
from lab.engine.provider import Diff, Outcome, Provider
from lab.engine.registry import Registry
from lab.engine.replace import dependents_to_replace
from lab.engine.run import Run
from lab.engine.state import PROVIDER_TYPE, STACK_TYPE, Resource, make_urn, provider_urn


class Deployment(Run):
    """One preview, update, refresh or destroy. Methods are called from many threads, one a request of the program."""

    def __init__(
        self,
        project: str,
        stack: str,
        config: Config,
        journal: Journal,
        events: Events,
        registry: Registry,
        preview: bool,
        parallel: int,
        answer_only: bool = False,
    ):
        super().__init__(journal, events, preview, parallel)
        self.project, self.stack = project, stack
        self.config, self.registry = config, registry
        self.answer_only = answer_only  # `destroy --run-program`: registrations are answered from the state
        self.goals: dict[str, Goal] = {}
        self.doomed: set[str] = set()  # URNs that this run deletes (for deletedWith)
        self._claims = threading.Condition(threading.RLock())
        self._claimed: set[int] = set()
        self._busy: set[int] = set()  # old entries that a replacement elsewhere is deleting right now
        self._replaced: set[str] = set()
        self._aliases: dict[str, list[str]] = {}
        self._defaults: dict[tuple[str, str], str] = {}
        self._default_lock = threading.RLock()

    # -- registering ---------------------------------------------------------------------------------------------------

    def register(self, goal: Goal) -> Resource:
        """Bring one resource to what the program wants. Terminated when that failed or the run is ending."""
        if not goal.parent and goal.type != STACK_TYPE and not self._is_default_provider(goal):
            goal.parent = make_urn(self.stack, self.project, "", STACK_TYPE, f"{self.project}-{self.stack}")
        urn = make_urn(self.stack, self.project, goal.parent, goal.type, goal.name)
        with self.step():
            try:
                handle = self._claim(goal, urn)
                self._inherit(goal)
                if not self.preview and has_unknown(goal.inputs):
                    raise StepFailed("the program sent an unknown value outside a preview", urn)
                if goal.type.startswith(PROVIDER_TYPE):
                    return self._provider(goal, urn, handle)
                if goal.custom and not goal.provider:
                    goal.provider = self._resolve_provider(goal)
                if self.answer_only:
                    return self._answer(goal, urn, handle)
                return self._custom(goal, urn, handle) if goal.custom else self._component(goal, urn, handle)
            except StepFailed as error:
                error.urn = error.urn or urn
                raise

    def _claim(self, goal: Goal, urn: str) -> int | None:
        """The handle of the resource's old entry, found by its URN or an alias."""
        with self._claims:
            if urn in self.goals:
                raise StepFailed(
                    f"Duplicate resource URN {urn!r}: give each resource of this type and parent a name of its own", urn
                )
            self.goals[urn] = goal
            self._aliases[urn] = alias_urns(goal, urn, self.stack, self.project, self._aliases.get(goal.parent, []))
            handle = self.journal.find(urn)
            for alias in self._aliases[urn] if handle is None else ():
                handle = self.journal.find(alias)
                if handle is not None and handle not in self._claimed:
                    self.journal.rename(alias, urn)
                    break
                handle = None
            self._claims.wait_for(lambda: handle not in self._busy)
            if handle is not None:
                self._claimed.add(handle)
            return handle

    def _inherit(self, goal: Goal) -> None:
        parent = self.goals.get(goal.parent)
        if parent:
            goal.protect = parent.protect if goal.protect is None else goal.protect
            goal.retain_on_delete = parent.retain_on_delete if goal.retain_on_delete is None else goal.retain_on_delete
            goal.deleted_with = goal.deleted_with or parent.deleted_with

    def _resource(self, goal: Goal, urn: str, inputs: Props, **fields) -> Resource:
        return Resource(
            urn=urn,
            custom=goal.custom,
            type=goal.type,
            inputs=inputs,
            parent=goal.parent,
            protect=bool(goal.protect),
            dependencies=goal.dependencies,
            provider=goal.provider if not goal.type.startswith(PROVIDER_TYPE) and goal.custom else "",
            propertyDependencies=goal.property_dependencies,
            additionalSecretOutputs=goal.additional_secret_outputs,
            customTimeouts=goal.timeouts,
            retainOnDelete=bool(goal.retain_on_delete),
            deletedWith=goal.deleted_with,
            ignoreChanges=goal.ignore_changes,
            replaceOnChanges=goal.replace_on_changes,
            resourceHooks=goal.hooks,
            **fields,
        )

    def _answer(self, goal: Goal, urn: str, handle: int | None) -> Resource:
        if handle is None:
            return self._resource(goal, urn, goal.inputs)
        old = self.journal.old[handle]
        self.events.done(Step("same", urn, old, old))
        return old

    def _component(self, goal: Goal, urn: str, handle: int | None) -> Resource:
        old = self.journal.old.get(handle)
        new = self._resource(goal, urn, goal.inputs, outputs=old.outputs if old else {})
        step = Step("create" if old is None else "same" if same(old.inputs, new.inputs) else "update", urn, old, new)
        if step.op == "same":
            return self._same(step, handle)
        return self.operate(step, step.op.title(), None, lambda _: self.record(new, handle))

    def register_outputs(self, urn: str, outputs: Props) -> None:
        if self.answer_only:
            return
        with self.step():
            if urn not in self.journal.new:
                raise StepFailed(f"outputs for {urn}, which is not registered", urn)
            self.journal.change_new(urn, outputs=outputs)
            self.journal.save()

    # -- custom resources ----------------------------------------------------------------------------------------------

    def _custom(self, goal: Goal, urn: str, handle: int | None) -> Resource:
        provider = self.registry.get(goal.provider)
        old = self.journal.old.get(handle)
        fresh = old is None or old.pendingReplacement or old.external
        inputs = reset_paths(old.inputs, goal.inputs, goal.ignore_changes) if old else goal.inputs
        checked = provider.check(urn, goal.type, {} if fresh else old.inputs, inputs)
        if fresh:
            new = self._resource(goal, urn, checked)
            return self._create(provider, Step("create" if old is None else "replace", urn, old, new), handle)
        if goal.deleted_with in self._replaced:
            diff = Diff(True, ["deletedWith"])
        elif self._provider_replaces(old, goal):
            diff = Diff(True, ["provider"])
        else:
            diff = provider.diff(old, urn, checked, goal.ignore_changes)
            diff.replace_on(goal.replace_on_changes)
        if diff.replaces:
            step = Step("replace", urn, old, self._resource(goal, urn, inputs), diff)
            return self._replace(goal, provider, step, handle)
        new = self._resource(goal, urn, checked, id=old.id, outputs=old.outputs)
        if diff.changed or old.initErrors:
            return self._update(goal, provider, Step("update", urn, old, new, diff), handle)
        unchanged = dataclasses.replace(new, outputs=with_secrets(new, old.outputs))
        return self._same(Step("same", urn, old, unchanged), handle)

    def _provider_replaces(self, old: Resource, goal: Goal) -> bool:
        """Whether a change of the resource's provider needs a new resource."""
        if not old.provider or old.provider == goal.provider:
            return False
        now, entry = provider_urn(goal.provider), self.journal.providers.get(old.provider)
        if not entry:
            return False
        wanted = self.journal.new[now].inputs
        return bool(self.registry.get(goal.provider).diff_config(now, entry, wanted).replaces)

    def _create(self, provider: Provider, step: Step, over: int | None, keep: int | None = None) -> Resource:
        """`keep`: the old entry that stays, marked for deletion at the end."""
        new = step.new

        def commit(outcome: Outcome) -> Resource:
            if keep is not None:
                self.journal.change(keep, delete=True)
            return self.record(_finished(new, outcome), over)

        timeout = new.customTimeouts.get("create", 0)
        return self.operate(step, "Create", lambda: provider.create(new.urn, new.type, new.inputs, timeout), commit)

    def _update(self, goal: Goal, provider: Provider, step: Step, over: int) -> Resource:
        old, new = step.old, step.new
        timeout = new.customTimeouts.get("update", 0)
        return self.operate(
            step,
            "Update",
            lambda: provider.update(old, new.urn, new.inputs, timeout, goal.ignore_changes),
            lambda outcome: self.record(_finished(new, outcome), over),
        )

    def _same(self, step: Step, over: int) -> Resource:
        self.record(step.new, over)
        self.events.done(step)
        return step.new

    def _replace(self, goal: Goal, provider: Provider, step: Step, handle: int) -> Resource:
        if goal.protect:
            raise StepFailed(
                f"unable to replace {step.urn} as it is marked for protection; "
                "remove `protect` from it in the program first",
                step.urn,
            )
        self._replaced.add(step.urn)
        checked = provider.check(step.urn, goal.type, {}, step.new.inputs)
        step.new = dataclasses.replace(step.new, inputs=checked)
        first = step.diff.delete_before_replace if goal.delete_before_replace is None else goal.delete_before_replace
        if not first:
            return self._create(provider, step, None, keep=handle)
        self._delete_first(handle)
        return self._create(provider, step, handle)

    def _delete_first(self, handle: int) -> None:
        """Delete the resource, and before it those dependents that must be replaced too."""
        with self._claims:
            handles = dependents_to_replace(self.journal, self.registry, handle, self._claimed)
            self._busy.update(handles[1:])
        try:
            self.doomed.update(self.journal.old[h].urn for h in handles)
            for h in reversed(handles):
                self.delete(h, "delete-replaced", lambda h=h: self.journal.change(h, pendingReplacement=True))
        finally:
            with self._claims:
                self.doomed.difference_update(self.journal.old[h].urn for h in handles)
                self._busy.difference_update(handles)
                self._claims.notify_all()

    def delete(self, handle: int, op: str = "delete", commit: Callable | None = None) -> None:
        """Delete an old entry's resource; where nothing is to be deleted, only the entry goes."""
        old = self.journal.old[handle]
        if old.external:
            op = "discard" if op == "delete" else "discard-replaced"
        elif old.pendingReplacement:
            op = "remove-pending-replace"  # deleted by an earlier run
        step = Step(op, old.urn, old)
        real = old.custom and not (
            old.is_provider
            or old.external
            or old.pendingReplacement
            or old.retainOnDelete
            or self.preview
            or old.deletedWith in self.doomed
        )
        call = (lambda: self.registry.get(old.provider).delete(old)) if real else None
        self.operate(step, "Delete", call, lambda _: commit() if commit else self.journal.drop(handle))

    # -- providers -----------------------------------------------------------------------------------------------------

    @staticmethod
    def _is_default_provider(goal: Goal) -> bool:
        return goal.type.startswith(PROVIDER_TYPE) and not goal.custom

    def _provider(self, goal: Goal, urn: str, handle: int | None) -> Resource:
        goal.custom = True
        inputs = {**goal.inputs, **({"version": goal.version} if goal.version else {})}
        old = self.journal.old.get(handle)
        provider = self.registry.start(urn, goal.type)
        checked = provider.check_config(urn, old.inputs if old else {}, inputs)
        diff = provider.diff_config(urn, old, checked) if old else Diff()
        op = "create" if old is None else "replace" if diff.replaces else "update" if diff.changed else "same"
        if op == "replace" and goal.protect:
            raise StepFailed(f"unable to replace {urn} as it is marked for protection", urn)
        if op == "replace":
            checked = provider.check_config(urn, {}, inputs)  # its defaults anew
        id_ = old.id if op in ("same", "update") else UNKNOWN if self.preview else str(uuid.uuid4())
        new = self._resource(goal, urn, checked, id=id_, outputs=checked)
        provider.configure(old.inputs if op == "same" else checked, id_)
        self.registry.add(f"{urn}::{id_}", provider)
        step = Step(op, urn, old, new, diff)
        if self.answer_only:
            self.events.done(Step("same", urn, old, new))
        elif op == "same":
            self._same(step, handle)
        elif op == "replace":
            self.operate(step, "Create", None, lambda _: self._record_beside(new, handle))
        else:
            self.operate(step, op.title(), None, lambda _: self.record(new, handle))
        return new

    def _record_beside(self, new: Resource, handle: int) -> Resource:
        """Record a replacement; the old entry stays, marked for deletion at the end."""
        self.journal.change(handle, delete=True)
        return self.record(new, None)

    def default_provider(self, package: str, version: str) -> str:
        """The reference of the package's default provider; it is registered on first use."""
        with self._default_lock:
            if (package, version) not in self._defaults:
                name = "default" + ("_" + version.translate(str.maketrans(".-+", "___")) if version else "")
                settings = self.config.namespace(package).items()
                inputs = {key: secret(text) if hidden else text for key, (text, hidden) in settings}
                kind = PROVIDER_TYPE + package
                new = self.register(Goal(type=kind, name=name, custom=False, inputs=inputs, version=version))
                self._defaults[package, version] = f"{new.urn}::{new.id}"
            return self._defaults[package, version]

    def _resolve_provider(self, goal: Goal) -> str:
        """The nearest parent's provider for the package, else the default one (the SDK usually resolves parents
        itself).
        """
        if reference := goal.providers.get(goal.package):
            return reference
        parent = self.goals.get(goal.parent)
        while parent:
            if reference := parent.providers.get(goal.package):
                return reference
            if parent.custom and parent.provider and parent.package == goal.package:
                return parent.provider
            parent = self.goals.get(parent.parent)
        return self.default_provider(goal.package, goal.version)

    # -- reads and functions -------------------------------------------------------------------------------------------

    def read(self, goal: Goal, id_: str) -> Resource:
        """`Thing.get`: an entry that the engine reads but never changes."""
        if not goal.parent:
            goal.parent = make_urn(self.stack, self.project, "", STACK_TYPE, f"{self.project}-{self.stack}")
        urn = make_urn(self.stack, self.project, goal.parent, goal.type, goal.name)
        with self.step():
            handle = self._claim(goal, urn)
            goal.provider = goal.provider or self._resolve_provider(goal)
            if self.answer_only:
                return self._answer(goal, urn, handle)
            provider, old = self.registry.get(goal.provider), self.journal.old.get(handle)
            outputs: Props = {}
            if id_ != UNKNOWN and provider.configured:
                with self.slots:
                    self.check_running()
                    outcome = provider.read(urn, goal.type, id_, goal.inputs, goal.inputs, goal.timeouts.get("read", 0))
                if not outcome.id:
                    raise StepFailed(f"{goal.type} {goal.name!r}: there is no resource with the id {id_!r}", urn)
                id_, outputs = outcome.id, outcome.outputs
            new = self._resource(goal, urn, goal.inputs, id=id_, external=True)
            new = dataclasses.replace(new, outputs=with_secrets(new, outputs))
            op, counted = "read", bool(old and not same(old.outputs, new.outputs))
            if old and not old.external and old.id != id_:
                self.journal.change(handle, delete=True)  # the program manages it no more: deleted at the end
                handle, op, counted = None, "replace", True
            self.record(new, handle)
            self.journal.save()
            self.events.done(Step(op, urn, old, new), counted)
            return new

    def invoke(self, token: str, args: Props, reference: str, version: str, depends_on: list[str]):
        """The provider's InvokeResponse; None: unknown in this preview."""
        package = package_of(token)
        if package == "pulumi":
            raise Refused(f"the built-in function {token!r} is not implemented by lab/engine")
        with self.step():
            provider = self.registry.get(reference or self.default_provider(package, version))
            waits = [r for urn in depends_on if (r := self.journal.new.get(urn)) and r.custom and r.id in ("", UNKNOWN)]
            if self.preview and (waits or not provider.configured):
                return None
        return provider.invoke(token, args)


def with_secrets(resource: Resource, outputs: Props) -> Props:
    """`outputs`, with those secret that the program marked."""
    marks = [key for key in resource.additionalSecretOutputs if key in outputs and not is_secret(outputs[key])]
    return {**outputs, **{key: secret(outputs[key]) for key in marks}}


def _finished(new: Resource, outcome: Outcome) -> Resource:
    return dataclasses.replace(
        new,
        id=outcome.id or new.id,
        outputs=with_secrets(new, outcome.outputs),
        initErrors=outcome.init_errors,
        inputs=new.inputs if outcome.inputs is None else outcome.inputs,
    )
