#!/usr/bin/python3
"""Ansible module `files`: several files, folders and links of one purpose in one call on the host.

`copy` and `template` cost two calls a file even when nothing changes; here it is one for all. Same promises: check
mode, diff, atomic replacement, owner and mode.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: files
short_description: several files, folders and links in one call
description:
  - Makes each entry of I(files) as described. A file is replaced as a whole, atomically.
options:
  files:
    description: What to make; an entry with the state C(absent) is removed (a folder only if it is empty).
    type: list
    elements: dict
    required: true
    suboptions:
      path: {description: absolute path, type: path, required: true}
      content: {description: text of a file, type: str}
      target: {description: target of a link, type: str}
      state: {description: what it is, type: str, choices: [file, directory, link, absent], default: file}
      mode: {description: octal mode of a file (0644) or folder (0755), type: str}
      owner: {description: name of the owner, type: str, default: root}
      group: {description: name of the group, type: str, default: root}
      validate:
        description: a command that has to accept a file before it takes its place; C(%s) is the new one's path
        type: list
        elements: str
  guard:
    description:
      - A command that must succeed before the first change (not in check mode); its error output is the reason for
        stopping.
    type: list
    elements: str
author: ironburst
"""

EXAMPLES = r"""
- name: Settings
  files:
    files:
      - {path: /etc/app, state: directory}
      - {path: /etc/app/app.conf, content: "a = 1\n"}
"""

RETURN = r"""
changed_paths:
  description: paths that were (or would be) changed
  returned: always
  type: list
"""

import errno  # noqa: E402
import grp  # noqa: E402
import os  # noqa: E402
import pwd  # noqa: E402
import stat  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402

from ansible.module_utils.basic import AnsibleModule  # noqa: E402

MODES = {"file": 0o644, "directory": 0o755}


class Unusable(Exception):
    """An entry that can't be made; the text is one sentence."""


def kind_of(path):
    """`file`, `directory`, `link`, `absent` or `other`: what lies at `path`."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    for name, test in (("link", stat.S_ISLNK), ("file", stat.S_ISREG), ("directory", stat.S_ISDIR)):
        if test(mode):
            return name
    return "other"


def text_of(path):
    """The file's text for a comparison; None if there is none."""
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return None


def owner_ids(entry):
    """(uid, gid) of an entry's owner and group."""
    try:
        return pwd.getpwnam(entry["owner"]).pw_uid, grp.getgrnam(entry["group"]).gr_gid
    except KeyError:
        raise Unusable(
            f"{entry['path']}: there is no user {entry['owner']} or no group {entry['group']} on this host"
        ) from None


def apply(entry, check):
    """Make one entry. Returns (changed, before, after); the texts are for a diff."""
    path, state = entry["path"], entry["state"]
    there = kind_of(path)
    if state == "absent":
        return _remove(path, there, check)
    if state == "link":
        return _link(path, entry["target"], there, check)
    if there not in ("absent", state) and not (state == "file" and there == "link"):
        raise Unusable(f"{path} is a {there}, not a {state}: move it away, then run this again")
    mode = int(entry["mode"], 8) if entry["mode"] else MODES[state]
    before = text_of(path) if there == "file" else None
    new = there != state or (state == "file" and before != entry["content"])
    try:
        ids = owner_ids(entry)
    except Unusable:
        if not check:  # with check mode the package that makes the user may not be there yet
            raise
        return True, before, entry["content"]
    if new and not check:
        _write(entry, mode, ids) if state == "file" else os.makedirs(path, mode=mode, exist_ok=True)
    attributes = not (new and check) and _attributes(path, mode, ids, check)
    return new or attributes, before, entry["content"] if state == "file" else None


def _write(entry, mode, ids):
    path = entry["path"]
    handle, temporary = tempfile.mkstemp(prefix=".ironburst-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(entry["content"].encode())
            os.fchown(file.fileno(), *ids)
            os.fchmod(file.fileno(), mode)
        if entry["validate"]:
            _validate(path, [word.replace("%s", temporary) for word in entry["validate"]])
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _validate(path, command):
    done = run(command)
    if done.returncode:
        raise Unusable(f"{path} stays as it was: {command[0]} refuses the new one: {said(done)}")


def run(command):
    """The command, ended, with what it wrote."""
    pipe = subprocess.PIPE
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, universal_newlines=True)


def said(done):
    """Its words, in one line."""
    return " ".join((done.stderr or done.stdout).split())


def _attributes(path, mode, ids, check):
    """Owner and mode; True if they differed."""
    now = os.lstat(path)
    changed = False
    if (now.st_uid, now.st_gid) != ids:
        changed = True
        if not check:
            os.chown(path, *ids)
    if stat.S_IMODE(now.st_mode) != mode:
        changed = True
        if not check:
            os.chmod(path, mode)
    return changed


def _remove(path, there, check):
    if there == "absent":
        return False, None, None
    before = text_of(path) if there == "file" else None
    if not check:
        try:
            os.rmdir(path) if there == "directory" else os.unlink(path)
        except OSError as error:
            if error.errno == errno.ENOTEMPTY:
                raise Unusable(f"{path} is a folder with something in it: it is not removed") from None
            raise
    return True, before, ""


def _link(path, target, there, check):
    if there == "link" and os.readlink(path) == target:
        return False, None, None
    if there not in ("absent", "link"):
        raise Unusable(f"{path} is a {there}, not a link: move it away, then run this again")
    if not check:
        temporary = f"{path}.ironburst"
        os.symlink(target, temporary)
        os.replace(temporary, path)
    return True, None, None


def _ask(module):
    """End with the guard's words if it refuses, and something would change."""
    try:
        if not any(apply(entry, True)[0] for entry in module.params["files"]):
            return
    except Unusable as error:
        module.fail_json(msg=str(error), changed=False, changed_paths=[])
    done = run(module.params["guard"])
    if done.returncode:
        module.fail_json(msg=said(done), changed=False, changed_paths=[])


def main():
    """Make every entry of `files`."""
    options = {
        "path": {"type": "path", "required": True},
        "content": {"type": "str"},
        "target": {"type": "str"},
        "state": {"type": "str", "choices": ["file", "directory", "link", "absent"], "default": "file"},
        "mode": {"type": "str"},
        "owner": {"type": "str", "default": "root"},
        "group": {"type": "str", "default": "root"},
        "validate": {"type": "list", "elements": "str"},
    }
    files = {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": options,
        "required_if": [("state", "file", ["content"]), ("state", "link", ["target"])],
    }
    spec = {"files": files, "guard": {"type": "list", "elements": "str"}}
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    changed, diff = [], []
    if module.params["guard"] and not module.check_mode:
        _ask(module)
    for entry in module.params["files"]:
        path = entry["path"]
        try:
            new, before, after = apply(entry, module.check_mode)
        except (Unusable, OSError) as error:
            module.fail_json(msg=str(error), changed=bool(changed), changed_paths=changed)
        if new:
            changed.append(path)
            headers = {"before_header": path, "after_header": path}
            diff.append({**headers, "before": before or "", "after": after or ""})
    module.exit_json(changed=bool(changed), changed_paths=changed, diff=diff if module._diff else [])


if __name__ == "__main__":
    main()
