import sys

from lab.aws.server import main

sys.exit(main())
