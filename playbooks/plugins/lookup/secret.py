"""Lookup of a secret by its reference, on the control node, at the moment of use: `lookup('secret', 'env:NAME')`."""

from __future__ import annotations

import sys
from pathlib import Path

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))  # ansible's own process does not know the repository
from ironburst.system.secrets import SecretError, resolve_in

DOCUMENTATION = """
name: secret
author: ironburst
short_description: a secret by its reference
description:
  - Resolves references of the forms env:NAME, file:PATH and, of a cloud's store of secrets, STORE:NAME on the
    control node. Use it with no_log.
options:
  _terms:
    description: references
    required: true
  regions:
    description: regions of clouds, whose stores of secrets are asked there, by provider
    type: dict
"""


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        """The secret of each reference. Raises AnsibleLookupError with a sentence that holds no secret."""
        self.set_options(var_options=variables, direct=kwargs)
        try:
            regions = self.get_option("regions") or {}
            return [resolve_in(term, regions) for term in terms]
        except SecretError as error:
            raise AnsibleLookupError(str(error)) from None
