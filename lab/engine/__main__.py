"""`python -m lab.engine`: the Pulumi CLI's own verbs and flags."""

import sys

from lab.engine.cli import main

if __name__ == "__main__":
    sys.exit(main())
