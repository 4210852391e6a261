"""The options of ansible.builtin.ssh, as the installed Ansible documents them, for a connection that takes the same."""

from __future__ import annotations

from textwrap import dedent

from ansible.plugins.connection import ssh


class ModuleDocFragment:
    """What ssh takes."""

    DOCUMENTATION = "options:" + dedent(ssh.DOCUMENTATION).partition("\noptions:")[2]
