"""Which dependents must go before a resource that is deleted before its replacement is made."""

from lab.engine.errors import StepFailed
from lab.engine.journal import Journal
from lab.engine.properties import UNKNOWN
from lab.engine.registry import Registry
from lab.engine.state import Resource, provider_urn


def dependents_to_replace(journal: Journal, registry: Registry, root: int, claimed: set[int]) -> list[int]:
    """Handles in dependency order, `root` first.

    A dependent joins when its provider or its `deletedWith` is in the set, or when an input comes from the set and its
    provider answers that a change of this input (to something unknown) needs a replacement. Entries that already
    registered in this run (`claimed`) are decided and stay out.
    """
    chosen = {journal.old[root].urn: root}
    for handle, entry in list(journal.old.items()):
        if (
            handle == root
            or handle in claimed
            or entry.delete
            or not entry.custom
            or entry.is_provider
            or entry.external
        ):
            continue
        if (
            provider_urn(entry.provider) not in chosen
            and entry.deletedWith not in chosen
            and not _replaced(registry, entry, chosen)
        ):
            continue
        if entry.protect:
            raise StepFailed(
                f"unable to replace {journal.old[root].urn}: "
                f"{entry.urn} depends on it, must be deleted first and is marked for protection",
                entry.urn,
            )
        chosen[entry.urn] = handle
    return list(chosen.values())


def _replaced(registry: Registry, entry: Resource, chosen: dict[str, int]) -> bool:
    sources = entry.propertyDependencies or dict.fromkeys(entry.inputs, entry.dependencies)
    touched = [key for key, urns in sources.items() if key in entry.inputs and chosen.keys() & set(urns)]
    if not touched:
        return False
    news = {**entry.inputs, **dict.fromkeys(touched, UNKNOWN)}
    diff = registry.get(entry.provider).diff(entry, entry.urn, news, entry.ignoreChanges)
    diff.replace_on(entry.replaceOnChanges)
    return bool(diff.replaces)
