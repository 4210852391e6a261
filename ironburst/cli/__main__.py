from ironburst.cli import main

raise SystemExit(main())
