"""`ironburst monitoring STACK_FILE --to FOLDER`: what a site's own Prometheus, Alertmanager and Grafana read."""

from __future__ import annotations

import argparse
import ipaddress
from pathlib import Path

from ironburst import document
from ironburst.burst import explain
from ironburst.cli import Subparsers, site_options
from ironburst.cli.arguments import Keyed
from ironburst.document import ClusterDocument, of_stack
from ironburst.document.model import Host
from ironburst.monitoring import kubernetes, site_files, targets
from ironburst.system import files, secrets
from ironburst.system.bad_input import BadInput

EPILOG = """\
It writes ironburst-alerts.yml (rules), targets/*.json (for file_sd: declared nodes; rented ones push), \
dashboards/*.json (for Grafana, 11.6 or later), prometheus.yml, of a stack with a Kubernetes cluster \
kubernetes.yml (for Prometheus' operator 0.65 or later, by kubectl apply), and of a stack with `monitoring.tell` \
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
    )
    parser.add_argument("stack_file", type=Path, help="as in stacks/Pulumi.prod.yaml")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="it is made if need be")
    told = "where Prometheus finds it (default: %(default)s)"
    parser.add_argument("--alertmanager", default="localhost:9093", metavar="HOST:PORT", help=told)
    told = "where Prometheus finds the controller's metrics: what `ironburst run --metrics` was told; of two heads "
    told += (
        f"once for each, the first one's first (default: as `monitoring.server` does, or {targets.CONTROLLER}, for a "
    )
    told += "Prometheus on the head)"
    parser.add_argument("--controller", action="append", metavar="HOST:PORT", help=told)
    told = "the published document: only it has the addresses of fixed cloud nodes, which are scraped, too"
    parser.add_argument("--document", type=Path, metavar="FILE", help=told)
    told = "of the objects for Prometheus' operator (default: %(default)s)"
    parser.add_argument("--namespace", default="monitoring", help=told)
    told = "that your Prometheus selects such objects by, as release=kube-prometheus-stack; repeatable"
    parser.add_argument("--label", action=Keyed, default=[], metavar="KEY=VALUE", help=told)
    parser.set_defaults(func=run)


@site_options.guarded
def run(arguments: argparse.Namespace) -> int:
    """Write; the exit code."""
    site, folder = of_stack.document(arguments.stack_file), arguments.to.absolute()
    controllers = _controllers(site, arguments.controller)
    pushed = bool(site.monitoring.receiver)
    place = site_files.PrometheusPlace(str(folder), controllers, arguments.alertmanager, pushed=pushed)
    hosts = _addressed(site.hosts, arguments.document)
    its = site_files.of_prometheus(site.cluster, hosts, place)
    if any(each.kind == "kubernetes" or each.bridge for each in site.schedulers):
        its["kubernetes.yml"] = _for_operator(targets.of(hosts, controllers), arguments)
    try:
        its |= site_files.of_grafana()
    except ImportError:
        print("no dashboards: they need Grafana's SDK: pip install 'ironburst[monitoring]'")
    if site.monitoring.tell:

        def secret(reference: str) -> str:
            return secrets.resolve_in(reference, site.regions, arguments.stack_file).strip()

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


def _controllers(site: ClusterDocument, given: list[str] | None) -> dict[str, str]:
    """As targets.of has them. Raises BadInput."""
    if not site.pools:
        return {}
    try:
        return targets.controllers(site.schedulers, given or site.monitoring.controllers or [targets.CONTROLLER])
    except ValueError as error:
        raise BadInput(f"--controller {error}") from None


def _addressed(hosts: list[Host], published: Path | None) -> list[Host]:
    """With addresses of fixed cloud nodes, which a stack file doesn't know."""
    if published is None:
        if unknown := [host.name for host in hosts if host.managed and not host.address]:
            print(f"no targets: {explain.listed(unknown)}: only the published document has their addresses: --document")
        return hosts
    known = {host.name: host for host in document.read(published).hosts}
    return [host if host.address else known.get(host.name, host) for host in hosts]


def _for_operator(found: dict[str, targets.Targets], arguments: argparse.Namespace) -> str:
    """Raises BadInput."""
    for each in found["ironburst"]:
        host = each["targets"][0].rpartition(":")[0]
        try:
            if ipaddress.ip_address(host).is_loopback:
                found = found | {"ironburst": []}
                print("no ServiceMonitor of the controller: no pod reaches its loopback: --controller ADDRESS:PORT")
        except ValueError:
            raise BadInput(f"--controller {each['targets'][0]}: a cluster's Service wants an IP address") from None
    labels = dict(pair.partition("=")[::2] for pair in arguments.label)
    if wrong := [pair for pair in arguments.label if "=" not in pair]:
        raise BadInput(f"--label {wrong[0]}: write KEY=VALUE, as release=kube-prometheus-stack")
    return kubernetes.text(kubernetes.objects(found, arguments.namespace, labels))
