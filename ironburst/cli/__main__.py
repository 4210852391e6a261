"""`python -m ironburst.cli`: the `ironburst` command."""

from ironburst.cli import main

raise SystemExit(main())
