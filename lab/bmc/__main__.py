"""`python -m lab.bmc`: the BMCs of a lab. The only module of the stand-in that knows hosts: it joins the two."""

import sys

from lab.hosts.bmcs import main

sys.exit(main())
