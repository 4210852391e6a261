"""Runs a Pulumi Python program against the engine: what the CLI's language host does. Started as a file, not imported.

Usage: shim.py --monitor H:P --engine H:P --project P --stack S --root_directory DIR --organization O
       --dry_run true|false --parallel N PROGRAM. Exit 32: the error was already reported to the engine.
"""

import argparse
import asyncio
import concurrent.futures
import logging
import os
import runpy
import sys
import traceback
from pathlib import Path

import pulumi
import pulumi.runtime

ALREADY_REPORTED = 32


def main() -> int:
    """Run the program; returns the process's exit code."""
    parser = argparse.ArgumentParser()
    for name in ("monitor", "engine", "project", "stack", "root_directory", "organization", "dry_run"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--parallel", type=int, default=8)
    parser.add_argument("program")
    args = parser.parse_args()

    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    sys.argv = [args.program]
    pulumi.runtime.set_all_config(pulumi.runtime.get_config_env(), pulumi.runtime.get_config_secret_keys_env())
    pulumi.runtime.configure(
        pulumi.runtime.Settings(
            monitor=args.monitor,
            engine=args.engine,
            project=args.project,
            stack=args.stack,
            parallel=args.parallel,
            dry_run=args.dry_run == "true",
            organization=args.organization,
            root_directory=args.root_directory,
        )
    )

    # Each RegisterResource blocks one thread; asyncio's default executor is too small for that on few cores.
    loop = asyncio.new_event_loop()
    loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(max(args.parallel, 1) * 4))
    asyncio.set_event_loop(loop)

    program = Path(args.program).absolute()
    sys.path.insert(0, str(program if program.is_dir() else program.parent))
    try:
        loop.run_until_complete(
            pulumi.runtime.run_in_stack(lambda: (runpy.run_path(str(program), run_name="__main__"), None)[1])
        )
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return ALREADY_REPORTED
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    except BaseException:
        text = traceback.format_exc()
        if "Resource monitor has terminated" not in text:
            pulumi.log.error("Program failed with an unhandled exception:\n" + text)
        return ALREADY_REPORTED
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # not sys.exit: that would wait for threads that wait for the engine
