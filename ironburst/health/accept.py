"""The accept level (minutes) and burn-in (hours): DCGM, NCCL and RDMA bandwidth against the table, and against the
node's own baseline.

The baseline is the best that this node has shown in a passed run. After a driver change, or at any time, a figure that
falls below it by more than the tolerance fails, even above the table's threshold: the table knows the product, the
baseline this node.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import ib_write_bw, nccl_tests, tools
from .checks import Outcome, Unreadable, answer
from .join import Settings, Tables, expectation, worst
from .report import Finding
from .report import Unreadable as UnreadableOutput

MINUTE = 60
DCGM_LIMIT_S = {
    1: 5 * MINUTE,
    2: 20 * MINUTE,
    3: 60 * MINUTE,
    4: 180 * MINUTE,
}  # above T60 and T61 of acceptance_thresholds.csv
NCCL_LIMIT_S = 15 * MINUTE
RDMA_LIMIT_S = 2 * MINUTE
BURN_IN_ROUNDS = 8
CHECKS = ("dcgm", "nccl", "rdma_bandwidth", "baseline")


class Measured(NamedTuple):
    """What the tools said: DCGM once, NCCL once a round, ib_write_bw once a device."""

    dcgm: Optional[Outcome]
    nccl: Tuple[Outcome, ...]
    rdma: Dict[str, Outcome]


def dcgm_command(settings: Settings, level: str) -> Tuple[str, ...]:
    return (
        "dcgmi",
        "diag",
        "-r",
        str(settings.burn_in_dcgm_level if level == "burn-in" else settings.dcgm_level),
        "-j",
    )


def rdma_commands(device: str, port: int) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """Server and client of a loopback on one device."""
    common = ("ib_write_bw", "-d", device, "-p", str(port), "--report_gbits", "-F", "-s", "65536", "-n", "20000")
    return common, (*common, "localhost")


def evaluate(
    settings: Settings, tables: Tables, measured: Measured, level: str, baseline: Optional[Dict[str, Any]]
) -> Tuple[List[Finding], Dict[str, float]]:
    """Findings, and the figures by name: "nccl busbw GB/s at 17179869184 B"."""
    findings, figures = [], {}  # type: Tuple[List[Finding], Dict[str, float]]
    for name, check in (("dcgm", _dcgm), ("nccl", _nccl), ("rdma_bandwidth", _rdma)):
        if name in settings.not_applicable:
            findings.append(Finding(name, True, "not applicable: the inventory says so"))
            continue
        try:
            good, text = check(settings, tables, measured, level, figures)
        except (Unreadable, UnreadableOutput) as error:
            good, text = False, str(error)
        except Exception as error:  # fail closed, whatever it is
            good, text = False, f"the check itself failed: {error!r}"
        findings.append(Finding(name, good is True, text))
    findings.append(compare(figures, baseline, settings.expected.driver, settings.baseline_tolerance))
    return findings, figures


def _dcgm(
    settings: Settings, tables: Tables, measured: Measured, level: str, figures: Dict[str, float]
) -> Tuple[bool, str]:
    if measured.dcgm is None:
        raise Unreadable("dcgmi was not run")
    outcome = measured.dcgm
    if outcome.error is None and outcome.returncode != 0 and outcome.stdout.lstrip().startswith("{"):
        outcome = outcome._replace(
            returncode=0
        )  # it fails a diagnostic with an exit status of its own; the JSON says why
    wanted = settings.burn_in_dcgm_level if level == "burn-in" else settings.dcgm_level
    good, text = worst(
        tools.parse("dcgmi", answer("dcgmi", outcome), expectation(settings, tables)._replace(level=min(wanted, 4)))
    )
    if good and measured.dcgm.returncode != 0:
        return False, f"dcgmi passed every test and ended with exit status {measured.dcgm.returncode}"
    return good, text


def _nccl(
    settings: Settings, tables: Tables, measured: Measured, level: str, figures: Dict[str, float]
) -> Tuple[bool, str]:
    if settings.expected.gpu_count == 1:
        return True, "one GPU has nobody to talk to"
    if not measured.nccl:
        raise Unreadable("nccl-tests was not run")
    expected = expectation(settings, tables)._replace(checked=True, threshold_id=settings.nccl_threshold)
    said = (True, "")
    for outcome in measured.nccl:
        text = answer(settings.nccl_command[0], outcome)
        said = worst(tools.parse("nccl-tests", text, expected))
        if not said[0]:
            return said
        for size, busbw in nccl_tests.figures(text).items():
            key = f"nccl busbw GB/s at {size} B"
            figures[key] = min(figures.get(key, busbw), busbw)  # the worst round counts
    return said


def _rdma(
    settings: Settings, tables: Tables, measured: Measured, level: str, figures: Dict[str, float]
) -> Tuple[bool, str]:
    if settings.expected.fabric == "none":
        return True, "no fabric is declared"
    if settings.expected.fabric != "infiniband":
        raise Unreadable(
            f"no bandwidth test of {settings.expected.fabric} is built in: declare rdma_bandwidth not applicable, and test it by hand"
        )
    if len(measured.rdma) < settings.expected.fabric_links:
        raise Unreadable(f"{len(measured.rdma)} of {settings.expected.fabric_links} devices were tested")
    expected = expectation(settings, tables)._replace(threshold_id=settings.rdma_threshold)
    if not settings.rdma_threshold:
        expected = expected._replace(gpu_model=None)  # the table's rows are of GPU memory on one platform: only by name
    failed, said = [], ""
    for device, outcome in sorted(measured.rdma.items()):
        text = answer(f"ib_write_bw on {device}", outcome)
        good, said = worst(tools.parse("ib_write_bw", text, expected))
        if not good:
            failed.append(f"{device}: {said}")
            continue
        for size, figure in ib_write_bw.figures(text).items():
            figures[f"ib_write_bw Gb/s on {device} at {size} B"] = figure
    return not failed, "; ".join(failed) or f"{len(measured.rdma)} devices; the last: {said}"


def compare(figures: Dict[str, float], baseline: Optional[Dict[str, Any]], driver: str, tolerance: float) -> Finding:
    """The figures against the node's baseline. A figure that the baseline has and this run has not is a failure too."""
    if baseline is None:
        return Finding(
            "baseline",
            True,
            "there is none yet: this run becomes it" if figures else "there is none, and nothing was measured",
        )
    known = baseline.get("figures")
    if not isinstance(known, dict) or not all(
        isinstance(value, (int, float)) and value > 0 for value in known.values()
    ):
        return Finding("baseline", False, "the baseline is damaged: move it away and run this level again")
    since = f"driver {baseline.get('driver')}, now {driver}"
    worse = [
        f"{name}: {figures[name]:g}, was {known[name]:g}"
        if name in figures
        else f"{name}: not measured, was {known[name]:g}"
        for name in sorted(known)
        if figures.get(name, 0) < known[name] * (1 - tolerance)
    ]
    text = (
        f"{'; '.join(worse)} ({since})"
        if worse
        else f"{len(known)} figures within {tolerance:.0%} of the best ({since})"
    )
    return Finding("baseline", not worse, text)


def new_baseline(
    figures: Dict[str, float], baseline: Optional[Dict[str, Any]], driver: str, level: str, at: str
) -> Dict[str, Any]:
    """The baseline after a passed run: the best of each figure, so that many small losses don't add up unseen."""
    known = dict(baseline.get("figures", {})) if baseline else {}
    best = {name: max(value, known.get(name, 0)) for name, value in figures.items()}
    known.update(best)
    return {"driver": driver, "level": level, "at": at, "figures": known, "last": figures}
