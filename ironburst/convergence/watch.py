"""What a converge has to watch on a host: read from Ansible's own results,
task by task, and from the roles' meta/watch.yml.

A watch is the question of ironburst.convergence.host_facts without its salt. A task of a module that isn't known here
makes the host *unwatchable*, with the reason: it is then never called unchanged (fail closed).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

Watch = dict[str, Any]
Arguments = Mapping[str, Any]
KINDS = ("files", "packages", "services", "users", "groups", "modules", "sysctls", "mounts", "commands")
MAPPED = ("files", "services")  # the others are lists
STRENGTH = ("exists", "content", "tree")  # of two ways to watch a path the stronger one counts


class Unwatchable(ValueError):
    """What a task manages can't be read from its result; the text is one sentence."""


def merge(*watches: Mapping[str, Any]) -> Watch:
    """All that any of them watches, sorted, without empty kinds."""
    files: dict[str, str] = {}
    services: dict[str, set[str]] = {}
    lists: dict[str, list[Any]] = {}
    for watch in watches:
        for path, how in watch.get("files", {}).items():
            files[path] = max(how, files.get(path, "exists"), key=STRENGTH.index)
        for unit, parts in watch.get("services", {}).items():
            services.setdefault(unit, set()).update(parts)
        for kind in KINDS:
            if kind not in MAPPED:
                known = lists.setdefault(kind, [])
                for entry in watch.get(kind, []):
                    if entry not in known:
                        known.append(entry)
    merged: Watch = {
        "files": dict(sorted(files.items())),
        "services": {unit: sorted(parts) for unit, parts in sorted(services.items())},
    }
    merged |= {kind: sorted(entries) for kind, entries in lists.items()}
    return {kind: merged[kind] for kind in KINDS if merged.get(kind)}


def fact_names(watch: Watch) -> list[str]:
    """The facts that a watch asks for, as the host's answer names them ("file /x", "package y")."""
    return [_fact_name(kind, entry) for kind, entries in watch.items() for entry in entries]


def without(watch: Watch, facts: Iterable[str]) -> Watch:
    """`watch` without what stands for these facts."""
    dropped = set(facts)

    def stays(kind: str, entry: Any) -> bool:
        return _fact_name(kind, entry) not in dropped

    return {
        kind: {key: value for key, value in entries.items() if stays(kind, key)}
        if kind in MAPPED
        else [entry for entry in entries if stays(kind, entry)]
        for kind, entries in watch.items()
    }


def _fact_name(kind: str, entry: Any) -> str:
    return f"{kind.removesuffix('s')} {' '.join(entry) if kind == 'commands' else entry}"


def unit_name(name: str) -> str:
    """A unit's full name: systemctl's own default is .service."""
    kinds = ("service", "socket", "target", "timer", "path", "mount", "automount", "swap", "slice", "scope", "device")
    return name if name.rpartition(".")[2] in kinds else f"{name}.service"


def package_name(spec: str) -> str | None:
    """The name in an apt or dnf package spec; None for a file, an address or a group."""
    if "/" in spec or spec.startswith("@"):
        return None
    return re.split(r"=|\s|:", spec, maxsplit=1)[0] if spec else None


# ---- modules: arguments in, watch out


def _words(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, list | tuple):
        return [str(word) for word in value]
    return [word.strip() for word in str(value).split(",")]


def _path(arguments: Arguments, *keys: str) -> str:
    for key in (*keys, "_original_basename"):
        value = arguments.get(key)
        if key in keys and isinstance(value, str) and value.startswith("/"):
            return value
    raise Unwatchable("its result names no path")


def _file(*keys: str, how: str = "content") -> Callable[[Arguments], Watch]:
    def watch(arguments: Arguments) -> Watch:
        path = _path(arguments, *keys)
        name = arguments.get("_original_basename")
        if path.endswith("/") and isinstance(name, str) and name:  # copied into a folder
            path = posixpath.join(path, name)
        return {"files": {path.rstrip("/") or "/": "tree" if arguments.get("recurse") else how}}

    return watch


def _fixed(*paths: str) -> Callable[[Arguments], Watch]:
    return lambda _arguments: {"files": dict.fromkeys(paths, "content")}


def _packages(arguments: Arguments) -> Watch:
    names = [package_name(spec) for key in ("name", "package", "pkg") for spec in _words(arguments.get(key))]
    if arguments.get("deb"):
        raise Unwatchable("it installs a package from a file: name the package in meta/watch.yml of its role")
    files = {"/etc/dnf/plugins/versionlock.list": "content"} if "allowerasing" in arguments else {}
    return {"packages": [name for name in names if name and name != "*"], "files": files}


def _unit(arguments: Arguments) -> Watch:
    name = arguments.get("name")
    if not name:
        return {}  # only a daemon-reload
    parts = {"enabled": "enabled", "masked": "enabled", "state": "active"}
    asked = [part for argument, part in parts.items() if arguments.get(argument) is not None]
    return {"services": {unit_name(str(name)): asked}}


def _user(arguments: Arguments) -> Watch:
    name = str(arguments["name"])
    return {"users": [name], "groups": _words(arguments.get("groups")) + _words(arguments.get("group"))}


def _yum_repository(arguments: Arguments) -> Watch:
    folder = arguments.get("reposdir") or "/etc/yum.repos.d"
    name = arguments.get("file") or arguments["name"]
    return {"files": {f"{folder}/{name}.repo": "content"}}


def _deb822(arguments: Arguments) -> Watch:
    name = re.sub(r"[^a-z0-9]+", "-", str(arguments["name"]).lower()).strip("-")
    return {"files": {f"/etc/apt/sources.list.d/{name}.sources": "content"}}


def _creates(arguments: Arguments) -> Watch:
    path = str(arguments.get("creates") or "")
    return {"files": {path: "exists"}} if path.startswith("/") else {}


def _unarchive(arguments: Arguments) -> Watch:
    watched = _creates(arguments)
    if not watched:
        raise Unwatchable("an archive is unpacked without `creates`: give it one")
    return watched


def _sysctl(arguments: Arguments) -> Watch:
    return {
        "sysctls": [str(arguments["name"])],
        "files": {str(arguments.get("sysctl_file") or "/etc/sysctl.conf"): "content"},
    }


def _modprobe(arguments: Arguments) -> Watch:
    name = str(arguments["name"])
    kept = arguments.get("persistent") not in (None, "disabled")
    return {"modules": [name], "files": {f"/etc/modules-load.d/{name}.conf": "content"} if kept else {}}


def _mount(arguments: Arguments) -> Watch:
    return {
        "mounts": [str(arguments.get("path") or arguments["name"])],
        "files": {str(arguments.get("fstab") or "/etc/fstab"): "content"},
    }


def _files(arguments: Arguments) -> Watch:
    """The repository's own module (playbooks/plugins/modules/files.py): several paths a task."""
    return {"files": {str(entry["path"]).rstrip("/"): "content" for entry in arguments["files"]}}


def _services(arguments: Arguments) -> Watch:
    """Likewise playbooks/plugins/modules/services.py."""
    return merge(*(_unit({**entry, "masked": entry.get("masked") or None}) for entry in arguments["services"]))


def _people(arguments: Arguments) -> Watch:
    """Likewise playbooks/plugins/modules/people.py."""
    files = {str(arguments["record"]): "content"} | ({str(arguments["keys"]): "tree"} if arguments["keys"] else {})
    names = [str(person["name"]) for person in arguments["people"]]
    if arguments["make_homes"]:
        files |= {f"{arguments['homes']}/{name}": "exists" for name in names}
    return {"users": names, "groups": list(arguments["groups"]), "files": files}


MODULES: dict[str, Callable[[Arguments], Watch]] = {
    "files": _files,
    "services": _services,
    "people": _people,
    "copy": _file("dest", "path", how="tree"),  # what is copied may be a folder
    "template": _file("dest", "path"),
    "assemble": _file("dest", "path"),
    "get_url": _file("dest"),
    "file": _file("path", "dest", "name"),
    "lineinfile": _file("path", "dest", "destfile", "name"),
    "blockinfile": _file("path", "dest", "destfile", "name"),
    "replace": _file("path", "dest", "destfile", "name"),
    "ini_file": _file("path", "dest"),
    "apt": _packages,
    "dnf": _packages,
    "dnf5": _packages,
    "yum": _packages,
    "package": _packages,
    "dpkg_selections": _packages,
    "systemd_service": _unit,
    "systemd": _unit,
    "service": _unit,
    "user": _user,
    "group": lambda arguments: {"groups": [str(arguments["name"])]},
    "yum_repository": _yum_repository,
    "deb822_repository": _deb822,
    "unarchive": _unarchive,
    "command": _creates,
    "shell": _creates,
    "script": _creates,
    "sysctl": _sysctl,
    "modprobe": _modprobe,
    "mount": _mount,
    "hostname": _fixed("/etc/hostname"),
    "known_hosts": _fixed("/etc/ssh/ssh_known_hosts"),
}
# Modules that change nothing on a host, or nothing that lasts
READS = {
    "api_version",
    "fetch",
    "find",
    "getent",
    "node_state",
    "ping",
    "raw",
    "role_needs",
    "slurp",
    "stat",
    "tempfile",
    "uri",
}
FACTS = {"gather_facts", "package_facts", "service_facts", "set_fact", "set_stats", "setup"}
INCLUDES = {"import_role", "import_tasks", "include_role", "include_tasks", "include_vars"}
WAITS = {"async_status", "pause", "reboot", "reboot_idle", "wait_for", "wait_for_connection"}
PLAY = {"add_host", "assert", "debug", "fail", "group_by", "meta", "validate_argument_spec"}
READ_ONLY = frozenset(READS | FACTS | INCLUDES | WAITS | PLAY)


def module_name(action: str) -> str:
    """A module's name without its collection's."""
    return action.rpartition(".")[2]


def of_task(action: str, results: Iterable[Mapping[str, Any]], literal: Arguments, *, where: str) -> Watch:
    """What one task manages on one host.

    A debug task whose message is {ironburst_watch: {...}} says it itself, as meta/watch.yml does. `results`: the
    module's answers, one an item of a loop, with `invocation.module_args`; a censored one has none, then `literal`
    counts: the arguments of the task as written, those without templates. Raises Unwatchable, naming `where`.
    """
    name, results = module_name(action), list(results)
    if name == "debug":  # a role says itself what is to be watched, in terms of its variables
        said = [result["msg"]["ironburst_watch"] for result in results if _says_watch(result)]
        return merge(*(of_role({"watch": given}, where) for given in said))
    if name in READ_ONLY:
        return {}
    build = MODULES.get(name)
    if build is None:
        raise Unwatchable(
            f"{where}: nobody can say what the module {action} manages; name it in meta/watch.yml of its role"
        )
    watch: Watch = {}
    for result in results:
        if result.get("skipped"):
            continue
        arguments = (result.get("invocation") or {}).get("module_args")
        if not isinstance(arguments, Mapping):
            dest = result.get("dest") or result.get("path")
            arguments = {**literal, **({"dest": dest, "path": dest} if isinstance(dest, str) else {})}
        try:
            watch = merge(watch, build(arguments))
        except (Unwatchable, KeyError) as error:
            why = str(error) if isinstance(error, Unwatchable) else f"its result has no {error}"
            raise Unwatchable(f"{where}: {why}") from None
    return watch


def _says_watch(result: Mapping[str, Any]) -> bool:
    return isinstance(result.get("msg"), Mapping) and "ironburst_watch" in result["msg"]


def read_role(folder: Path) -> Watch | None:
    """The watch of the role in `folder`, None if it has no meta/watch.yml. Raises ValueError."""
    path = folder / "meta" / "watch.yml"
    if not path.is_file():
        return None
    import yaml  # here: not on the way of an unchanged host

    try:
        return of_role(yaml.safe_load(path.read_text()), f"{folder.name}/meta/watch.yml")
    except yaml.YAMLError as error:
        raise ValueError(f"{folder.name}/meta/watch.yml is no YAML: {' '.join(str(error).split())}") from None


def of_role(text: Any, where: str) -> Watch:
    """The watch of a role's meta/watch.yml (decoded). Raises ValueError with one sentence."""
    given = (text or {}).get("watch") if isinstance(text, Mapping) or text is None else None
    if not isinstance(given, Mapping):
        raise ValueError(
            f"{where} has no mapping `watch`: write watch: {{files: [...], services: [...], commands: [[...]]}}"
        )
    unknown = sorted(set(given) - {*KINDS, "exists", "trees"})
    if unknown:
        raise ValueError(
            f"{where} watches {unknown[0]!r}, which is not known; known are {', '.join(KINDS)}, exists, trees"
        )
    watch: Watch = {kind: list(given[kind]) for kind in KINDS if kind in given and kind not in MAPPED}
    if any(not isinstance(argv, list) or not argv for argv in watch.get("commands", [])):
        raise ValueError(f"{where}: each of `commands` is a list of words, such as [sysctl, -n, vm.swappiness]")
    watch["files"] = (
        dict.fromkeys(given.get("files", []), "content")
        | dict.fromkeys(given.get("exists", []), "exists")
        | dict.fromkeys(given.get("trees", []), "tree")
    )
    watch["services"] = {unit_name(unit): ["active", "enabled"] for unit in given.get("services", [])}
    return merge(watch)


def of_software(software: Mapping[str, Any] | None) -> Watch:
    """The packages that the version lock names for a host (`node_software.packages`)."""
    lists = ((software or {}).get("packages") or {}).values()
    names = [package_name(str(spec)) for specs in lists for spec in specs or []]
    return merge({"packages": [name for name in names if name]})
