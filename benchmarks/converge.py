"""How long does a converge take? python -m benchmarks.converge --hosts 8 [--json]     (root, a lab of its own)

One run, the same lab hosts for all: (1) the first converge of empty hosts by `ansible-playbook playbooks/site.yml` with
Ansible's default settings, with ours, and with the mitogen strategy (a peer: installed by pip into a temporary folder,
no dependency of ours); the hosts are wiped in between. (2) On converged hosts, where nothing is to do: `ironburst
converge` against `ansible-playbook` with its defaults.

"Defaults" is a configuration that only says where roles and plugins are, and site.yml without its own `strategy`.
mitogen gets our other settings (forks, and its counterpart of the free strategy). The machine is shared with the hosts
themselves, so absolute times are long; the ratios are of CPU seconds, which each control group counts: of the hosts and
of Ansible with its ssh.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

from ironburst import document
from ironburst.config import load
from ironburst.document import build
from ironburst.document.aws import AwsPlace
from lab import hall
from lab.demo.inside import Inside
from lab.hosts import cgroups
from lab.site import Site
from lab.system import CHECKOUT, LabError

MITOGEN = "mitogen==0.3.54"
INVENTORY = "inventory/lab"
CONTROLLER = "controller"
OURS_ALONE = r"(?m)^(callbacks_enabled|transport|internal_poll_interval) = .*\n"  # of ansible.cfg (ADR 122)
DEFAULTS = """[defaults]
roles_path = {repo}/playbooks/roles
inventory_plugins = {repo}/playbooks/plugins/inventory
action_plugins = {repo}/playbooks/plugins/action
doc_fragment_plugins = {repo}/playbooks/plugins/doc_fragments
lookup_plugins = {repo}/playbooks/plugins/lookup
module_utils = {repo}/playbooks/plugins/module_utils
filter_plugins = {repo}/playbooks/plugins/filter
library = {repo}/playbooks/plugins/modules
[inventory]
enable_plugins = stack_document, yaml, ini, host_list
"""
CLOUD = {"fixed-1": build.CloudInstance(id="i-0123456789abcdef0", address="10.90.0.7")}


class Bench:
    """The lab's hosts, and the ways to converge them."""

    def __init__(self, site: Site, nodes: int, scratch: Path):
        self.site, self.inside, self.scratch = site, Inside(site), scratch
        self.names = list(hall.addresses(nodes))
        key = site.dir / "run" / "munge.key"
        key.write_bytes(b"b" * 64)
        config = load.load(CHECKOUT / "stacks" / "Pulumi.lab.yaml")
        zones = [document.PoolZone(zone="us-east-1a", place=AwsPlace(subnet_id="subnet-1", launch_template_id="lt-1"))]
        seen = build.Observed(
            instances=CLOUD, pool_zones={pool.name: zones for pool in config.cloud.pools} if config.cloud else {}
        )
        built = hall.grown(build.build(config, seen), nodes)
        scheduler = built.scheduler.model_copy(update={"munge_key": f"file:{key}"})
        document.publish(built.model_copy(update={"scheduler": scheduler, "pools": []}), self.inside.document)

    def wipe(self) -> None:
        """All hosts as on their first day."""
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda name: self.site.host(name).wipe(), self.names))
        for name in self.names:
            self.site.host(name).start()
        self.site.wait(self.names, 180)

    def settings(self, tool: str) -> tuple[Path, dict[str, str]]:
        """(site.yml, environment) of "defaults", "ours" or "mitogen"."""
        if tool == "ours":
            return CHECKOUT / "playbooks" / "site.yml", {}
        playbook = (CHECKOUT / "playbooks" / "site.yml").read_text()
        folder = self.scratch / tool
        folder.mkdir(exist_ok=True)
        if tool == "defaults":
            (folder / "ansible.cfg").write_text(DEFAULTS.format(repo=CHECKOUT))
            changed = re.sub(r"(?m)^  strategy: .*\n", "", playbook)
            environment = {"ANSIBLE_CONFIG": str(folder / "ansible.cfg")}
        else:
            packages = self.scratch / "mitogen-packages"
            if not packages.exists():
                options = ["--quiet", "--no-deps", "--target", str(packages)]
                install = [sys.executable, "-m", "pip", "install", *options, MITOGEN]
                subprocess.run(install, check=True, stdout=sys.stderr)
            changed = re.sub(r"(?m)^  strategy: .*\n", "  strategy: mitogen_free\n", playbook)
            plugins = packages / "ansible_mitogen" / "plugins" / "strategy"
            config = re.sub(OURS_ALONE, "", (CHECKOUT / "ansible.cfg").read_text())
            (folder / "ansible.cfg").write_text(config.replace("= playbooks/", f"= {CHECKOUT}/playbooks/"))
            environment = {
                "ANSIBLE_STRATEGY_PLUGINS": str(plugins),
                "PYTHONPATH": str(packages),
                "ANSIBLE_STRATEGY": "mitogen_linear",
                "ANSIBLE_HOST_KEY_CHECKING": "False",  # mitogen does not read ansible_ssh_common_args for it
                "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
            }
        (folder / "site.yml").write_text(changed)
        return folder / "site.yml", environment

    def ansible(self, tool: str) -> dict[str, Any]:
        """site.yml on all hosts: {"seconds", "changed"}. Raises LabError with what Ansible said."""
        playbook, environment = self.settings(tool)
        words = [f"{key}={value}" for key, value in environment.items()]
        command = ["env", *words, "ansible-playbook", "-i", INVENTORY, str(playbook)]
        before, begun = self.cpu(), time.monotonic()
        argv = [*self.counted(), *self.inside.argv(*command)]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        seconds, after = time.monotonic() - begun, self.cpu()
        recap = re.findall(r"(?m)^(\S+)\s*: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", done.stdout)
        if done.returncode or len(recap) != len(self.names):
            self.site.log(f"bench-{tool}").write_text(done.stdout + done.stderr)
            said = f"{done.stdout}\n{done.stderr}".splitlines()
            last = [line for line in said if re.search(r"ERROR|fatal|FAILED|Traceback|Error", line)]
            raise LabError(f"ansible-playbook ({tool}) failed: {' | '.join(last[-4:]) or done.stderr[-400:]}")
        spent = {name: after[name] - before.get(name, 0) for name in after}
        here = spent.pop(CONTROLLER)
        return {
            "seconds": round(seconds, 2),
            "changed": sum(int(row[1]) for row in recap),
            "cpu_controller": round(here, 1),
            "cpu_hosts": round(sum(spent.values()), 1),
        }

    def counted(self) -> list[str]:
        """Command prefix that runs a program in a control group of its own, as each host is."""
        folder = cgroups.counting() / self.site.box.cgroup(CONTROLLER)
        folder.mkdir(exist_ok=True)
        return ["sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', str(folder)]

    def cpu(self) -> dict[str, float]:
        """CPU seconds of each host since it was started, and of what ran by `counted`."""
        seconds = {}
        for folder in cgroups.counting().glob(self.site.box.cgroup("*")):
            used = re.search(r"(?m)^usage_usec (\d+)$", (folder / "cpu.stat").read_text())
            seconds[folder.name.removeprefix(self.site.box.cgroup(""))] = int(used[1]) / 1e6 if used else 0.0
        return seconds

    def ironburst(self, *options: str) -> dict[str, Any]:
        """`ironburst converge` on all hosts: {"seconds", "states"}."""
        command = self.inside.ironburst(
            "converge", "--document", str(self.inside.document), "--inventory", INVENTORY, "--json", *options
        )
        begun = time.monotonic()
        done = subprocess.run(self.inside.argv(*command), stdin=subprocess.DEVNULL, capture_output=True, text=True)
        seconds = time.monotonic() - begun
        if done.returncode:
            raise LabError(f"ironburst converge ended with {done.returncode}: {(done.stdout + done.stderr)[-600:]}")
        hosts = json.loads(done.stdout)["hosts"]
        return {"seconds": round(seconds, 2), "states": sorted({host["state"] for host in hosts.values()})}


def measure(bench: Bench, say: Any, first: Sequence[str], repeat: int) -> dict[str, Any]:
    results: dict[str, Any] = {"hosts": len(bench.names), "cores": os.cpu_count(), "first": {}, "unchanged": {}}
    for number, tool in enumerate(first):
        if number:
            bench.wipe()
        try:
            results["first"][tool] = bench.ansible(tool)
        except (LabError, subprocess.CalledProcessError) as error:
            if tool != "mitogen":
                raise
            results["first"][tool] = {"seconds": None, "error": str(error)}
            bench.wipe()
            bench.ansible("ours")
        say(f"first converge, {tool}: {results['first'][tool]}")
    say("receipts: one converge by Ansible, on hosts that are as they should be")
    bench.ironburst()
    runs = [bench.ironburst() for _ in range(repeat)]
    if any(run["states"] != ["unchanged"] for run in runs):
        raise LabError(f"ironburst converge did not find the hosts unchanged: {runs}")
    median = statistics.median(run["seconds"] for run in runs)
    results["unchanged"]["ironburst converge"] = {"seconds": median, "all": [run["seconds"] for run in runs]}
    say(f"nothing to do, ironburst converge: {results['unchanged']['ironburst converge']}")
    results["unchanged"]["ansible defaults"] = bench.ansible("defaults")
    say(f"nothing to do, ansible-playbook with its defaults: {results['unchanged']['ansible defaults']}")
    if results["unchanged"]["ansible defaults"]["changed"]:
        raise LabError("the second ansible-playbook changed something: the two did not do the same work")
    results["ratios"] = ratios(results)
    return results


def cpu_of(run: Mapping[str, Any]) -> float | None:
    """CPU seconds of a run, of the hosts and of Ansible; None for one that failed."""
    return run["cpu_controller"] + run["cpu_hosts"] if run["seconds"] else None


def ratios(results: Mapping[str, Any]) -> dict[str, float | None]:
    first = {tool: cpu_of(run) for tool, run in results["first"].items()}
    unchanged = {tool: run["seconds"] for tool, run in results["unchanged"].items()}

    def of(above: float | None, below: float | None) -> float | None:
        return round(above / below, 2) if above and below else None

    return {
        "unchanged: ansible defaults / ironburst converge (>= 50)": of(
            unchanged["ansible defaults"], unchanged["ironburst converge"]
        ),
        "first, CPU: ansible defaults / ours (>= 2)": of(first.get("defaults"), first.get("ours")),
        "first, CPU: ours / mitogen (<= 1.0)": of(first.get("ours"), first.get("mitogen")),
    }


def commit() -> str:
    """Of the checkout; with a "+" if files were changed since."""
    told = subprocess.run(["git", "describe", "--always", "--dirty=+"], cwd=CHECKOUT, capture_output=True, text=True)
    return told.stdout.strip() or "unknown"


def table(results: Mapping[str, Any]) -> str:
    rows = [("first converge, " + tool, run["seconds"]) for tool, run in results["first"].items()]
    rows += [("first converge, CPU, " + tool, cpu_of(run)) for tool, run in results["first"].items()]
    rows += [("nothing to do, " + tool, run["seconds"]) for tool, run in results["unchanged"].items()]
    lines = [f"{results['hosts']} hosts, {results['cores']} cores (shared with the hosts)", ""]
    lines += [f"{name:44} {'failed' if seconds is None else f'{seconds:9.2f} s'}" for name, seconds in rows]
    return "\n".join([*lines, "", *(f"{name:60} {value}" for name, value in results["ratios"].items())])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.converge", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=8, help="the head and N-1 nodes (default: 8)")
    parser.add_argument("--json", action="store_true", help="the figures as JSON on stdout")
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs of the unchanged converge; their median counts (default: 3)"
    )
    parser.add_argument(
        "--first",
        default="defaults,mitogen,ours",
        help="tools of the first converge, in this order; the last one's hosts stay",
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="write the figures to this file, too, with commit and date (benchmarks/results/converge.json)",
    )
    parser.add_argument("--prefix", default=f"bench-{os.getpid()}", help="name of the lab")
    arguments = parser.parse_args(argv)
    if arguments.hosts < 2:
        parser.error("--hosts: a head and at least one node are needed, so 2 or more")
    begun = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {line}", file=sys.stderr, flush=True)

    site = Site(arguments.prefix)
    machines = hall.addresses(arguments.hosts - 1)
    try:
        site.up(start=machines, tied=True, hall=machines)
        say(f"lab with {', '.join(machines)}")
        with tempfile.TemporaryDirectory(prefix="ironburst-bench-") as scratch:
            results = measure(
                Bench(site, arguments.hosts - 1, Path(scratch)), say, arguments.first.split(","), arguments.repeat
            )
    except LabError as error:
        print(f"benchmarks.converge: {error}", file=sys.stderr)
        return 1
    finally:
        site.down()
    if arguments.out:
        arguments.out.parent.mkdir(exist_ok=True)
        arguments.out.write_text(
            json.dumps({"commit": commit(), "date": f"{date.today()}", **results}, indent=1) + "\n"
        )
    print(json.dumps(results, indent=1) if arguments.json else table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
