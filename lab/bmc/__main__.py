"""`python -m lab.bmc`: the BMCs of a lab (--prefix), or of machines in memory (--nodes). The only module of the
stand-in that knows hosts: it joins the two.
"""

import sys

from lab.bmc import alone
from lab.hosts import bmcs

sys.exit(bmcs.main() if any(argument.startswith("--prefix") for argument in sys.argv[1:]) else alone.main())
