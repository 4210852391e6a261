#!/usr/bin/python3
"""ironburst-gate [--level join|accept|burn-in] [--settle SECONDS] [--json]: may this node take jobs?

join (seconds; at boot and after each converge) writes or removes the stamp that the prolog reads. accept (minutes) and
burn-in (hours) are for nodes without jobs, and never run from a prolog: after the join level they run DCGM, NCCL and
RDMA tests, hold them against the table and the node's own baseline, and keep the best figures there. --xid-handled: the
Xids so far have been dealt with (a GPU was reset); --forget-baseline: the next accept makes a new one.

Exit status 0: passed, /run/ironburst/gate.ok is there. 1: not passed, it is gone. The findings are in
/run/ironburst/gate.json (join) and /var/lib/ironburst/gate-LEVEL.json. The judgement is in the package health, what is
expected in /etc/ironburst/gate.json.
"""

import argparse
import importlib.abc
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIB = Path(os.environ.get("IRONBURST_GATE_LIB", "/usr/local/lib/ironburst"))


class Bundle(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The package health out of health.json ({"modules": {"xid.py": source}, "data": {"gpus.csv": text}}): one file to
    keep up to date.
    """

    def __init__(self, path):
        self.path, self.content = path, json.loads(path.read_text())

    def find_spec(self, fullname, path=None, target=None):  # noqa: ARG002 - importlib's signature
        """The spec of health and of its modules; None for others."""
        package, _, name = fullname.partition(".")
        file = (name or "__init__") + ".py"
        if package != "health" or file not in self.content["modules"]:
            return None
        return importlib.util.spec_from_loader(fullname, self, origin=f"{self.path}/{file}", is_package=not name)

    def exec_module(self, module):
        """Run the module's source."""
        origin = module.__spec__.origin
        exec(compile(self.content["modules"][origin.rsplit("/", 1)[-1]], origin, "exec"), module.__dict__)


ROOT = Path(os.environ.get("IRONBURST_GATE_ROOT", "/"))  # another root in tests
BUNDLE = None
try:
    if (LIB / "health").is_dir():  # in the repository's tests
        sys.path.insert(0, str(LIB))
    else:
        BUNDLE = Bundle(LIB / "health.json")
        sys.meta_path.insert(0, BUNDLE)
    from health import accept, join, shared, tables
    from health.findings import bad
    from health.settings import settings_from
    from health.tools import Outcome
except Exception as error:  # fail closed: a stamp of before is no longer true
    if (ROOT / "run/ironburst/gate.ok").exists():
        (ROOT / "run/ironburst/gate.ok").unlink()
    sys.exit(f"gate: not passed, this node takes no jobs: {LIB}/health.json can't be used: {error!r}")

TOOL_TIMEOUT_S = float(os.environ.get("IRONBURST_GATE_TOOL_TIMEOUT", "20"))
PAUSE_S = 1.0
RDMA_PORT = 18600


class Running:
    """A tool that was started. One that can't even be killed (a hung driver) is left behind, never waited for."""

    def __init__(self, command):
        self.output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the tool
        self.error = None
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self.output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C"},  # the tools' own words and numbers, not the site's language
            )
        except FileNotFoundError:
            self.error = "is not installed"
        except OSError as error:
            self.error = f"can't be run: {error.strerror}"

    def outcome(self, limit_s, said_s=None):
        """Its outcome after limit_s seconds at most; said_s: the limit that the sentence names, if it is another."""
        if self.error:
            return Outcome(None, "", self.error)
        try:
            returncode = self.process.wait(max(limit_s, 0.05))
        except subprocess.TimeoutExpired:
            self.end()
            return Outcome(None, "", f"did not answer in {said_s or limit_s:g} s")
        self.output.seek(0)
        return Outcome(returncode, self.output.read().decode(errors="replace"))

    def end(self):
        """Kill it, and what it has started."""
        if not self.error and self.process.poll() is None:
            try:
                os.killpg(self.process.pid, 9)
            except OSError:
                self.process.kill()


def run(command, limit_s):
    """The outcome of one command."""
    return Running(command).outcome(limit_s)


def run_all(commands):
    """{name: command} -> {name: outcome}, all at once and within one limit."""
    running = {name: Running(command) for name, command in commands.items()}
    end = time.monotonic() + TOOL_TIMEOUT_S
    return {name: tool.outcome(end - time.monotonic(), said_s=TOOL_TIMEOUT_S) for name, tool in running.items()}


def text_of(path):
    """The stripped content of a file, "" if it can't be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def load_tables():
    """The catalogue's tables that came with the package."""
    return tables.load(
        BUNDLE.content["data"] if BUNDLE else {name: (LIB / "data" / name).read_text() for name in tables.FILES}
    )


def disks(paths, mounts):
    """join.Disk of each path that exists. mounts: the words of each line of mountinfo."""
    seen = []
    read_only = {words[4] for words in mounts if "ro" in words[5].split(",")}
    for path in paths:
        try:
            stat = os.statvfs(str(ROOT / path.lstrip("/")))
        except OSError:
            continue
        writable = path not in read_only and not stat.f_flag & os.ST_RDONLY
        seen.append(join.Disk(path, stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize, writable))
    return tuple(seen)


def rdma_ports():
    """join.RdmaPort of each port of an RDMA device."""
    return tuple(
        join.RdmaPort(
            name=f"{port.parent.parent.name}/{port.name}",
            layer=text_of(port / "link_layer"),
            state=text_of(port / "state"),
            rate=text_of(port / "rate"),
            physical=text_of(port / "phys_state"),
        )
        for port in sorted((ROOT / "sys/class/infiniband").glob("*/ports/*"))
    )


def network_cards():
    """join.RdmaPort of each network interface that has a driver, but for that of the default route."""
    routes = [line.split() for line in text_of(ROOT / "proc/net/route").splitlines()]
    own = {words[0] for words in routes if words[1:2] == ["00000000"]}
    found = []
    for card in sorted((ROOT / "sys/class/net").glob("*")):
        try:
            driver = os.path.basename(os.readlink(str(card / "device/driver")))
        except OSError:  # of no device
            continue
        if card.name not in own:
            found.append(join.RdmaPort(card.name, driver, text_of(card / "operstate"), "", ""))
    return tuple(found)


def observe(settings, data):
    """join.Observed: what the tools, /proc and /sys say now."""
    outcomes = run_all({name: join.COMMANDS[name] for name in join.needed(settings, data)})
    mounts = [line.split() for line in text_of(ROOT / "proc/self/mountinfo").splitlines() if len(line.split()) > 5]
    memory = [line.replace(":", " ").split() for line in text_of(ROOT / "proc/meminfo").splitlines()]
    counters = [text_of(path) for path in (ROOT / "sys/devices/system/edac/mc").glob("mc*/ue_count")]
    handled = text_of(ROOT / "run/ironburst/xid-handled")
    return join.Observed(
        outcomes=outcomes,
        ports=rdma_ports() + network_cards(),
        mount_points=tuple(mount[4] for mount in mounts),
        memory_kib={words[0]: int(words[1]) for words in memory if len(words) == 3 and words[1].isdigit()},
        uncorrected=sum(int(value) for value in counters) if counters else None,
        disks=disks(settings.disks, mounts),
        xid_handled_s=float(handled) if handled else -1.0,
    )


def read_settings():
    """What the inventory declares. Raises OSError and ValueError."""
    return settings_from(json.loads((ROOT / "etc/ironburst/gate.json").read_text()), accept.MAY_BE_LEFT_OUT)


def judge():
    """The findings of one look."""
    try:
        settings = read_settings()
    except (OSError, ValueError) as error:
        return [bad("settings", f"no usable /etc/ironburst/gate.json: {error}")]
    try:
        data = load_tables()
    except (OSError, ValueError, KeyError) as error:
        return [bad("settings", f"no usable tables below {LIB}: {error}")]
    return join.evaluate(join.Node(settings, data, observe(settings, data)))


def loopback(device, number):
    """ib_write_bw against itself on one device: the client's outcome."""
    server_command, client_command = accept.rdma_commands(device, RDMA_PORT + number)
    server = Running(server_command)
    end = time.monotonic() + min(30.0, accept.RDMA_LIMIT_S)
    try:
        while True:  # the server says nothing that tells when it listens: a refused client tries again
            outcome = run(client_command, accept.RDMA_LIMIT_S)
            refused = outcome.returncode not in (0, None) and "Couldn't connect to " in outcome.stdout
            if not refused or time.monotonic() > end or server.error or server.process.poll() is not None:
                return outcome
            time.sleep(0.2)
    finally:
        server.end()


def measure(settings, level):
    """accept.Measured of a level: minutes or hours."""
    left_out = settings.not_applicable
    command = accept.dcgm_command(settings, level)
    diagnostic = (
        None if "dcgm" in left_out else run(command, accept.DCGM_LIMIT_S[min(accept.dcgm_level(settings, level), 4)])
    )
    nccl, rdma = (), {}
    if "nccl" not in left_out and settings.nccl_command and settings.gpu_count > 1:
        rounds = accept.BURN_IN_ROUNDS if level == "burn-in" else 1
        nccl = tuple(run(settings.nccl_command, accept.NCCL_LIMIT_S) for _ in range(rounds))
    if "rdma_bandwidth" not in left_out and settings.fabric == "infiniband":
        devices = sorted(
            port.parent.parent.parent.name
            for port in (ROOT / "sys/class/infiniband").glob("*/ports/*/link_layer")
            if text_of(port) == "InfiniBand"
        )
        rdma = {device: loopback(device, number) for number, device in enumerate(devices)}
    return accept.Measured(diagnostic, nccl, rdma)


def write(path, value):
    """Replace a file at once: a reader sees the old or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(value, indent=1) + "\n")
    os.replace(str(part), str(path))


def long_level(level, findings):
    """(findings, passed) of accept or burn-in, added to those of join; a passed run becomes or betters the baseline."""
    settings, data = read_settings(), load_tables()
    path = ROOT / "var/lib/ironburst/baseline.json"
    try:
        baseline = json.loads(path.read_text()) if path.exists() else None
    except (OSError, ValueError):
        baseline = {}
    more, figures = accept.evaluate(settings, data, measure(settings, level), level, baseline)
    findings = findings + more
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    passed = join.passed(findings, accept.CHECKS)
    if passed and figures:
        write(path, accept.new_baseline(figures, baseline, settings.driver, level, at))
    report = {"passed": passed, "level": level, "at": at, "driver": settings.driver, "figures": figures}
    report["findings"] = as_json(findings)
    write(ROOT / "var/lib/ironburst" / f"gate-{level}.json", report)
    return findings, passed


def as_json(findings):
    """The findings as the reports have them: check, passed, text."""
    return [dict(finding._asdict()) for finding in findings]


def arguments_of(argv):
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = parser.add_argument
    option("--level", choices=("join", "accept", "burn-in"), default="join")
    option("--settle", type=float, default=0, metavar="SECONDS", help="look again until join passes, this long")
    option("--json", action="store_true", help="print the findings as JSON")
    option("--xid-handled", action="store_true", help="Xids up to now no longer count (after a GPU reset)")
    option("--forget-baseline", action="store_true", help="set the baseline aside (it is kept as baseline.json.old)")
    return parser.parse_args(argv)


def join_level(stamp, settle_s, alone=True):
    """(findings, passed) of the join level, looked at again for settle_s seconds until it passes. alone: nothing else
    follows, so what the whole hall has may be tolerated.
    """
    deadline = time.monotonic() + settle_s
    while True:
        try:
            findings = judge()
            if alone:
                findings = shared.tolerate(
                    findings, shared.tolerated(text_of(stamp.with_name("tolerated")), time.time())
                )
        except Exception as error:  # fail closed, whatever it is
            findings = [bad("gate", f"the gate itself failed: {error!r}")]
        passed = join.passed(findings)
        if passed or time.monotonic() + PAUSE_S > deadline:
            return findings, passed
        if stamp.exists():
            stamp.unlink()
        time.sleep(PAUSE_S)


def tell(report, findings, as_one_line):
    """The report on standard output, as JSON or a line a finding."""
    if as_one_line:
        print(json.dumps(report))
        return
    for finding in findings:
        text = finding.text.encode("ascii", "backslashreplace").decode()  # whatever the locale of the one who asks
        print("gate: {} {}: {}".format("ok    " if finding.passed else "FAILED", finding.check, text))
    causes = shared.causes(findings)
    if causes:
        print("gate: SHARED {}".format(",".join(causes)))
    print("gate: {}".format("passed" if report["passed"] else "not passed, this node takes no jobs"))


def main(argv=None):
    """The exit status."""
    arguments = arguments_of(argv)
    folder = ROOT / "run/ironburst"
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.xid_handled:
        (folder / "xid-handled").write_text(text_of(Path("/proc/uptime")).split()[0] + "\n")
    baseline = ROOT / "var/lib/ironburst/baseline.json"
    if arguments.forget_baseline and baseline.exists():
        os.replace(str(baseline), str(baseline) + ".old")
    stamp = folder / "gate.ok"
    findings, passed = join_level(stamp, arguments.settle, arguments.level == "join")
    if passed and arguments.level != "join":
        try:
            findings, passed = long_level(arguments.level, findings)
        except Exception as error:  # fail closed, whatever it is
            findings, passed = findings + [bad("gate", f"the gate itself failed: {error!r}")], False
    report = {"passed": passed, "level": arguments.level, "findings": as_json(findings)}
    write(folder / "gate.json", report)
    if passed:
        stamp.touch()
    elif stamp.exists():
        stamp.unlink()
    tell(report, findings, arguments.json)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
