"""`python -m lab.aws`: the cloud of a lab. The only module of the stand-in that knows hosts: it joins the two."""

import sys

from lab.hosts.instances import main

sys.exit(main())
