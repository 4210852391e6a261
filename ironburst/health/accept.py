"""The accept level (minutes) and burn-in (hours): DCGM, NCCL and RDMA bandwidth against the
table, and against the node's own baseline.

The baseline is the best that this node has shown in a passed run. After a driver change, or at any time,
a figure that falls below it by more than the tolerance fails, even above the table's threshold: the table
knows the product, the baseline this node.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import ib_write_bw, join, nccl_tests
from .findings import Finding, Unreadable, Verdict, bad, good, run_checks
from .settings import Settings, expectation
from .tables import Tables
from .tools import Outcome, answer, verdict

MINUTE = 60
# above T60 and T61 of acceptance_thresholds.csv
DCGM_LIMIT_S = {1: 5 * MINUTE, 2: 20 * MINUTE, 3: 60 * MINUTE, 4: 180 * MINUTE}
NCCL_LIMIT_S = 15 * MINUTE
RDMA_LIMIT_S = 2 * MINUTE
BURN_IN_ROUNDS = 8


class Measured(NamedTuple):
    """The tools' outputs: DCGM once, NCCL once a round, ib_write_bw once a device."""

    dcgm: Optional[Outcome]
    nccl: Tuple[Outcome, ...]
    rdma: Dict[str, Outcome]


class AcceptanceRun(NamedTuple):
    """One run of a level. figures: what its checks have measured so far, by name: "nccl busbw GB/s at 1024 B"."""

    settings: Settings
    tables: Tables
    measured: Measured
    level: str
    figures: Dict[str, float]


def dcgm_level(settings: Settings, level: str) -> int:
    """The diagnostic (-r) that belongs to accept or burn-in."""
    return settings.burn_in_dcgm_level if level == "burn-in" else settings.dcgm_level


def dcgm_command(settings: Settings, level: str) -> Tuple[str, ...]:
    """The diagnostic, as JSON."""
    return ("dcgmi", "diag", "-r", str(dcgm_level(settings, level)), "-j")


def rdma_commands(device: str, port: int) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """Server and client of a loopback on one device."""
    common = ("ib_write_bw", "-d", device, "-p", str(port), "--report_gbits", "-F", "-s", "65536", "-n", "20000")
    return common, (*common, "localhost")


def evaluate(
    settings: Settings, tables: Tables, measured: Measured, level: str, baseline: Optional[Dict[str, Any]]
) -> Tuple[List[Finding], Dict[str, float]]:
    """Findings, and the figures by name: "nccl busbw GB/s at 17179869184 B"."""
    run = AcceptanceRun(settings, tables, measured, level, figures={})
    findings = run_checks(MEASURING, run, settings.not_applicable)
    findings.append(compare(run.figures, baseline, settings.driver, settings.baseline_tolerance))
    return findings, run.figures


def _check_dcgm(run: AcceptanceRun) -> Verdict:
    outcome = run.measured.dcgm
    if outcome is None:
        raise Unreadable("dcgmi was not run")
    said = outcome
    if outcome.error is None and outcome.stdout.lstrip().startswith("{"):
        said = outcome._replace(returncode=0)  # a failed diagnostic has an exit status of its own; the JSON says why
    expected = expectation(run.settings, run.tables)._replace(level=min(dcgm_level(run.settings, run.level), 4))
    passed, text = verdict("dcgmi", answer("dcgmi", said), expected)
    if passed and outcome.returncode != 0:
        return False, f"dcgmi passed every test and ended with exit status {outcome.returncode}"
    return passed, text


def _check_nccl(run: AcceptanceRun) -> Verdict:
    settings, figures = run.settings, run.figures
    if settings.gpu_count == 1:
        return True, "one GPU has nobody to talk to"
    if settings.mig:
        return True, "MIG is declared: GPUs that are cut up do not talk to each other"
    if not run.measured.nccl:
        raise Unreadable("nccl-tests was not run")
    expected = expectation(settings, run.tables)._replace(checked=True, threshold_id=settings.nccl_threshold)
    passed, said = True, ""
    for outcome in run.measured.nccl:
        text = answer(settings.nccl_command[0], outcome)
        passed, said = verdict("nccl-tests", text, expected)
        if not passed:
            break
        for size, busbw in nccl_tests.figures(text).items():
            name = f"nccl busbw GB/s at {size} B"
            figures[name] = min(figures.get(name, busbw), busbw)  # the worst round counts
    return passed, said


def _check_rdma_bandwidth(run: AcceptanceRun) -> Verdict:
    settings, outcomes = run.settings, run.measured.rdma
    if settings.fabric == "none":
        return True, "no fabric is declared"
    if settings.fabric != "infiniband":
        way = "declare rdma_bandwidth not applicable, and test it by hand"
        raise Unreadable(f"no bandwidth test of {settings.fabric} is built in: {way}")
    if len(outcomes) < settings.fabric_links:
        raise Unreadable(f"{len(outcomes)} of {settings.fabric_links} devices were tested")
    expected = expectation(settings, run.tables)._replace(threshold_id=settings.rdma_threshold)
    if not settings.rdma_threshold:
        expected = expected._replace(gpu_model=None)  # the table's rows are of GPU memory on one platform: only by name
    failed: List[str] = []
    said = ""
    for device, outcome in sorted(outcomes.items()):
        text = answer(f"ib_write_bw on {device}", outcome)
        passed, said = verdict("ib_write_bw", text, expected)
        if not passed:
            failed.append(f"{device}: {said}")
            continue
        for size, figure in ib_write_bw.figures(text).items():
            run.figures[f"ib_write_bw Gb/s on {device} at {size} B"] = figure
    return not failed, "; ".join(failed) or f"{len(outcomes)} devices; the last: {said}"


MEASURING: Dict[str, Callable[[AcceptanceRun], Verdict]] = {
    "dcgm": _check_dcgm,
    "nccl": _check_nccl,
    "rdma_bandwidth": _check_rdma_bandwidth,
}
CHECKS = (*MEASURING, "baseline")
MAY_BE_LEFT_OUT = (*join.CHECKS, *MEASURING)  # the names that `not_applicable` knows


def compare(figures: Dict[str, float], baseline: Optional[Dict[str, Any]], driver: str, tolerance: float) -> Finding:
    """The figures against the node's baseline. A figure that the baseline has and this run has not is a failure too."""
    if baseline is None:
        becomes = "there is none yet: this run becomes it"
        return good("baseline", becomes if figures else "there is none, and nothing was measured")
    best = baseline.get("figures")
    if not isinstance(best, dict) or not all(isinstance(value, (int, float)) and value > 0 for value in best.values()):
        return bad("baseline", "the baseline is damaged: move it away and run this level again")
    worse = [
        f"{name}: {f'{figures[name]:g}' if name in figures else 'not measured'}, was {best[name]:g}"
        for name in sorted(best)
        if figures.get(name, 0) < best[name] * (1 - tolerance)
    ]
    said = "; ".join(worse) or f"{len(best)} figures within {tolerance:.0%} of the best"
    return Finding("baseline", not worse, f"{said} (driver {baseline.get('driver')}, now {driver})")


def new_baseline(
    figures: Dict[str, float], baseline: Optional[Dict[str, Any]], driver: str, level: str, at: str
) -> Dict[str, Any]:
    """The baseline after a passed run: the best of each figure, so that many small losses don't add up unseen."""
    best = dict(baseline.get("figures", {})) if baseline else {}
    best.update({name: max(value, best.get(name, 0)) for name, value in figures.items()})
    return {"driver": driver, "level": level, "at": at, "figures": best, "last": figures}
