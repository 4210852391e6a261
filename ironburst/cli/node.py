"""`ironburst node`: one bare-metal node."""

from __future__ import annotations

from ironburst.cli import Subparsers, node_bios, node_cycle, node_firmware, node_netboot, node_show


def add_parser(subparsers: Subparsers) -> None:
    """`ironburst node` and its verbs."""
    parser = subparsers.add_parser("node", description="One node.")
    verbs = parser.add_subparsers(dest="node_verb", required=True, metavar="VERB")
    node_show.add_parser(verbs)
    node_cycle.add_parsers(verbs)
    node_firmware.add_parser(verbs)
    node_bios.add_parser(verbs)
    node_netboot.add_parser(verbs)
