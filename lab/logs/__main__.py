"""A log centre to try things with: `python -m lab.logs victorialogs|opensearch HOST:PORT FOLDER`."""

import os
import sys
from pathlib import Path

from lab.logs import opensearch, opensearch_command, victoria, victoria_command


def main() -> None:
    """Become it."""
    if len(sys.argv) != 4 or sys.argv[1] not in ("victorialogs", "opensearch"):
        sys.exit(__doc__)
    kind, address, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if kind == "opensearch":
        command = opensearch_command(opensearch(), address, folder)
    else:
        command = victoria_command(victoria(), address, folder)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
