"""`ironburst completion SHELL`: what a shell reads to complete this command."""

from __future__ import annotations

import argparse

from argcomplete import shell_integration

from ironburst.cli import Subparsers

WHERE = {
    "bash": "~/.local/share/bash-completion/completions/ironburst",
    "zsh": "~/.zfunc/_ironburst",
    "fish": "~/.config/fish/completions/ironburst.fish",
}
"""where a shell looks for it by itself (zsh: where that folder is in fpath)"""
EPILOG = "put it where the shell looks, once:\n" + "\n".join(
    f"  ironburst completion {shell} > {path}" for shell, path in WHERE.items()
)


def add_parser(subparsers: Subparsers) -> None:
    """The verb and its argument."""
    parser = subparsers.add_parser(
        "completion",
        description="Print what a shell needs to complete this command with the Tab key.",
        epilog=EPILOG,
    )
    parser.add_argument("shell", choices=tuple(WHERE), help="yours")
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Print it."""
    print(shell_integration.shellcode(["ironburst"], shell=arguments.shell))
    return 0
