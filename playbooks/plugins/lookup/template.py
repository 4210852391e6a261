"""Ansible's own lookup `template`, without its copy of all variables of a host for each file that is rendered: what a
template is given it can't change (ADR 122).
"""

from __future__ import annotations

from ansible.plugins.loader import lookup_loader
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: template
author: ironburst
short_description: ansible.builtin.template without a copy of all variables
description:
  - Takes all that ansible.builtin.template takes.
options:
  _terms: {description: names of templates}
"""


class Shared(dict):
    """Variables whose values are shared with their copy."""

    def __deepcopy__(self, _memo):
        return dict(self)


class LookupModule(LookupBase):
    """See DOCUMENTATION."""

    def run(self, terms, variables=None, **kwargs):
        """The texts."""
        own = lookup_loader.get("ansible.builtin.template", loader=self._loader, templar=self._templar)
        return own.run(terms, Shared(variables), **kwargs)
