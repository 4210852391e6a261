"""The dead man's switch of a rented node: the decisions of the program that runs there, on the fakes' clock."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = Path(__file__).resolve().parents[2] / "playbooks/roles/cloud_node/files/ironburst-dead-man.py"
LOOK_S = 60.0


def _program() -> Any:
    _module("ironburst_cloud", FILE.parent / "aws/ironburst_cloud.py")
    return _module("ironburst_dead_man", FILE)


def _module(name: str, file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec and spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


program = _program()


@dataclass
class Switch:
    """One node's. What it knows is what the program keeps between two looks."""

    settings: dict[str, Any]
    known: dict[str, Any] | None = None
    looked_s: float = field(default=-LOOK_S)

    def ends(self, now_s: float, slurm: Any) -> bool:
        """Look, if it is time to; True: it powers off."""
        if now_s - self.looked_s < LOOK_S:
            return False
        self.looked_s = now_s
        node = self.settings["node"]
        shown = None if slurm.down else slurm.show(node)
        self.known = program.listen(self.known, now_s, shown)
        busy = program.says_busy(shown) or slurm.steps(node)
        return bool(program.verdict(self.known, now_s, busy, self.settings))


def close(slurm: Any, node: str) -> None:
    """What the program asks of Slurm before: no job is to start there any more."""
    if not slurm.down:
        slurm.nodes[node].states |= {"DRAIN"}
        slurm.nodes[node].reason, slurm.nodes[node].reason_by = "ironburst: it ends itself", "root"


def switch_of(user_data: dict[str, Any], node: str) -> Switch | None:
    """As ironburst-join sets it up; None: the launch declares none."""
    if not user_data.get("dead_man_s"):
        return None
    wanted = {key: user_data[key] for key in ("dead_man_s", "hard_limit_s")}
    return Switch({"node": node, **wanted})
