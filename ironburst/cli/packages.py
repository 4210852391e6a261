"""`ironburst packages slurm TARBALL`: SchedMD's packages of Slurm, into the site's own repository."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ironburst.adapters.slurm import build as slurm_build
from ironburst.cli import Subparsers

EPILOG = """\
exit codes:
  0  the packages are in the repository, and its lists are signed
  2  the tarball isn't the declared one, something that the build needs is missing, or the build failed; the
     repository has no new package
  1  a bug

example:
  ironburst packages slurm slurm-25.05.3.tar.bz2 --sha256 1f3a... --repository /srv/slurm --key repo@example.org"""


def add_parser(subparsers: Subparsers) -> None:
    """`ironburst packages` and its verb."""
    parser = subparsers.add_parser(
        "packages",
        description="Packages that no repository has.",
    )
    verbs = parser.add_subparsers(dest="packages_verb", required=True, metavar="VERB")
    slurm = verbs.add_parser(
        "slurm",
        help="from SchedMD's tarball, for the system that this runs on",
        description="Build SchedMD's packages from its tarball, by the tarball's own rules (debian/, or slurm.spec "
        "with rpmbuild -ta), for the system that this runs on, and put them into a signed apt or dnf repository.",
        epilog=EPILOG,
    )
    option = slurm.add_argument
    option("tarball", type=Path, help="as SchedMD names it: slurm-25.05.3.tar.bz2")
    option("--sha256", required=True, metavar="HEX", help="checksum of the tarball, from SchedMD's download page")
    option("--repository", required=True, type=Path, metavar="FOLDER", help="the repository; made if it isn't there")
    option("--key", required=True, metavar="ID", help="key of gpg's keyring that signs it")
    option("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes of make (all cores)")
    slurm.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """Build, and say how hosts get to it; the exit code."""
    try:
        built = slurm_build.build(
            arguments.tarball, arguments.sha256, arguments.repository, arguments.key, jobs=arguments.jobs
        )
        apt = slurm_build.family() == "debian"
    except slurm_build.BuildError as error:
        print(f"ironburst packages: {error}", file=sys.stderr)
        return 2
    print(f"{arguments.repository}: Slurm {built.version}, {len(built.packages)} packages")
    for name in built.packages:
        print(f"  {name}")
    print("serve the folder, and declare it in group_vars (ADDRESS is where hosts find it):")
    print(f"  base_{'apt' if apt else 'dnf'}_repositories:")
    suite = f", suite: {slurm_build.SUITE}, components: [main]" if apt else ", repo_gpgcheck: true"
    key = f"key_url: ADDRESS/{slurm_build.KEY}, key_sha256: {built.key_sha256}"
    print(f"    - {{name: slurm, url: ADDRESS{suite}, {key}}}")
    return 0
