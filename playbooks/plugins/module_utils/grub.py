"""GRUB's menu as grub-mkconfig writes it: which kernel boots next, and by what name another one is the default."""

from __future__ import annotations

import re

TITLE = r"^\s*(menuentry|submenu)\s+(?:'([^']*)'|\"([^\"]*)\")"
HEAD = re.compile(TITLE + r".*?(?:menuentry_id_option\s+'([^']*)')?[^']*\{\s*$")
KERNEL = re.compile(r"^\s*linux\S*\s+\S*/?vmlinuz-(\S+)")


class Entry:
    """One line of the menu. `kernel` is None for a submenu and for what boots no Linux."""

    def __init__(self, title, name):
        self.title, self.name, self.kernel, self.below = title, name, None, []


def menu(text):
    """The entries of a grub.cfg."""
    top = Entry("", "")
    open_ = [top]
    for line in text.splitlines():
        head, kernel = HEAD.match(line), KERNEL.match(line)
        if head:
            entry = Entry(head.group(2) or head.group(3) or "", head.group(4) or "")
            open_[-1].below.append(entry)
            open_.append(entry)
        elif line.rstrip().endswith("{"):  # a function
            open_.append(Entry("", ""))
        elif line.strip() == "}" and len(open_) > 1:
            open_.pop()
        elif kernel and open_[-1] is not top and open_[-1].kernel is None:
            open_[-1].kernel = kernel.group(1)
    return top.below


def entries(text):
    """{kernel: name of its entry as GRUB_DEFAULT takes it} of a grub.cfg, without those for recovery."""
    found = {}
    for path in _paths(menu(text), ()):
        entry = path[-1]
        if entry.kernel and not re.search(r"recovery|rescue", entry.title + entry.name):
            name = ">".join(each.name or each.title for each in path)
            if entry.kernel not in found or len(path) > 1:  # the entry of a submenu names its kernel
                found[entry.kernel] = name
    return found


def _paths(below, path):
    for entry in below:
        yield (*path, entry)
        yield from _paths(entry.below, (*path, entry))


def default(text, environment=""):
    """The kernel that a grub.cfg boots next; None if that can't be said. `environment`: the text of grubenv."""
    kept = dict(line.split("=", 1) for line in environment.splitlines() if "=" in line and not line.startswith("#"))
    named = [name for name in re.findall(r'^\s*set default="([^"]*)"', text, re.MULTILINE) if "next_entry" not in name]
    wanted = kept.get("next_entry") or (named[-1] if named else "0")
    if wanted == "${saved_entry}":
        wanted = kept.get("saved_entry") or "0"
    below, entry = menu(text), None
    for part in wanted.split(">"):
        entry = next(
            (
                each
                for number, each in enumerate(below)
                if part in (each.name, each.title) or (part == str(number) and part.isdigit())
            ),
            None,
        )
        if entry is None:
            return None
        below = entry.below
    while entry.below and entry.kernel is None:  # a submenu boots its first entry
        entry = entry.below[0]
    return entry.kernel
