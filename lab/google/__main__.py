"""`python -m lab.google`: the cloud of a lab. It joins the stand-in and the lab's hosts."""

import sys

from lab.hosts.google_instances import main

sys.exit(main())
