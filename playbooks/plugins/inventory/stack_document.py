"""Inventory of a cluster from its published ClusterDocument: no cloud logic, only a translation of names.

Groups: one for each role (group name = role name), `bare_metal` and `cloud`, `hall_<hall>`, `rack_<hall>_<rack>`,
`partition_<name>`, `fabric_<kind>`. Host variables: `ansible_host`, `ansible_user`, `ansible_become` (for anybody but
root), `node_sudo_secret` (a reference) and by it `ansible_become_password`, `node_<field>` for every field of the
host in the document (`node_software`: its exact set), `node_locked`, `node_head_slurm`, `node_imex`,
`node_cables` and `node_monitoring` (ironburst.document.variables says what they are), `cluster_software` (host
variables, because these beat group_vars: what the document fixes no group_vars may change), and of two schedulers the
host's own as `cluster_scheduler`.
Variables of `all`: `cluster_name`, `cluster_serial`, `cluster_region`, `cluster_scheduler`, `cluster_schedulers`,
`cluster_filesystem`, `cluster_subnet_managers`, `cluster_data_science`, `cluster_data`, `cluster_keeper`. That host
alone has what grows with the hosts: `cluster_hosts`, `cluster_pools`, `cluster_shares`, `cluster_topology`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin
from ansible.template import trust_as_template

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # ansible's own process does not know the repository
from ironburst.document import DocumentError, read, variables

DOCUMENTATION = """
name: stack_document
short_description: hosts of an ironburst cluster, from its ClusterDocument
description:
  - Reads the ClusterDocument that `ironburst publish` wrote, and makes groups and variables of it. Asks no cloud.
options:
  plugin:
    description: names this plugin
    required: true
    choices: [stack_document]
  document:
    description:
      - Path of the published document. A relative path in the file is relative to the file's folder, one in the
        environment to the current folder.
    type: path
    env:
      - name: IRONBURST_DOCUMENT
  last_good:
    description: Where a good copy is kept; it is used while the document itself is gone or damaged. None without it.
    type: str
    env:
      - name: IRONBURST_DOCUMENT_LAST_GOOD
"""

EXAMPLES = """
# inventory/prod/stack.yml
plugin: stack_document
document: /srv/ironburst/prod.json
"""


SUDO_PASSWORD = "{{ lookup('secret', node_sudo_secret, region=cluster_region) }}"


def group_name(*parts: str) -> str:
    """A valid group name: `rack_hall_a_r01` from ("rack", "hall-a", "r01")."""
    return re.sub(r"\W", "_", "_".join(parts))


def groups_of(host: dict) -> list[str]:
    """The groups of one host of the document."""
    groups = [*host["roles"], host["kind"], group_name("fabric", host["fabric"])]
    if host["hall"]:
        groups.append(group_name("hall", host["hall"]))
    if host["rack"]:
        groups.append(group_name("rack", host["hall"] or "", host["rack"]))
    if host["partition"]:
        groups.append(group_name("partition", host["partition"]))
    return groups


class InventoryModule(BaseInventoryPlugin):
    """See DOCUMENTATION."""

    NAME = "stack_document"

    def verify_file(self, path):
        """Is it an inventory of ours, by its name?"""
        return super().verify_file(path) and Path(path).name in ("stack.yml", "stack.yaml")

    def parse(self, inventory, loader, path, cache=True):
        """Read the document and add its hosts, groups and variables. Raises AnsibleParserError."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        given = self.get_option("document")
        if not given:
            raise AnsibleParserError(
                f"{path} names no ClusterDocument: set IRONBURST_DOCUMENT to the file that `ironburst publish` wrote, "
                f"or `document:` in {path}"
            )
        last_good = self.get_option("last_good")
        try:
            model = read(Path(given), Path(last_good).expanduser() if last_good else None)
        except DocumentError as error:
            raise AnsibleParserError(str(error)) from None
        document = model.model_dump(mode="json")
        self._set("all", variables.of_all(document))
        of_others = variables.of_others(document)
        for host in document["hosts"]:
            if not host.get("managed", True):
                continue
            name = host["name"]
            self.inventory.add_host(name)
            for group in groups_of(host):
                self.inventory.add_group(group)
                self.inventory.add_child(group, name)
            own = variables.of_host(document, host) | of_others[name]
            if own["node_sudo_secret"]:  # resolved where it is used: no listing shows it
                own["ansible_become_password"] = trust_as_template(SUDO_PASSWORD)
            self._set(name, own)
        for keeper in variables.keepers(document):
            self._set(keeper, variables.of_keeper(document))

    def _set(self, name, values):
        for key, value in values.items():
            self.inventory.set_variable(name, key, value)
