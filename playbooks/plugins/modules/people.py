#!/usr/bin/python3
"""Ansible module `people`: the declared users and groups of a host, with their ids, keys and home directories.

One call for all of them. It never changes the id of somebody who is there, never deletes anybody, and touches nobody
whom it didn't make or find with the declared id.
"""

from __future__ import annotations

DOCUMENTATION = r"""
module: people
short_description: users and groups with fixed ids
description:
  - Makes each group and user as declared. Whoever I(record) names and I(people) no longer does is locked, and keeps
    files, id and jobs. A name or an id that somebody else has is refused before anything is changed.
options:
  people:
    description: The users.
    type: list
    elements: dict
    required: true
    suboptions:
      name: {description: name, type: str, required: true}
      uid: {description: id, type: int, required: true}
      group: {description: name of the group, type: str, required: true}
      groups: {description: more of I(groups), type: list, elements: str, default: []}
      shell: {description: login shell, type: str, required: true}
      keys: {description: public ssh keys, type: list, elements: str, default: []}
  groups:
    description: The groups, name to gid. A user leaves those of them that aren't declared for the user.
    type: dict
    required: true
  homes:
    description: Folder of the home directories.
    type: path
    required: true
  make_homes:
    description: Whether home directories are made here, with mode 0700 and what lies in /etc/skel.
    type: bool
    default: true
  keys:
    description: Folder of the users' keys, a file each; sshd must be told of it. Empty means that none are written.
    type: str
    default: ""
  record:
    description: File with the names of those who were made.
    type: path
    default: /var/lib/ironburst/people.json
author: ironburst
"""

EXAMPLES = r"""
- name: Users of the cluster
  people:
    people: [{name: anna, uid: 5001, group: physics, shell: /bin/bash}]
    groups: {physics: 5000}
    homes: /home
"""

RETURN = r"""
did:
  description: what was (or would be) done, a sentence each
  returned: success
  type: list
locked:
  description: names of those who were declared once
  returned: success
  type: list
"""

import json  # noqa: E402
import os  # noqa: E402
import shutil  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402

from ansible.module_utils.basic import AnsibleModule  # noqa: E402

ROOT = os.environ.get("IRONBURST_PEOPLE_ROOT", "/")  # another root in tests
EXPIRED = "1"  # day of an account that has ended: neither a key nor a password opens it
HEADER = "# Written by Ansible (role users): changes made here are lost\n"


class Refused(Exception):
    """Why nothing is done; one sentence."""


def at(path):
    """A path under ROOT."""
    return os.path.join(ROOT, path.lstrip("/"))


def table(name):
    """{name: fields} of one of /etc's tables: of this host's own, not of a directory."""
    with open(at("/etc/" + name)) as file:
        rows = [line.rstrip("\n").split(":") for line in file if ":" in line and line[0] not in "#+-"]
    return {row[0]: row for row in rows}


def conflicts(people, groups, passwd, group):
    """What somebody else has, a sentence each."""
    found = []
    owners = {row[2]: name for name, row in sorted(passwd.items(), reverse=True)}
    holders = {row[2]: name for name, row in sorted(group.items(), reverse=True)}
    for name, gid in sorted(groups.items()):
        if name in group and group[name][2] != str(gid):
            found.append("group {} has gid {} here, declared is {}".format(name, group[name][2], gid))
        elif name not in group and str(gid) in holders:
            found.append("gid {} of group {} is that of group {} here".format(gid, name, holders[str(gid)]))
    for person in people:
        name, uid = person["name"], str(person["uid"])
        if name in passwd and passwd[name][2] != uid:
            found.append("user {} has uid {} here, declared is {}".format(name, passwd[name][2], uid))
        elif name not in passwd and uid in owners:
            found.append("uid {} of user {} is that of user {} here".format(uid, name, owners[uid]))
    return found


def plan(people, groups, homes, made, passwd, group, shadow):
    """[(what, command)] that makes users and groups as declared. `made`: names of those who were declared before."""
    steps = []
    for name, gid in sorted(groups.items()):
        if name not in group:
            steps.append(("group {} is made".format(name), ["groupadd", "--gid", str(gid), name]))
    for person in people:
        steps += of_person(person, groups, homes, passwd, group, shadow)
    wanted = {person["name"] for person in people}
    for name in sorted(set(made) - wanted):
        if name in passwd and expiry(shadow, name) != EXPIRED:
            steps.append(("user {} is locked".format(name), ["usermod", "--lock", "--expiredate", EXPIRED, name]))
    return steps


def of_person(person, groups, homes, passwd, group, shadow):
    """The same of one user."""
    name, home = person["name"], "{}/{}".format(homes.rstrip("/"), person["name"])
    gid = str(groups[person["group"]])
    member = {each for each, row in group.items() if name in row[3].split(",")}
    wanted = sorted((member - set(groups)) | set(person["groups"]))
    if name not in passwd:
        command = ["useradd", "--uid", str(person["uid"]), "--gid", gid, "--no-create-home", "--home-dir", home]
        command += ["--shell", person["shell"], "--no-log-init"] + (["--groups", ",".join(wanted)] if wanted else [])
        return [("user {} is made".format(name), command + [name])]
    row, options = passwd[name], []
    for there, value, option in (
        (row[3], gid, "--gid"),
        (row[5], home, "--home"),
        (row[6], person["shell"], "--shell"),
    ):
        if there != value:
            options += [option, value]
    if sorted(member) != wanted:
        options += ["--groups", ",".join(wanted)]
    if expiry(shadow, name) == EXPIRED:
        options += ["--expiredate", ""]
    return [("user {} is changed".format(name), ["usermod"] + options + [name])] if options else []


def expiry(shadow, name):
    """The day on which an account ends, as /etc/shadow has it; empty: never."""
    return shadow[name][7] if name in shadow and len(shadow[name]) > 7 else ""


def run(command):
    """Raises Refused with what the command said."""
    prefix = [] if ROOT == "/" else ["--prefix", ROOT]
    pipe = subprocess.PIPE
    command = command[:1] + prefix + command[1:]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, universal_newlines=True)
    if done.returncode:
        raise Refused("{}: {}".format(" ".join(command), " ".join((done.stderr or done.stdout).split())))


def home_due(person, homes):
    """Whether the home directory is to be made. Raises Refused where it is somebody else's."""
    path = at("{}/{}".format(homes, person["name"]))
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise Refused("{} can't be looked at: {}".format(path, error.strerror)) from None
    if there.st_uid != person["uid"]:
        raise Refused(
            "{} is owned by uid {}, and user {} has {}: move it away or give it to the user, and run this again".format(
                path, there.st_uid, person["name"], person["uid"]
            )
        )
    return False


def make_home(person, gid, homes):
    """With mode 0700 from its first moment; what lies in /etc/skel comes along. Complete when it has its name."""
    path, new = at("{}/{}".format(homes, person["name"])), None
    try:
        os.makedirs(at(homes), exist_ok=True)
        new = tempfile.mkdtemp(prefix=".{}.".format(person["name"]), dir=at(homes))
        skeleton = at("/etc/skel")
        for name in os.listdir(skeleton) if os.path.isdir(skeleton) else []:
            copy = shutil.copytree if os.path.isdir(os.path.join(skeleton, name)) else shutil.copy2
            copy(os.path.join(skeleton, name), os.path.join(new, name))
        for folder, _, names in os.walk(new):
            for name in [os.path.join(folder, each) for each in names] + [folder]:
                os.chown(name, person["uid"], gid)
        os.rename(new, path)
    except OSError as error:
        if new:
            shutil.rmtree(new, ignore_errors=True)
        raise Refused(
            "{} can't be made: {}; where the file server keeps root out, make it there".format(
                path, error.strerror or error
            )
        ) from None


def write(path, text):
    """Replace a file as a whole."""
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    with open(path + ".new", "w") as file:
        file.write(text)
    os.chmod(path + ".new", 0o644)
    os.rename(path + ".new", path)


def read(path):
    """The text of a file; empty: there is none."""
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return ""


def keys_due(people, folder):
    """{path: text} of the files with keys that differ; None: the file goes."""
    wanted = {person["name"]: HEADER + "".join(key + "\n" for key in person["keys"]) for person in people}
    wanted = {at("{}/{}".format(folder, name)): text for name, text in wanted.items()}
    there = [os.path.join(at(folder), name) for name in (os.listdir(at(folder)) if os.path.isdir(at(folder)) else [])]
    due = {path: text for path, text in wanted.items() if read(path) != text}
    due.update({path: None for path in there if path not in wanted and read(path).startswith(HEADER)})
    return due


def converge(given, check):
    """(what was done, names of those who are locked). Raises Refused."""
    people, groups, homes = given["people"], given["groups"], given["homes"]
    record = at(given["record"])
    made = json.loads(read(record) or "[]")
    passwd, group, shadow = table("passwd"), table("group"), table("shadow")
    others = conflicts(people, groups, passwd, group)
    if others:
        raise Refused(
            "{}: nothing was changed, for files belong to numbers; rename one of them, or declare the id that is "
            "here".format("; ".join(others))
        )
    due = [person for person in people if given["make_homes"] and home_due(person, homes)]
    steps = plan(people, groups, homes, made, passwd, group, shadow)
    keys = keys_due(people, given["keys"]) if given["keys"] else {}
    names = sorted(set(made) | {person["name"] for person in people})
    did = [what for what, _ in steps] + ["home of {} is made".format(person["name"]) for person in due]
    did += ["{} is {}".format(path, "removed" if text is None else "written") for path, text in sorted(keys.items())]
    if not check:
        if names != made:  # before anybody is made: whoever is here by us is known, whatever stops this
            write(record, json.dumps(names) + "\n")
        for _, command in steps:
            run(command)
        for person in due:
            make_home(person, groups[person["group"]], homes)
        for path, text in keys.items():
            if text is None:
                os.unlink(path)
            else:
                write(path, text)
    return did, sorted(set(names) - {person["name"] for person in people})


def main():
    """As Ansible calls it."""
    person = {
        "name": {"type": "str", "required": True},
        "uid": {"type": "int", "required": True},
        "group": {"type": "str", "required": True},
        "groups": {"type": "list", "elements": "str", "default": []},
        "shell": {"type": "str", "required": True},
        "keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
    }
    module = AnsibleModule(
        argument_spec={
            "people": {"type": "list", "elements": "dict", "required": True, "options": person},
            "groups": {"type": "dict", "required": True},
            "homes": {"type": "path", "required": True},
            "make_homes": {"type": "bool", "default": True},
            "keys": {"type": "str", "default": "", "no_log": False},
            "record": {"type": "path", "default": "/var/lib/ironburst/people.json"},
        },
        supports_check_mode=True,
    )
    try:
        did, locked = converge(module.params, module.check_mode)
    except Refused as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=bool(did), did=did, locked=locked)


if __name__ == "__main__":
    main()
