"""Draws the pictures of the README: the page, the report and a simulation, as the program makes them of sites that the
tests play. `make pictures`, with Chromium on PATH; the simulation is its own SVG.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import subprocess
import tempfile
from pathlib import Path
from unittest import mock

from ironburst import cli
from ironburst.adapters.slurm.accounting import COLUMNS
from tests.fakes.operated import Operated
from tests.packaging.test_first_hour import history

ROOT = Path(__file__).parents[1]
TO = ROOT / "docs/pictures"
OWNED = {
    "kind": "bare_metal", "role": "gpu", "address": "", "partition": "home", "fabric": "none", "fabric_links": 0,
    "gpu": {"model": "H100 SXM5 80GB", "count": 8}, "slurm": None, "roles": [], "usd_per_gpu_hour": 2.1,
}  # fmt: skip


def ironburst(*argv: str) -> str:
    """What the verb prints; raises if it fails."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert cli.main(list(argv)) == 0, argv
    return printed.getvalue()


def shoot(page: Path, name: str, width: int, height: int) -> None:
    """The upper part of a page, as a browser shows it."""
    with tempfile.TemporaryDirectory() as profile:
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--user-data-dir={profile}"]
        target = [f"--window-size={width},{height}", f"--screenshot={TO / name}", page.as_uri()]
        subprocess.run(["chromium", *options, *target], check=True, capture_output=True, timeout=120)


def accounting(site: Operated) -> str:
    """Jobs of the site as sacct prints them."""
    lines = ["|".join(COLUMNS)]
    for fake in site.slurm.jobs.values():
        if fake.started and not fake.job.restarts:
            (begin, nodes), job = fake.started[-1], fake.job
            end = min(begin + fake.runs_s, site.clock.now())
            state = "COMPLETED" if fake.done else "RUNNING"
            tres = f"gres/gpu={job.nodes * job.each.gpus},node={job.nodes}"
            times = [f"{at:.0f}" for at in (job.submit_s, begin, end, end - begin)]
            lines.append("|".join([str(job.id)] * 2 + [*times, tres, job.user, job.account, ",".join(nodes), state]))
    return "\n".join(lines) + "\n"


def draw(folder: Path) -> None:
    """All of them, by files below `folder`."""
    site = Operated(folder)
    document = json.loads(site.document_path.read_text())
    document["hosts"] = [OWNED | {"name": name} for name in site.slurm.nodes if name.startswith("dgx")]
    document["burst"]["wait_target"] = {"mean_h": 0.5}
    site.document_path.write_text(json.dumps(document))
    files = ["--document", str(site.document_path), "--ledger", str(folder / "ledger.sqlite")]
    (folder / "sacct.txt").write_text(accounting(site))
    page, report = folder / "page.html", folder / "report.html"
    with mock.patch("time.time", site.clock.now):
        ironburst("serve", *files, "--out", str(page))
        days = ["--from", "2026-11-21", "--jobs", str(folder / "sacct.txt")]
        report.write_text(ironburst("report", *files, *days, "--html"))
    page.write_text(page.read_text().replace(str(folder), "/var/lib/ironburst"))
    shoot(page, "page.png", 1200, 850)
    shoot(report, "report.png", 860, 430)
    (folder / "jobs.txt").write_text("\n".join(history(420)) + "\n")
    stack = str(ROOT / "stacks/Pulumi.prod.yaml")
    ironburst("simulate", str(folder / "jobs.txt"), "--config", stack, "--bound-seconds", "1", "--out", str(folder))
    shutil.copy(folder / "simulation.svg", TO)


if __name__ == "__main__":
    TO.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        draw(Path(folder))
