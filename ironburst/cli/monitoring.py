"""`ironburst monitoring STACK_FILE --to FOLDER`: what a site's own Prometheus, Alertmanager and Grafana read."""

from __future__ import annotations

import argparse
from pathlib import Path

from ironburst.cli import Subparsers, site_options
from ironburst.document import of_stack
from ironburst.monitoring import site_files, targets
from ironburst.system import files, secrets
from ironburst.system.bad_input import BadInput

EPILOG = """\
It writes ironburst-alerts.yml (rules), targets/*.json (for file_sd: owned nodes; rented ones are none), \
dashboards/*.json (for Grafana, 11.6 or later), prometheus.yml, and of a stack with `monitoring.tell` \
alertmanager.yml, which has the secrets in clear and is readable only by you. Nothing is asked or started.

exit codes:
  0  written
  2  bad input: the declaration, a secret that can't be had, or a file that can't be written

example:
  ironburst monitoring stacks/Pulumi.prod.yaml --to /etc/prometheus/ironburst
  promtool check config /etc/prometheus/ironburst/prometheus.yml"""


def add_parser(subparsers: Subparsers) -> None:
    """The verb's arguments and help."""
    parser = subparsers.add_parser(
        "monitoring",
        help="alert rules, targets, receivers and dashboards for Prometheus and Grafana",
        description="Write what Prometheus, Alertmanager and Grafana read to watch this site.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="it is made if need be")
    told = "where Prometheus finds it (default: %(default)s)"
    parser.add_argument("--alertmanager", default="localhost:9093", metavar="HOST:PORT", help=told)
    told = "where Prometheus finds the controller's metrics: what `ironburst run --metrics` was told (default: "
    told += f"{targets.CONTROLLER}, for a Prometheus on the head)"
    parser.add_argument("--controller", metavar="HOST:PORT", help=told)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Write; the exit code."""
    site, folder = of_stack.document(arguments.stack_file), arguments.to.absolute()
    default = site.monitoring.controller or targets.CONTROLLER
    controller = (arguments.controller or default) if site.pools else ""
    place = site_files.Place(str(folder), arguments.alertmanager, controller)
    head = next((each.head for each in site.schedulers if each.head), None)
    its = site_files.of_prometheus(site.cluster, site.hosts, head, place)
    try:
        its |= site_files.of_grafana()
    except ImportError:
        print("no dashboards: they need Grafana's SDK: pip install 'ironburst[monitoring]'")
    if site.monitoring.tell:

        def secret(reference: str) -> str:
            return secrets.resolve(reference, near=arguments.stack_file, region=site.region).strip()

        try:
            its[site_files.ALERTMANAGER] = site_files.of_alertmanager(site.monitoring, secret)
        except secrets.SecretError as error:
            raise BadInput(f"monitoring: {error}") from None
    try:
        for name, text in its.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            files.write(folder / name, text, 0o600 if name == site_files.ALERTMANAGER else 0o644)
    except OSError as error:
        raise BadInput(f"{error.filename or folder} can't be written: {error.strerror}") from None
    if not site.monitoring.tell:
        print("no alertmanager.yml: the stack declares no `monitoring.tell`, who is told of what")
    return 0
