"""`python -m lab.azure`: the cloud of a lab. It joins the stand-in and the lab's hosts."""

import sys

from lab.hosts.azure_machines import main

sys.exit(main())
