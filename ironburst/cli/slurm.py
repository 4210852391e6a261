"""`ironburst slurm snippet STACK`: what the administrator of a Slurm that isn't managed adds to it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from ironburst.cli import Subparsers
from ironburst.cli.site_options import guarded
from ironburst.document import ClusterDocument
from ironburst.document.of_stack import document
from ironburst.slurm_programs.snippet import FOLDER, its_pools, parts


def add_parser(subparsers: Subparsers) -> None:
    """The verb and what it can do."""
    parser = subparsers.add_parser("slurm", description="Beside a Slurm that isn't managed.")
    inner = parser.add_subparsers(dest="what", required=True, metavar="WHAT")
    snippet = inner.add_parser(
        "snippet",
        help="the lines for slurm.conf and gres.conf, the programs, the controller's unit",
        description="Print what rented nodes need in a Slurm that ironburst doesn't manage: lines for slurm.conf and "
        "gres.conf, the programs that slurmctld calls, the one that names rented nodes in /etc/hosts, units, and a "
        "script that puts all but the lines in place. Nothing is changed. Exit code 0: printed; 2: bad input.",
        epilog="example: ironburst slurm snippet stacks/Pulumi.prod.yaml --folder snippet",
    )
    snippet.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml")
    snippet.add_argument("--folder", type=Path, help="write the parts there instead")
    snippet.set_defaults(func=run)


@guarded
def run(arguments: argparse.Namespace) -> int:
    """Print the parts, or write them."""
    cluster = document(arguments.stack_file)
    found = parts(cluster)
    if arguments.folder:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        for name, text in found.items():
            (arguments.folder / name).write_text(text)
            (arguments.folder / name).chmod(0o755 if text.startswith("#!") else 0o644)
        print(f"{arguments.folder}: {', '.join(found)}; nothing else was changed")
    else:
        for name, text in found.items():
            print(f"##### {WHERE.get(name, name)}\n{text}")
    print("\n".join(_afterwards(cluster)))
    return 0


WHERE = {
    "slurm.conf": "add to slurm.conf",
    "gres.conf": "add to gres.conf",
    "hosts": "of /etc/hosts on the head",
    "ironburst-resume": f"{FOLDER}/ironburst-resume on the head, mode 0755",
    "ironburst-suspend": f"{FOLDER}/ironburst-suspend on the head, mode 0755",
    "ironburst.service": "/etc/systemd/system/ironburst.service on the head",
    "install.sh": "install.sh: puts all but slurm.conf and gres.conf there, from a folder with them (--folder)",
}


def _afterwards(cluster: ClusterDocument) -> Iterator[str]:
    nodes = ",".join(node for pool in its_pools(cluster) for node in pool.nodes)
    yield "##### in this order, on the head"
    yield "# 1. join the lines to slurm.conf and gres.conf"
    yield "# 2. sh install.sh"
    yield "# 3. new nodes need a restart, and take no jobs before somebody rents them:"
    yield f'# systemctl restart slurmctld && scontrol update nodename={nodes} state=drain reason="no lease"'
    yield "# 4. program, document and credentials of the controller: docs/how-to/controller.md"
