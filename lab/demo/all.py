"""The demo in all clouds at once: one stack, one controller, and the daemons of the three side by side. The first one
sells nothing, the second one node, the third as many as are wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from lab import names
from lab.demo.aws import KEY_PAIR, MUNGE_SECRET, Aws
from lab.demo.azure import Azure
from lab.demo.cloud import Commands
from lab.demo.google import Google


class _Aws(Aws):
    capacity: ClassVar = dict.fromkeys(Aws.capacity, 0)


class _Azure(Azure):
    capacity: ClassVar = dict.fromkeys(Azure.capacity, 0) | {("eastus-2", "spot"): 1}
    metadata_port = 8002


class _Google(Google):
    metadata_port = 8003


# All three have their metadata service at one address: who asks is sent to that of his network, as the stack has it
NETWORKS = {"10.90.64.0/18": _Azure.metadata_port, "10.90.128.0/18": _Google.metadata_port}
_TO = f"ip daddr {names.METADATA_ADDRESS} tcp dport 80 dnat to {names.METADATA_ADDRESS}"
METADATA = "table ip metadata {{ chain prerouting {{ type nat hook prerouting priority dstnat; {} }}; }}".format(
    " ".join(f"ip saddr {network} {_TO}:{port};" for network, port in NETWORKS.items())
)


class All:
    """Each cloud's part is its own room's."""

    name, stack = "three clouds", "lab-all"

    def __init__(self) -> None:
        self.rooms = (_Aws((MUNGE_SECRET, self.stack, KEY_PAIR)), _Azure(), _Google())
        self.stand_in = ", ".join(room.stand_in for room in self.rooms)

    def environment(self, run: Path) -> dict[str, str]:
        """Of every operator."""
        return {name: value for room in self.rooms for name, value in room.environment(run).items()}

    def start(self, inside: Commands) -> str:
        """Each, with what its operator does; the munge key is in the store of each."""
        inside.run(["nft", METADATA])
        return "; ".join(room.start(inside) for room in self.rooms)

    def sign_in(self, inside: Commands, outputs: Mapping[str, str]) -> None:
        """In each."""
        for room in self.rooms:
            room.sign_in(inside, outputs)

    def on_head(self, inside: Commands) -> dict[str, tuple[str, int]]:
        """Of each."""
        return {path: file for room in self.rooms for path, file in room.on_head(inside).items()}

    def settings(self, inside: Commands) -> dict[str, str]:
        """Of each."""
        return {name: value for room in self.rooms for name, value in room.settings(inside).items()}

    def libraries(self, folder: Path, root: Path) -> str:
        """Of each."""
        return ":".join(filter(None, [room.libraries(folder, root) for room in self.rooms]))

    def take_away(self, inside: Commands) -> None:
        """In each."""
        for room in self.rooms:
            room.take_away(inside)


ALL = All()
