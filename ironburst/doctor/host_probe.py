"""What one host sees of its site: names, clock, users, file systems, keys, ways to others. Changes nothing.

`ironburst doctor` sends this file over ssh to `python3 -`, with the question appended (sent_program.py). So it imports
nothing but the standard library. Python 3.9 or newer, root. The munge key is given as a keyed digest (HMAC-SHA256 with
the question's `salt`): an answer carries no secret. What may hang (a resolver, a file system whose server is gone) is
asked in a process of its own, with a limit.

The question, all but the salt optional: {"salt": hex, "names": {host: address}, "users": [name], "folders": [path that
is mounted], "munge": path, "connect": [[address, port]], "backups": {timer: [pattern of its files, pattern of what it
copies, or empty]}, "state": [folder that is mounted, file], "disks": [path], "commands": {what: argv}}.
The answer: {"clock": seconds since 1970, "synchronised": bool or null, "names": {host: [address]}, "reverse":
{address: [name]}, "users": {name: [uid, gid]}, "folders": {path: {"source", "kind", "writable"}}, "munge": {"digest",
"mode", "owner"}, "host_keys": [SHA-256], "connect": {"address:port": {"error", "mss"}}, "listens": [[address, port]],
"disks": {path: [free bytes, bytes]}, "backups": {timer: seconds since 1970 of the newest}, "state": {"source", "kind",
"writable", "file": its inode, size and time}, "commands": {what: {"status", "output"}}}. What isn't there is left out,
or null.
"""

import base64
import hashlib
import hmac
import json  # noqa: F401 (likewise)
import os
import pwd
import socket
import struct
import subprocess
import sys  # noqa: F401 (sent_program.py writes the answer with it)
import time
from glob import glob
from typing import Any, Dict, List, Mapping, Optional, Tuple

MARK = "IRONBURST-DOCTOR "
LIMIT_S = 5.0


def ask(*argv: str, limit_s: float = LIMIT_S) -> Tuple[Optional[int], str]:
    """A command's exit status and output; None: no answer in time, or no such command."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=limit_s
        )
    except (OSError, subprocess.TimeoutExpired):
        return None, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")


def resolved(name: str) -> Optional[List[str]]:
    """The IPv4 addresses of a name; None: the resolver doesn't answer."""
    status, text = ask("getent", "ahostsv4", name)
    return None if status is None else sorted({line.split()[0] for line in text.splitlines() if line.split()})


def named(address: str) -> Optional[List[str]]:
    """The names of an address; None: the resolver doesn't answer."""
    status, text = ask("getent", "hosts", address)
    return None if status is None else [word for line in text.splitlines() for word in line.split()[1:]]


def user(name: str) -> Optional[List[int]]:
    """uid and gid; None: nobody of that name, or the directory doesn't answer."""
    fields = ask("getent", "passwd", name)[1].strip().split(":")
    return [int(fields[2]), int(fields[3])] if len(fields) > 3 else None


def folder(path: str) -> Optional[Dict[str, Any]]:
    """What is mounted there; None: nothing. `writable`: null where it doesn't answer."""
    with open("/proc/self/mounts") as handle:
        rows = [line.split() for line in handle]
    mounted = [row for row in rows if row[1].replace("\\040", " ") == path]
    if not mounted:
        return None
    source, _, kind = mounted[-1][:3]
    # root may be nobody there (root_squash), so the mount's own word counts: `test -w` answers for it with a limit
    alive = ask("stat", "-f", path)[0] == 0
    return {"source": source, "kind": kind, "writable": "rw" in mounted[-1][3].split(",") if alive else None}


def munge(path: str, salt: str) -> Optional[Dict[str, str]]:
    """Digest, mode and owner of munge's key; None: there is none."""
    try:
        with open(path, "rb") as handle:
            content = handle.read(1 << 16)
        status = os.stat(path)
    except OSError:
        return None
    try:
        owner = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        owner = str(status.st_uid)
    digest = hmac.new(bytes.fromhex(salt), content, hashlib.sha256).hexdigest()
    return {"digest": digest, "mode": "%o" % (status.st_mode & 0o7777), "owner": owner}


def host_keys() -> List[str]:
    """SHA-256 of each public host key of sshd."""
    found = []
    for path in sorted(glob("/etc/ssh/ssh_host_*_key.pub")):
        with open(path) as handle:
            words = handle.read().split()
        if len(words) > 1:
            found.append(hashlib.sha256(base64.b64decode(words[1])).hexdigest())
    return found


def connect(address: str, port: int) -> Dict[str, Any]:
    """A TCP connection, closed at once. `mss`: bytes of data that a packet of it may carry."""
    try:
        with socket.create_connection((address, port), LIMIT_S) as link:
            return {"mss": link.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)}
    except socket.timeout:
        return {"error": "no answer in %d s" % LIMIT_S}
    except OSError as error:
        return {"error": error.strerror or str(error)}


def listens() -> List[List[Any]]:
    """[address, port] of every TCP socket that listens."""
    found = []
    for path, family in (("/proc/net/tcp", socket.AF_INET), ("/proc/net/tcp6", socket.AF_INET6)):
        try:
            with open(path) as handle:
                rows = [line.split() for line in handle.readlines()[1:]]
        except OSError:
            continue
        for row in rows:
            address, _, port = row[1].partition(":")
            if row[3] == "0A":  # TCP_LISTEN
                words = struct.pack(
                    "=%dI" % (len(address) // 8), *(int(address[n : n + 8], 16) for n in range(0, len(address), 8))
                )
                found.append([socket.inet_ntop(family, words), int(port, 16)])
    return found


def disk(path: str) -> List[int]:
    """Bytes that are free, and all."""
    there = os.statvfs(path)
    return [there.f_bavail * there.f_frsize, there.f_blocks * there.f_frsize]


def backups(asked: Mapping[str, List[str]]) -> Dict[str, Optional[float]]:
    """When the newest of each was made; None: there is none. Without what there is nothing to copy of."""
    found = {}
    for timer, (pattern, source) in asked.items():
        if not source or glob(source):
            found[timer] = max((os.stat(each).st_mtime for each in glob(pattern)), default=None)
    return found


def state(path: str, file: str) -> Dict[str, Any]:
    """What two heads share: how it is mounted here, and which file this one is, as everybody sees it."""
    status, text = ask("stat", "-c", "%i %s %Y", file)
    return {**(folder(path) or {"kind": None}), "file": text.strip() if status == 0 else None}


def synchronised() -> Optional[bool]:
    """Whether a time server sets the clock; None: systemd doesn't say."""
    text = ask("timedatectl", "show", "--property=NTPSynchronized", "--value")[1].strip()
    return {"yes": True, "no": False}.get(text)


def gather(question: Mapping[str, Any]) -> Dict[str, Any]:
    """The answer to a question."""
    names = question.get("names", {})
    ways = question.get("connect", [])
    keys = question.get("munge")
    shared = question.get("state")
    commands = question.get("commands", {})
    said = {what: ask(*argv, limit_s=20.0) for what, argv in commands.items()}
    return {
        "names": {name: resolved(name) for name in names},
        "reverse": {address: named(address) for address in names.values()},
        "users": {name: user(name) for name in question.get("users", [])},
        "folders": {path: folder(path) for path in question.get("folders", [])},
        "munge": munge(keys, question["salt"]) if keys else None,
        "host_keys": host_keys(),
        "connect": {"%s:%d" % (address, port): connect(address, port) for address, port in ways},
        "listens": listens(),
        "disks": {path: disk(path) for path in question.get("disks", [])},
        "backups": backups(question.get("backups", {})),
        "state": state(*shared) if shared else None,
        "commands": {what: {"status": status, "output": text[:4000]} for what, (status, text) in said.items()},
        "synchronised": synchronised(),
        "clock": time.time(),  # last: whoever asks knows when the answer came
    }
