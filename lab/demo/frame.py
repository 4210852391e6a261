"""The frame of a demo: its steps are told, the lab is down at the end whatever happened, and the report stays. A lab
that is to be kept stays up if its story came to the end.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.demo import figures, kept, summary
from lab.demo.history import History
from lab.demo.steps import Steps
from lab.hosts.box import KEPT, Box
from lab.system import LabError

Tell = Callable[[Steps, summary.Summary], History]


@dataclass(frozen=True)
class Stage:
    """Where a demo plays. `end` takes it down; `caches` are folders that stay; `keep`: the lab stays up, too, unless a
    step failed.
    """

    box: Box
    end: Callable[[], None]
    caches: Sequence[Path]
    title: str
    keep: bool = False


def play(stage: Stage, result: summary.Summary, tell: Tell) -> int:
    """Tell the story, and write its report. The exit code of a demo."""
    print(f"engine: {result.engine}")
    steps, folder = Steps(), stage.box.dir
    usage, code = figures.Usage(folder, list(stage.caches)), 1
    try:
        result.history = tell(steps, result)
        code = 0
        if not result.good():
            kept.keep_logs(folder)
    except LabError as error:
        print(f"demo: {error}", file=sys.stderr)
        kept.keep_logs(folder)
    except Exception:
        kept.keep_logs(folder)
        raise
    except KeyboardInterrupt:
        print("demo: stopped by Ctrl-C; ending the lab", file=sys.stderr)
        code = 130
    finally:
        if not (stage.keep and code == 0):
            stage.end()
    if result.leftovers is not None:
        result.leftovers |= stage.box.leftovers()
    result.seconds = steps.seconds
    result.figures |= usage.stop()
    if code == 0:
        report = kept.write(folder / KEPT, result, stage.title)
        print(summary.text(result, report / "index.html"))
        code = 0 if result.good() else 1
    return code
