#!/usr/bin/python3
"""Ansible module `api_version`: the version of a Kubernetes API server, as this node gets it. Changes nothing."""

from __future__ import annotations

DOCUMENTATION = r"""
module: api_version
short_description: the version of a Kubernetes API server
description:
  - Asks C(/version) with kubelet's certificate, where it has one; else as nobody, who may ask it in most clusters.
options:
  server:
    description: URL.
    type: str
    required: true
  ca:
    description: Certificates of its authority, PEM; empty, those that the node has of it since it joined.
    type: str
    default: ""
  timeout:
    description: Seconds that it may take.
    type: int
    default: 10
author: ironburst
"""

EXAMPLES = r"""
- name: Ask the API server for its version
  api_version:
    server: https://10.0.0.5:6443
    ca: "{{ lookup('file', 'ca.crt') }}"
"""

RETURN = r"""
version:
  description: as C(v1.36.3); empty where the server doesn't tell it to strangers
  returned: always
  type: str
"""

import contextlib  # noqa: E402
import json  # noqa: E402
import ssl  # noqa: E402
import urllib.error  # noqa: E402
import urllib.request  # noqa: E402

from ansible.module_utils.basic import AnsibleModule  # noqa: E402

CERTIFICATE = "/var/lib/kubelet/pki/kubelet-client-current.pem"
AUTHORITY = "/etc/ironburst/cluster-ca.crt"


class Failed(Exception):
    """Why there is no answer; one sentence."""


def version(server, ca, timeout, certificate=CERTIFICATE, authority=AUTHORITY):
    """The server's gitVersion; empty where it refuses to say. Raises Failed."""
    try:
        context = ssl.create_default_context(cadata=ca) if ca else ssl.create_default_context(cafile=authority)
    except (OSError, ValueError) as error:  # ssl's own errors are OSErrors
        raise Failed("the certificate of the cluster's authority can't be used: {}".format(error)) from None
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # Python 3.13 refuses authorities that kubelet takes
    with contextlib.suppress(OSError):  # none yet
        context.load_cert_chain(certificate)
    https = urllib.request.HTTPSHandler(context=context)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)
    try:
        with opener.open(server.rstrip("/") + "/version", timeout=timeout) as answer:
            return str(json.loads(answer.read().decode())["gitVersion"])
    except urllib.error.HTTPError as error:
        if error.code in (401, 403):
            return ""
        raise Failed("the API server {} answers {} for /version".format(server, error.code)) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "reason", error)
        raise Failed("the API server {} doesn't tell its version: {}".format(server, reason)) from None


def main():
    """Answer with the version."""
    spec = {
        "server": {"type": "str", "required": True},
        "ca": {"type": "str", "default": ""},
        "timeout": {"type": "int", "default": 10},
    }
    module = AnsibleModule(argument_spec=spec, supports_check_mode=True)
    try:
        found = version(module.params["server"], module.params["ca"], module.params["timeout"])
    except Failed as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=False, version=found)


if __name__ == "__main__":
    main()
