"""What is there on this host? A program for the hosts: one question in, one line of JSON out. Changes nothing.

`ironburst converge` sends this file over ssh to `python3 -`, with the question appended (program()). Standard library
only, Python 3.6 or newer, root. Every fact is one short string; equal strings mean "as it was". Contents of files and
outputs of commands are given as keyed digests (HMAC-SHA256 with the question's `salt`), so that an answer holds no
secret. A fact that can't be found out begins with "?": such an answer never proves anything.

The question: {"salt": hex, "settle": seconds to wait for units that are just starting,
  "files": {path: "content" | "exists" | "tree"}, "packages": [name], "services": {unit: ["enabled", "active"]},
  "users": [name],
  "groups": [name], "modules": [name], "sysctls": [name], "mounts": [path], "commands": [[argv]]}; all but the salt
  optional. The answer: {"file /etc/hosts": "file 0644 root:root 2c26b46b68ffc68f", "package slurmd": "24.11.5-4 hold",
  ...}.
"""

import fnmatch
import grp
import hashlib
import hmac
import json
import os
import pwd
import re
import stat
import subprocess
import sys  # noqa: F401 (program() writes its answer with it)
import time

MARK = "IRONBURST "
UNIT_FOLDERS = tuple(base + "/systemd/system" for base in ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"))
MOVING = ("activating", "deactivating", "reloading")
LIMIT_S = 20


class Probe:
    def __init__(self, salt):
        self.salt = bytes.fromhex(salt)

    def digest(self, content):
        return hmac.new(self.salt, content, hashlib.sha256).hexdigest()[:24]

    def content(self, path):
        made = hmac.new(self.salt, b"", hashlib.sha256)
        with open(path, "rb") as handle:
            for block in iter(lambda: handle.read(1 << 20), b""):
                made.update(block)
        return made.hexdigest()[:24]

    # ---- files
    def file(self, path, how):
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return "absent"
        kind = stat.S_IFMT(found.st_mode)
        if how == "exists":
            return "there"
        if kind == stat.S_IFLNK:
            return "link %s %s" % (owner(found), os.readlink(path))
        names = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFIFO: "fifo", stat.S_IFSOCK: "socket"}
        text = "%s %04o %s" % (names.get(kind, "device"), stat.S_IMODE(found.st_mode), owner(found))
        if kind == stat.S_IFREG:
            return "%s %s" % (text, self.content(path))
        if kind == stat.S_IFDIR and how == "tree":
            return "%s %s" % (text, self.tree(path))
        return text

    def tree(self, top):
        lines = []
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(files) + folders:
                path = os.path.join(folder, name)
                lines.append("%s %s" % (path, self.file(path, "content")))
        return self.digest("\n".join(lines).encode("utf-8", "surrogateescape"))

    # ---- packages
    def packages(self, names):
        if os.path.exists("/var/lib/dpkg/status"):
            return dpkg(names)
        return rpm(names)

    # ---- units
    def services(self, wanted, settle):
        units = sorted(wanted)
        end = time.monotonic() + settle
        while True:
            shown = show_units(units)
            if time.monotonic() >= end or not any(one.get("ActiveState") in MOVING for one in shown.values()):
                break
            time.sleep(0.1)
        facts = {}
        for unit in units:
            one, parts = shown.get(unit), []
            if one is None:
                facts[unit] = "? systemctl does not tell"
                continue
            if "enabled" in wanted[unit]:
                parts.append(one.get("UnitFileState") or one.get("LoadState", "?"))
            if "active" in wanted[unit]:
                parts.append(one.get("ActiveState", "?"))
            facts[unit] = " ".join(parts + self.unit_files(unit))
        return facts

    def unit_files(self, unit):
        """The unit's own file and its drop-ins, as they lie on the disk (systemd may not have read them yet)."""
        template = re.sub(r"@[^.]*\.", "@.", unit)
        seen, parts = set(), []
        for base in UNIT_FOLDERS:
            paths = []
            for name in sorted({unit, template}):
                paths.append(os.path.join(base, name))
                folder = os.path.join(base, name + ".d")
                if os.path.isdir(folder):
                    paths += [
                        os.path.join(folder, entry) for entry in sorted(os.listdir(folder)) if entry.endswith(".conf")
                    ]
            for path in paths:
                if not os.path.isfile(path) or os.path.realpath(path) in seen:
                    continue
                seen.add(os.path.realpath(path))
                parts.append("%s=%s" % (path, self.content(path)))
        return parts

    # ---- people
    def user(self, name):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            return "absent"
        member = sorted(group.gr_name for group in grp.getgrall() if name in group.gr_mem)
        shadow = ""
        if os.path.exists("/etc/shadow"):
            with open("/etc/shadow") as handle:
                lines = [line for line in handle if line.startswith(name + ":")]
            fields = lines[0].strip().split(":") if lines else []
            shadow = self.digest(":".join(fields[:2] + fields[7:8]).encode()) if fields else ""  # password and expiry
        fields = (entry.pw_uid, entry.pw_gid, entry.pw_dir, entry.pw_shell, entry.pw_gecos, ",".join(member), shadow)
        return " ".join(str(field) for field in fields)

    def command(self, argv):
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


def owner(found):
    try:
        user = pwd.getpwuid(found.st_uid).pw_name
    except KeyError:
        user = str(found.st_uid)
    try:
        group = grp.getgrgid(found.st_gid).gr_name
    except KeyError:
        group = str(found.st_gid)
    return "%s:%s" % (user, group)


def dpkg(names):
    """{name: "version" or "version hold"}, "absent" if it is not installed whole; read from dpkg's own file."""
    found = dict.fromkeys(names, "absent")
    with open("/var/lib/dpkg/status", encoding="utf-8", errors="replace") as handle:
        paragraphs = handle.read().split("\n\n")
    for paragraph in paragraphs:
        name = paragraph.partition("\n")[0][len("Package: ") :]  # dpkg writes this field first
        if name not in found:
            continue
        fields = dict(re.findall(r"^(Status|Version): (.+)$", paragraph, re.M))
        wanted, _, state = fields.get("Status", "? ? ?").split()
        if state == "installed":
            told = fields.get("Version", "?") + (" hold" if wanted == "hold" else "")
            found[name] = told if found[name] == "absent" else found[name] + ", " + told
    return found


def rpm(names):
    """The same from rpm; a name may be a spec with a version ("slurm-slurmd-24.11.*")."""
    rows = [
        line.split() for line in run(["rpm", "-qa", "--qf", "%{NAME} %{VERSION} %{RELEASE}.%{ARCH}\n"]).splitlines()
    ]
    locks = ""
    for path in ("/etc/dnf/plugins/versionlock.list", "/etc/yum/pluginconf.d/versionlock.list"):
        if os.path.exists(path):
            with open(path) as handle:
                locks += handle.read()
    found = {}
    for wanted in names:
        told = []
        for name, version, release in rows:
            full = "%s-%s-%s" % (name, version, release)
            if wanted == name or any(fnmatch.fnmatch(text, wanted) for text in ("%s-%s" % (name, version), full)):
                told.append("%s-%s%s" % (version, release, " hold" if name + "-" in locks else ""))
        found[wanted] = ", ".join(sorted(told)) or "absent"
    return found


def show_units(units):
    """{unit: {property: value}}"""
    properties = "Names,LoadState,UnitFileState,ActiveState"
    text = run(["systemctl", "show", "--no-pager", "--property=" + properties] + units)
    blocks = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in text.strip().split("\n\n")]
    return dict(zip(units, blocks)) if len(blocks) == len(units) else {}


def run(argv):
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT_S
    )
    return done.stdout.decode("utf-8", "replace")


def group_text(name):
    try:
        entry = grp.getgrnam(name)
    except KeyError:
        return "absent"
    return "%d %s" % (entry.gr_gid, ",".join(sorted(entry.gr_mem)))


def sysctl(name):
    path = "/proc/sys/" + name.replace(".", "/")
    try:
        with open(path) as handle:
            return " ".join(handle.read().split())
    except FileNotFoundError:
        return "absent"


def module(name):
    return "loaded" if os.path.isdir("/sys/module/" + name.replace("-", "_")) else "absent"


def mount(path):
    with open("/proc/self/mounts") as handle:
        rows = [line.split() for line in handle]
    found = [row for row in rows if row[1].replace("\\040", " ") == path]
    return "%s %s" % (found[-1][0], found[-1][2]) if found else "absent"


def kernel():
    with open("/proc/cmdline") as handle:
        return "%s %s" % (os.uname().release, " ".join(handle.read().split()))


def look(question):
    """The answer to a question: {fact: text}."""
    probe, facts = Probe(question["salt"]), {}

    def note(key, find, *arguments):
        try:
            facts[key] = find(*arguments)
        except Exception as error:  # whatever it is: an unknown fact, never a silent one
            facts[key] = "? %s: %s" % (type(error).__name__, error)

    def note_all(kind, names, find, *arguments):
        if not names:
            return
        try:
            facts.update(("%s %s" % (kind, name), text) for name, text in find(names, *arguments).items())
        except Exception as error:
            facts.update(("%s %s" % (kind, name), "? %s: %s" % (type(error).__name__, error)) for name in names)

    note("kernel", kernel)
    note_all("service", question.get("services", {}), probe.services, question.get("settle", 0))
    note_all("package", question.get("packages", []), probe.packages)
    for path, how in question.get("files", {}).items():
        note("file " + path, probe.file, path, how)
    for kind, find in (
        ("user", probe.user),
        ("group", group_text),
        ("module", module),
        ("sysctl", sysctl),
        ("mount", mount),
    ):
        for name in question.get(kind + "s", []):
            note("%s %s" % (kind, name), find, name)
    for argv in question.get("commands", []):
        note("command " + " ".join(argv), probe.command, argv)
    return facts


def program(question):
    """The text to send to `python3 -`: this file and its question."""
    with open(__file__) as handle:
        return "%s\nsys.stdout.write(MARK + json.dumps(look(json.loads(%r))) + '\\n')\n" % (
            handle.read(),
            json.dumps(question),
        )


def answer(output):
    """The facts in what the program printed (a login shell may print before it). Raises ValueError."""
    lines = [line for line in output.splitlines() if line.startswith(MARK)]
    if len(lines) != 1:
        raise ValueError("the probe gave %d answers instead of one" % len(lines))
    return json.loads(lines[0][len(MARK) :])
