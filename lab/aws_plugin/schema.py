"""What pulumi-aws declares, and policies that it takes as objects."""

from __future__ import annotations

import functools
import json

import pulumi_aws
from pulumi import _types

from lab.provider import schema
from lab.provider.schema import is_policy
from lab.provider.wire import UNKNOWN, Props, has_secret, has_unknown, plain, secret

registry = functools.partial(schema.registry, pulumi_aws)
args_class = functools.partial(schema.args_class, pulumi_aws)


def policies_as_text(cls: type, inputs: Props) -> Props:
    """The inputs with policies that were given as objects turned into JSON text, as the real plugin's Check does."""
    types = _types.input_type_types(cls)
    out = dict(inputs)
    for key, value in inputs.items():
        if isinstance(plain(value), dict) and key in types and is_policy(types[key]):
            text = UNKNOWN if has_unknown(plain(value)) else json.dumps(plain(value))
            out[key] = secret(text) if has_secret(value) else text
    return out
