"""Lookup of Alertmanager's settings, its secrets resolved on the control node: `lookup('alertmanager', monitoring)`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # ansible's own process does not know the repository
from ironburst.document.monitoring import MonitoringDocument
from ironburst.monitoring import site_files
from ironburst.system.secrets import SecretError, resolve_in

DOCUMENTATION = """
name: alertmanager
author: ironburst
short_description: Alertmanager's settings of a declared `monitoring`
description:
  - Who is told of what, with secrets in clear. Use it with no_log.
options:
  _terms:
    description: the document's part C(monitoring)
    required: true
  regions:
    description: regions of clouds, whose stores of secrets are asked there, by provider
    type: dict
"""


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        """A text for each term. Raises AnsibleLookupError with a sentence that holds no secret."""
        self.set_options(var_options=variables, direct=kwargs)
        regions = self.get_option("regions") or {}
        try:
            return [
                site_files.of_alertmanager(
                    MonitoringDocument.model_validate_json(json.dumps(term)),
                    lambda reference: resolve_in(reference, regions).strip(),
                )
                for term in terms
            ]
        except SecretError as error:
            raise AnsibleLookupError(f"monitoring: {error}") from None
