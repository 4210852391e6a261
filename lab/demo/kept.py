"""What stays of a demo: its report, the logs of one that failed, and a lab that is kept."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from lab.demo import report, summary
from lab.demo.cloud import control
from lab.demo.inside import Inside
from lab.hosts.box import Box
from lab.system import LabError

MARK = "kept.json"
NEXT = """
The lab is kept: its hosts, its cloud and its controller run until you end it. docs/tutorial/play.md plays with it:
  {name}ironburst lab status                                what runs
  {name}ironburst lab submit                                a job of all GPUs of a node
  {name}ironburst lab shell head ironburst status           any command on a host; none: a shell there
  {name}ironburst lab fault                                 what can go wrong; `ironburst lab price`: what renting costs
  make clean-lab{last}                                ends all of it"""


def write(folder: Path, result: summary.Summary, title: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(summary.as_json(result), indent=1) + "\n")
    (folder / "index.html").write_text(report.page(result.history, title))
    return folder


def keep_logs(lab: Path) -> None:
    """The end of each log, before the lab goes away."""
    folder = lab / "report" / "log"
    folder.mkdir(parents=True, exist_ok=True)
    for log in [*lab.glob("log/*.log"), *lab.glob("kubernetes/log/*.log"), *lab.glob("instances/*.console")]:
        (folder / log.name).write_bytes(log.read_bytes()[-200_000:])
    print(f"demo: the logs are in {folder}", file=sys.stderr)


def refuse_second(box: Box) -> None:
    """LabError if the lab is up: a second demo would end what runs."""
    if is_kept(box):
        raise LabError(
            f"lab {box.prefix!r} is kept from an earlier demo: play on (`ironburst lab status`), end it with "
            f"`make clean-lab{_named(box.prefix)}`, or use another name: `make demo LAB_PREFIX=second`"
        )
    if box.is_up():
        raise LabError(
            f"lab {box.prefix!r} is up already: let it end, end it with `make clean-lab{_named(box.prefix)}`, "
            "or use another name: `make demo LAB_PREFIX=second`"
        )


def is_kept(box: Box) -> bool:
    """True for a lab that is up, and that a demo left so."""
    return box.is_up() and (box.dir / "run" / MARK).exists()


def keep(inside: Inside, engine: str) -> None:
    """The cloud sells everything again, and the lab is marked as one that is kept."""
    rows: Any = control(inside, "GET", "/lab/capacity")
    for row in rows:
        control(inside, "POST", "/lab/capacity", **(row | {"count": None}))
    (inside.box.dir / "run" / MARK).write_text(json.dumps({"engine": engine}) + "\n")


def engine_of(box: Box) -> str:
    """The engine that a kept lab was declared with, for people. LabError for a lab that isn't kept."""
    try:
        return str(json.loads((box.dir / "run" / MARK).read_text())["engine"])
    except FileNotFoundError:
        raise LabError(f"lab {box.prefix!r} was not kept by a demo: `make demo KEEP=1` makes one that is") from None


def _named(prefix: str) -> str:
    return "" if prefix == "lab" else f" LAB_PREFIX={prefix}"


def next_steps(prefix: str) -> str:
    """What a person can do with a lab that is kept."""
    return NEXT.format(name="" if prefix == "lab" else f"LAB_PREFIX={prefix} ", last=_named(prefix))
