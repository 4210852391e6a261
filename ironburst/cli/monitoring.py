"""`ironburst monitoring STACK_FILE --to FOLDER`: what a site's own Prometheus, Alertmanager and Grafana read."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import yaml

from ironburst.cli import Subparsers, site_options
from ironburst.config import declared_halls
from ironburst.monitoring import dashboards, receivers, rules, targets
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
        description="Write what Prometheus, Alertmanager and Grafana read to watch this site.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="it is made if need be")
    told = "where Prometheus finds it (default: %(default)s)"
    parser.add_argument("--alertmanager", default="localhost:9093", metavar="HOST:PORT", help=told)
    told = "where Prometheus finds the controller's metrics: what `ironburst run --metrics` was told (default: "
    told += "%(default)s, for a Prometheus on the head)"
    parser.add_argument("--controller", default=targets.CONTROLLER, metavar="HOST:PORT", help=told)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Write; the exit code."""
    config, folder = declared_halls.usable(arguments.stack_file), arguments.to.absolute()
    its = {
        "ironburst-alerts.yml": (rules.text(), 0o644),
        "prometheus.yml": (_yaml(targets.prometheus(config.name, str(folder), arguments.alertmanager)), 0o644),
    }
    for job, found in targets.of(config, arguments.controller).items():
        its[f"targets/{job}.json"] = (json.dumps(found, indent=2) + "\n", 0o644)
    try:
        its |= {f"dashboards/{board.uid}.json": (dashboards.as_json(board), 0o644) for board in dashboards.dashboards()}
    except ImportError:
        print("no dashboards: they need Grafana's SDK: pip install 'ironburst[monitoring]'")
    region = config.cloud.region if config.cloud else None
    if config.monitoring.tell:

        def secret(reference: str) -> str:
            return secrets.resolve(reference, near=arguments.stack_file, region=region).strip()

        try:
            its["alertmanager.yml"] = (_yaml(receivers.alertmanager(config.monitoring, secret)), 0o600)
        except secrets.SecretError as error:
            raise BadInput(f"monitoring: {error}") from None
    try:
        for name, (text, mode) in its.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            files.write(folder / name, text, mode)
    except OSError as error:
        raise BadInput(f"{error.filename or folder} can't be written: {error.strerror}") from None
    if not config.monitoring.tell:
        print("no alertmanager.yml: the stack declares no `monitoring.tell`, who is told of what")
    return 0


def _yaml(value: object) -> str:
    return yaml.safe_dump(value, sort_keys=False)
