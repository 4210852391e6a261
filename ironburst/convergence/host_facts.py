"""The probe: what is there on this host? One question in, one line of JSON out. Changes nothing.

`ironburst converge` sends this file over ssh to `python3 -`, with the question appended (sent_program.py). It imports
nothing but the standard library, and shares no code with the rest. Python 3.6 or newer, root. Every fact is one short
string; equal strings mean "as it was". Contents of files and outputs of commands are given as keyed digests
(HMAC-SHA256 with the question's `salt`), so that an answer carries no secret. A fact that can't be found out begins
with "?": such an answer never proves anything.

The question: {"salt": hex, "unit_wait_s": seconds to wait for units that are just starting,
  "files": {path: "content" | "exists" | "tree"}, "packages": [name], "services": {unit: ["enabled", "active"]},
  "users": [name], "groups": [name], "modules": [name], "sysctls": [name], "mounts": [path], "commands": [[argv]]};
all but the salt optional. The answer: {"file /etc/hosts": "file 0644 root:root 2c26b46b68ffc68f",
  "package slurmd": "24.11.5-4 hold", ...}.
"""

import fnmatch
import grp
import hashlib
import hmac
import json  # noqa: F401 (likewise)
import os
import pwd
import re
import stat
import subprocess
import sys  # noqa: F401 (sent_program.py writes the answer with it)
import time
from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Sequence, Set

MARK = "IRONBURST "
UNIT_FOLDERS = tuple(base + "/systemd/system" for base in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
MOVING = ("activating", "deactivating", "reloading")
LIMIT_S = 20
FILE_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket"}


class Probe:
    """The facts that are digests, or hold some; `salt` (hex) is their key."""

    def __init__(self, salt: str) -> None:
        self.salt = bytes.fromhex(salt)

    def digest(self, content: bytes) -> str:
        """The digest of a text."""
        return hmac.new(self.salt, content, hashlib.sha256).hexdigest()[:24]

    def content(self, path: str) -> str:
        """The digest of a file, which may be large."""
        made = hmac.new(self.salt, b"", hashlib.sha256)
        with open(path, "rb") as handle:
            for block in iter(lambda: handle.read(1 << 20), b""):
                made.update(block)
        return made.hexdigest()[:24]

    # ---- files
    def file(self, path: str, how: str) -> str:
        """What is at `path`; `how`: exists (no more than that), content, or tree (all below a folder, too)."""
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return "absent"
        kind = stat.S_IFMT(status.st_mode)
        if how == "exists":
            return "there"
        if kind == stat.S_IFLNK:
            return "link %s %s" % (owner(status), os.readlink(path))
        text = "%s %04o %s" % (FILE_KINDS.get(kind, "device"), stat.S_IMODE(status.st_mode), owner(status))
        if kind == stat.S_IFREG:
            return "%s %s" % (text, self.content(path))
        if kind == stat.S_IFDIR and how == "tree":
            return "%s %s" % (text, self.tree(path))
        return text

    def tree(self, top: str) -> str:
        """The digest of everything below a folder."""
        lines = []
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(files) + folders:
                path = os.path.join(folder, name)
                lines.append("%s %s" % (path, self.file(path, "content")))
        return self.digest("\n".join(lines).encode("utf-8", "surrogateescape"))

    # ---- units
    def services(self, wanted: Mapping[str, Sequence[str]], wait_s: float) -> Dict[str, str]:
        """{unit: its states and files}; `wanted`: {unit: of "enabled" and "active" those that count}."""
        units = sorted(wanted)
        deadline = time.monotonic() + wait_s
        while True:
            shown = show_units(units)
            moving = any(properties.get("ActiveState") in MOVING for properties in shown.values())
            if time.monotonic() >= deadline or not moving:
                break
            time.sleep(0.1)
        return {unit: self.service(unit, wanted[unit], shown.get(unit)) for unit in units}

    def service(self, unit: str, wanted: Sequence[str], properties: Optional[Mapping[str, str]]) -> str:
        """Of one unit; `properties`: as systemctl shows them."""
        if properties is None:
            return "? systemctl does not tell"
        words = []
        if "enabled" in wanted:
            words.append(properties.get("UnitFileState") or properties.get("LoadState", "?"))
        if "active" in wanted:
            words.append(properties.get("ActiveState", "?"))
        return " ".join(words + self.unit_files(unit))

    def unit_files(self, unit: str) -> List[str]:
        """The unit's own file and its drop-ins, as they lie on the disk (systemd may not have read them yet)."""
        template = re.sub(r"@[^.]*\.", "@.", unit)
        seen: Set[str] = set()
        words = []
        for base in UNIT_FOLDERS:
            for name in sorted({unit, template}):
                for path in [os.path.join(base, name)] + drop_ins(os.path.join(base, name + ".d")):
                    if not os.path.isfile(path) or os.path.realpath(path) in seen:
                        continue
                    seen.add(os.path.realpath(path))
                    words.append("%s=%s" % (path, self.content(path)))
        return words

    # ---- people
    def user(self, name: str) -> str:
        """Of a user: ids, folder, shell, groups, and a digest of password and expiry."""
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            return "absent"
        member = sorted(group.gr_name for group in grp.getgrall() if name in group.gr_mem)
        words = [entry.pw_uid, entry.pw_gid, entry.pw_dir, entry.pw_shell, entry.pw_gecos, ",".join(member)]
        return " ".join(str(word) for word in words) + " " + self.shadow(name)

    def shadow(self, name: str) -> str:
        """The digest of a user's password and expiry; empty where there is none."""
        if not os.path.exists("/etc/shadow"):
            return ""
        with open("/etc/shadow") as handle:
            lines = [line for line in handle if line.startswith(name + ":")]
        if not lines:
            return ""
        fields = lines[0].strip().split(":")
        return self.digest(":".join(fields[:2] + fields[7:8]).encode())

    def command(self, argv: Sequence[str]) -> str:
        """A command's exit status, and the digest of its output."""
        environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
        try:
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=LIMIT_S,
                env=environment,
            )
        except FileNotFoundError:
            return "not installed"
        return "%d %s" % (done.returncode, self.digest(done.stdout))


def owner(status: os.stat_result) -> str:
    """USER:GROUP, by number where there is no name."""
    try:
        user = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        user = str(status.st_uid)
    try:
        group = grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        group = str(status.st_gid)
    return "%s:%s" % (user, group)


def drop_ins(folder: str) -> List[str]:
    """Paths of a unit's drop-ins."""
    if not os.path.isdir(folder):
        return []
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".conf")]


def packages(names: Sequence[str]) -> Dict[str, str]:
    """{name: "version" or "version hold"}, "absent" if it is not installed whole."""
    return dpkg(names) if os.path.exists("/var/lib/dpkg/status") else rpm(names)


def dpkg(names: Sequence[str]) -> Dict[str, str]:
    """`packages`, read from dpkg's own file."""
    versions = dict.fromkeys(names, "absent")
    with open("/var/lib/dpkg/status", encoding="utf-8", errors="replace") as handle:
        paragraphs = handle.read().split("\n\n")
    for paragraph in paragraphs:
        name = paragraph.partition("\n")[0][len("Package: ") :]  # dpkg writes this field first
        if name not in versions:
            continue
        fields = dict(re.findall(r"^(Status|Version): (.+)$", paragraph, re.M))
        wanted, _, state = fields.get("Status", "? ? ?").split()
        if state == "installed":
            version = fields.get("Version", "?") + (" hold" if wanted == "hold" else "")
            versions[name] = version if versions[name] == "absent" else versions[name] + ", " + version
    return versions


def rpm(names: Sequence[str]) -> Dict[str, str]:
    """`packages` from rpm; a name may be a spec with a version ("slurm-slurmd-24.11.*")."""
    installed = run(["rpm", "-qa", "--qf", "%{NAME} %{VERSION} %{RELEASE}.%{ARCH}\n"])
    rows = [line.split() for line in installed.splitlines()]
    locks = ""
    for path in ("/etc/dnf/plugins/versionlock.list", "/etc/yum/pluginconf.d/versionlock.list"):
        if os.path.exists(path):
            with open(path) as handle:
                locks += handle.read()
    versions = {}
    for wanted in names:
        fitting = []
        for name, version, release in rows:
            specs = (name + "-" + version, name + "-" + version + "-" + release)
            if wanted == name or any(fnmatch.fnmatch(spec, wanted) for spec in specs):
                fitting.append("%s-%s%s" % (version, release, " hold" if name + "-" in locks else ""))
        versions[wanted] = ", ".join(sorted(fitting)) or "absent"
    return versions


def show_units(units: Sequence[str]) -> Dict[str, Dict[str, str]]:
    """{unit: {property: value}}, empty if systemctl's answer does not have all of them."""
    properties = "Names,LoadState,UnitFileState,ActiveState"
    text = run(["systemctl", "show", "--no-pager", "--property=" + properties] + list(units))
    blocks = []
    for block in text.strip().split("\n\n"):
        pairs = (line.partition("=") for line in block.splitlines())
        blocks.append({name: value for name, _, value in pairs})
    return dict(zip(units, blocks)) if len(blocks) == len(units) else {}


def run(argv: Sequence[str]) -> str:
    """A command's output, whatever its exit status."""
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT_S
    )
    return done.stdout.decode("utf-8", "replace")


def group_text(name: str) -> str:
    """A group's id and members."""
    try:
        entry = grp.getgrnam(name)
    except KeyError:
        return "absent"
    return "%d %s" % (entry.gr_gid, ",".join(sorted(entry.gr_mem)))


def sysctl(name: str) -> str:
    """A kernel parameter's value."""
    path = "/proc/sys/" + name.replace(".", "/")
    try:
        with open(path) as handle:
            return " ".join(handle.read().split())
    except FileNotFoundError:
        return "absent"


def module(name: str) -> str:
    """Whether a kernel module is loaded."""
    return "loaded" if os.path.isdir("/sys/module/" + name.replace("-", "_")) else "absent"


def mount(path: str) -> str:
    """Source and type of what is mounted there last."""
    with open("/proc/self/mounts") as handle:
        rows = [line.split() for line in handle]
    mounted = [row for row in rows if row[1].replace("\\040", " ") == path]
    return "%s %s" % (mounted[-1][0], mounted[-1][2]) if mounted else "absent"


def kernel() -> str:
    """The kernel that runs, and its command line."""
    with open("/proc/cmdline") as handle:
        return "%s %s" % (os.uname().release, " ".join(handle.read().split()))


def gather(question: Mapping[str, Any]) -> Dict[str, str]:
    """The answer to a question: {fact: text}."""
    probe = Probe(question["salt"])
    facts: Dict[str, str] = {}

    def note(fact: str, find: Callable[..., str], *arguments: Any) -> None:
        try:
            facts[fact] = find(*arguments)
        except Exception as error:  # whatever it is: an unknown fact, never a silent one
            facts[fact] = unknown(error)

    def note_all(kind: str, names: Collection[str], find: Callable[..., Dict[str, str]], *arguments: Any) -> None:
        if not names:
            return
        try:
            texts = find(names, *arguments)
        except Exception as error:
            texts = dict.fromkeys(names, unknown(error))
        facts.update((kind + " " + name, text) for name, text in texts.items())

    note("kernel", kernel)
    note_all("service", question.get("services", {}), probe.services, question.get("unit_wait_s", 0))
    note_all("package", question.get("packages", []), packages)
    for path, how in question.get("files", {}).items():
        note("file " + path, probe.file, path, how)
    kinds = {"user": probe.user, "group": group_text, "module": module, "sysctl": sysctl, "mount": mount}
    for kind, find in kinds.items():
        for name in question.get(kind + "s", []):
            note(kind + " " + name, find, name)
    for argv in question.get("commands", []):
        note("command " + " ".join(argv), probe.command, argv)
    return facts


def unknown(error: Exception) -> str:
    """The text of a fact that could not be found out."""
    return "? %s: %s" % (type(error).__name__, error)
