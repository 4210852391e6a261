"""The options of module_utils/occupants.py, for the pages of the modules that have them."""

from __future__ import annotations


class ModuleDocFragment:
    """What a module may not disturb."""

    DOCUMENTATION = r"""
options:
  disturbs:
    description: what that step would disturb
    type: list
    elements: str
    choices: [jobs, gpus, containers, users, schedulers, unseen]
    default: [jobs, gpus, containers, users, schedulers, unseen]
  may_disturb:
    description: what somebody has declared that may be disturbed on this host, of containers, users, schedulers, unseen
    type: list
    elements: str
    default: []
"""
