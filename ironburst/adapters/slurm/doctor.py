"""What `ironburst doctor --slurm` asks on the head: commands that only show, by a prefix such as `ssh head`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ironburst.adapters.slurm.scheduler import Slurm
from ironburst.doctor.checks import Unasked
from ironburst.doctor.slurm import Held
from ironburst.ports import SchedulerError

HELD = (
    'for path in "$@"; do [ -e "$path" ] || continue; sum=; '
    '[ -d "$path" ] || sum=$(sha256sum < "$path" | cut -d" " -f1); '
    'printf "%s %s %s\\n" "$path" "$(stat -L -c "%U %a" "$path")" "$sum"; done'
)


class Head:
    """A SlurmHead (ironburst.doctor.slurm)."""

    def __init__(self, slurm: Slurm):
        self._slurm = slurm

    def config(self) -> Mapping[str, str]:
        """`scontrol show config`."""
        lines = (line.partition("=") for line in self._call("scontrol", "show", "config").splitlines())
        return {key.strip(): "" if value.strip() == "(null)" else value.strip() for key, sign, value in lines if sign}

    def nodes(self) -> Mapping[str, Mapping[str, str]]:
        """`scontrol show node`."""
        found = {}
        for line in self._call("scontrol", "--oneliner", "show", "node").splitlines():
            fields = dict(re.findall(r"(\w+)=(\S*)", line))
            if "NodeName" in fields:
                found[fields["NodeName"]] = fields
        return found

    def admin_level(self, user: str) -> str:
        """By sacctmgr."""
        return self._call("sacctmgr", "-n", "-P", "show", "user", user, "format=AdminLevel").strip()

    def held(self, paths: Sequence[str]) -> Mapping[str, Held]:
        """By stat and sha256sum."""
        lines = (line.split(" ") for line in self._call("sh", "-c", HELD, "sh", *paths).splitlines())
        return {path: Held(owner, mode, *sum) for path, owner, mode, *sum in lines}

    def addresses(self, names: Sequence[str]) -> Mapping[str, str]:
        """Only /etc/hosts: a resolver would keep this waiting, too."""
        found: dict[str, str] = {}
        for line in self._call("cat", "/etc/hosts").splitlines():
            address, *its = line.partition("#")[0].split() or [""]
            found |= dict.fromkeys(set(its) & set(names), address)
        return found

    def _call(self, *command: str) -> str:
        try:
            return self._slurm.show(*command)
        except SchedulerError as error:
            todo = "run it on the head, or give --slurm-prefix 'ssh HEAD', as somebody who may ask Slurm"
            raise Unasked(str(error), todo) from None
