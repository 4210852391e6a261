"""How does what is done for each host grow with the hosts? python -m benchmarks.hosts [--sizes 25,200,1000] [--json]

A site like stacks/Pulumi.prod.yaml with so many hosts: racks of four in halls of 256, a tenth of them fixed nodes in
the cloud. Of each size: from the stack file to the document; `ansible-inventory --list` as a process of its own; and
`ironburst converge` on hosts that are as their receipts say, with a stand-in for ssh (every host tells at once what its
receipt has). Seconds are of the processor, for other work on the machine makes the clock's longer: those are
told, too. The exponent is that of seconds over hosts, from the second-largest size to the largest (1 is linear).
"""

from __future__ import annotations

import argparse
import copy
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from ironburst import document as documents
from ironburst.config import load, stack
from ironburst.config.models import ClusterConfig
from ironburst.convergence.converge import converge
from ironburst.convergence.host_facts import MARK
from ironburst.convergence.model import Options, Tools
from ironburst.convergence.ports import Answer, Connection
from ironburst.convergence.receipts import Receipt
from ironburst.document import build
from ironburst.document.aws import AwsPlace
from ironburst.wiring.convergence import make_tools

ROOT = Path(__file__).parents[1]
SIZES = (25, 200, 1000)
HALL, RACK, CLOUD = 256, 4, 10  # nodes of a hall, of a rack; every tenth host is a fixed one
FACTS = 250  # that a receipt has of one host
LEAST, MOST = 4, 5000
STACK, LISTING, RECEIPTS = "stack file to document", "ansible-inventory --list", "converge, nothing to do"
EXPONENTS = "exponent of seconds over hosts"
ASKED = ((LISTING, "seconds", 10.0), (LISTING, "memory_mb", 500.0), (RECEIPTS, "seconds", 10.0))
LINEAR = 1.15  # that an exponent may be: measured, and beside other work


# ---- a site of any size


def declaration(hosts: int) -> dict[str, Any]:
    """The stack file's `cluster` with a head and so many other hosts that there are `hosts`."""
    cluster = yaml.safe_load((ROOT / "stacks/Pulumi.prod.yaml").read_text())["config"]["ironburst:cluster"]
    head, model = cluster["halls"][0]["nodes"][:2]
    fixed = max(1, hosts // CLOUD)
    owned = hosts - fixed - 1
    cluster["halls"] = [
        _hall(number, model, first, min(HALL, owned - first)) for number, first in enumerate(range(0, owned, HALL), 1)
    ]
    first = cluster["halls"][0]
    first["racks"].append({"name": "head", "units": 48})
    first["nodes"].append(head | {"rack": "head", "addresses": "10.101.8.10", "bmc": _bmc(head, ["10.101.24.10"])})
    cluster["cloud"]["network"]["hall_link"]["hall"] = first["name"]
    cluster["cloud"]["groups"][0]["count"] = fixed
    cluster["budget"].pop("total_usd_per_month", None)  # of the example's few
    return cluster


def _hall(number: int, model: Mapping[str, Any], first: int, size: int) -> dict[str, Any]:
    """The hall whose nodes are counted from `first`; each rack's are alike, as in the example."""
    net = f"10.{100 + number}"
    racks, nodes = [], []
    for at in range(0, size, RACK):
        here = range(at, min(at + RACK, size))
        racks.append({"name": f"r{at // RACK + 1:03}", "units": 48})
        nodes.append(
            copy.deepcopy(dict(model))
            | {
                "names": [f"dgx{first + n + 1:04}" for n in here],
                "rack": racks[-1]["name"],
                "units": model["units"][: len(here)],
                "addresses": [f"{net}.{n // 128}.{10 + n % 128}" for n in here],
                "bmc": _bmc(model, [f"{net}.{16 + n // 128}.{10 + n % 128}" for n in here]),
            }
        )
    cidrs = {"cidr": f"{net}.0.0/20", "bmc_cidr": f"{net}.16.0/20"}
    return {"name": f"hall-{number}", **cidrs, "racks": racks, "nodes": nodes}


def _bmc(model: Mapping[str, Any], addresses: Sequence[str]) -> dict[str, Any]:
    return model["bmc"] | {"addresses": [f"https://{address}" for address in addresses]}


def observed(config: ClusterConfig) -> build.Observed:
    """Invented ids and addresses of all that a declaration has in a cloud."""
    groups, pools = (config.cloud.groups, config.cloud.pools) if config.cloud else ([], [])
    names = [f"{group.name}-{n + 1}" for group in groups for n in range(group.count)]
    return build.Observed(
        instances={
            name: build.CloudInstance(id=f"i-{n:017x}", address=f"10.31.{n // 200}.{10 + n % 200}")
            for n, name in enumerate(names)
        },
        pool_zones={
            pool.name: [
                documents.PoolZone(
                    zone=zone, place=AwsPlace(subnet_id=f"subnet-{zone}", launch_template_id=f"lt-{zone}")
                )
                for zone in pool.zones
            ]
            for pool in pools
        },
    )


def declared(folder: Path, hosts: int) -> documents.ClusterDocument:
    """From a stack file of so many hosts in `folder` to the published document, `document.json` beside it."""
    key, path = folder / "munge.key", folder / "Pulumi.prod.yaml"
    key.write_text("0123456789abcdef" * 4)
    content = {"aws:region": "us-east-1", "ironburst:cluster": declaration(hosts)}
    path.write_text(yaml.safe_dump({"config": content}, sort_keys=False))
    config = load.load(path)
    valid = stack.valid(config, path, now=datetime.now(UTC))
    built = build.build(config, observed(config), valid.software)
    scheduler = built.scheduler.model_copy(update={"munge_key": f"file:{key}"})  # receipts read it, and no cloud
    return documents.publish(built.model_copy(update={"scheduler": scheduler}), folder / "document.json")


# ---- what is measured


# by a process that is small itself: to Linux what was in memory before exec is the program's, too
_MEASURED = """import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(code)"""


def listing(folder: Path) -> dict[str, float]:
    """Seconds, MB of memory and of output of `ansible-inventory --list` on the folder's document."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("IRONBURST_")}
    environment |= {"IRONBURST_DOCUMENT": str(folder / "document.json"), "HOME": str(folder)}
    program = str(Path(sys.executable).with_name("ansible-inventory"))
    output = folder / "list.json"
    asked = (program, "-i", str(ROOT / "inventory/prod"), "--list", "--output", str(output))
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *asked],
        env=environment | {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"ansible-inventory ended with exit code {done.returncode}")
    seconds, kilobytes = map(float, done.stdout.split()[-2:])
    return {
        "seconds": round(seconds, 2),
        "wall_s": round(time.perf_counter() - begun, 1),
        "memory_mb": round(kilobytes / 1024),
        "output_mb": round(output.stat().st_size / 1e6, 1),
    }


def receipts(folder: Path, document: documents.ClusterDocument) -> dict[str, float]:
    """Seconds of a converge that finds every host as its receipt says. Raises RuntimeError if it doesn't."""
    facts = {f"file /etc/ironburst/{n}": f"file 0644 root:root {n:016x}" for n in range(FACTS)}
    watch = {"files": {fact.split(" ")[1]: "content" for fact in facts}}
    answer = Answer(MARK + json.dumps(facts) + "\n")
    tools = _tools(folder, document)
    for host in document.hosts:
        known = Receipt(host.name, document.cluster, Connection(host.address), tools.inputs(host.name), watch, facts)
        tools.store.write(known)
    names = [host.name for host in document.hosts]
    begun, used = time.perf_counter(), time.process_time()
    tools = replace(_tools(folder, document), ask=lambda programs: dict.fromkeys(programs, answer))
    report = converge(document, names, tools, Options())
    seconds = _seconds(begun, used)
    if report.error or len(report.with_state("unchanged")) != len(names):
        raise RuntimeError(report.error or "a host is not as its receipt says")
    return seconds


def _tools(folder: Path, document: documents.ClusterDocument) -> Tools:
    return make_tools(document, folder / "document.json", ROOT / "inventory/prod", folder, lambda _: None)


def _seconds(begun: float, used: float) -> dict[str, float]:
    wall_s = round(time.perf_counter() - begun, 1)
    return {"seconds": round(time.process_time() - used, 3), "wall_s": wall_s}


def of_size(hosts: int) -> dict[str, dict[str, float]]:
    """What each step needs for so many hosts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        begun, used = time.perf_counter(), time.process_time()
        document = declared(folder, hosts)
        of_stack = _seconds(begun, used)
        if len(document.hosts) != hosts:
            raise RuntimeError(f"{len(document.hosts)} hosts are declared instead of {hosts}")
        return {STACK: of_stack, LISTING: listing(folder), RECEIPTS: receipts(folder, document)}


def measure(sizes: Sequence[int]) -> dict[str, Any]:
    made = {hosts: of_size(hosts) for hosts in sizes}
    more, most = sizes[-2:]
    exponents = {
        what: round(math.log(made[most][what]["seconds"] / made[more][what]["seconds"], most / more), 2)
        for what in made[most]
    }
    return {"facts of a host": FACTS, "hosts": made, EXPONENTS: exponents}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.hosts", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), metavar="N,...", help="default: %(default)s")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    words = arguments.sizes.split(",")
    sizes = sorted({int(word) for word in words if word.isdigit()})
    if len(sizes) != len(words) or len(sizes) < 2 or sizes[0] < LEAST or sizes[-1] > MOST:
        parser.error(f"--sizes is {arguments.sizes!r}; give two different ones or more, of {LEAST} to {MOST}")
    results = measure(sizes)
    lines = [f"{hosts:5} {what:26} {used}" for hosts, steps in results["hosts"].items() for what, used in steps.items()]
    lines.append(f"{EXPONENTS} {results[EXPONENTS]}")
    print(json.dumps(results, indent=1) if arguments.json else "\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
