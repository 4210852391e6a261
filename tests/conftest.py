"""What keeps the tests cheap; it changes nothing that a test sees."""

import os
from functools import cache

from botocore import session

# Each session of botocore's reads its models from disk, 0.2 s of CPU for EC2's: here all share one reader
session.create_loader = cache(session.create_loader)

# Else each program that a test starts compiles the package anew
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
