"""References to secrets, resolved at the moment of use.

A reference is `env:NAME`, `file:PATH` or `aws-secretsmanager:NAME[#JSON_KEY]`.
A relative PATH lies in the project's folder, the one with Pulumi.yaml, wherever a command is started.
The value never enters a stack's state, the document, an inventory, an image, a log or the ledger: pass the reference
on and resolve it where the secret is needed.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

PROJECT = "Pulumi.yaml"
SCHEMES = ("env", "file", "aws-secretsmanager")
FORMS = {
    "env": (r"[A-Za-z_][A-Za-z0-9_]*", "write the variable's name alone, as in env:BMC_PASSWORD"),
    "file": (r"\S(.*\S)?", "write the path without blanks around it"),
    "aws-secretsmanager": (
        r"[A-Za-z0-9/_+=.@:-]+(#\S+)?",
        "a secret's name has letters, digits and /_+=.@- alone, as in aws-secretsmanager:ironburst/prod/munge-key",
    ),
}
"""scheme: the form of what follows, and what to write"""


class SecretError(ValueError):
    """A reference that does not resolve; the text is one sentence and never holds the secret."""


def check(reference: str) -> None:
    """Raise SecretError unless `reference` has the shape of one. Resolves nothing."""
    scheme, colon, name = reference.partition(":")
    if not colon or scheme not in SCHEMES or not name:
        raise SecretError(
            f"{shown(reference)} is not a secret reference: write env:NAME, file:PATH or aws-secretsmanager:NAME"
        )
    form, words = FORMS[scheme]
    if not re.fullmatch(form, name):
        raise SecretError(f"{reference!r} is no reference that resolves: {words}")


def in_secretsmanager(reference: str) -> bool:
    """Does it lie where a node in the cloud can read it, by its role?"""
    return reference.startswith("aws-secretsmanager:")


def shown(reference: str) -> str:
    """What may be printed of a reference: all of it if it has a known scheme,
    else nothing (it may be the secret itself).
    """
    return repr(reference) if reference.partition(":")[0] in SCHEMES else "the given value"


def file_of(reference: str, near: Path | None = None) -> Path:
    """The path that a file: reference names. A relative one lies in the project: of `near` (a stack file), else of the
    working directory, else the checkout that this package lies in. Raises SecretError.
    """
    path = Path(reference.removeprefix("file:")).expanduser()
    if path.is_absolute():
        return path
    above = [*(near.absolute().parents if near else ()), Path.cwd(), *Path.cwd().parents, *Path(__file__).parents]
    for folder in above:
        if (folder / PROJECT).is_file():
            return folder / path
    raise SecretError(
        f"the secret reference {reference!r} does not resolve: it is relative, and there is no {PROJECT} above the "
        f"working directory: write an absolute path, as in file:/etc/ironburst/{path.name}"
    )


def resolve(reference: str, *, region: str | None = None, near: Path | None = None) -> str:
    """The secret behind `reference`, without a trailing newline; `near`: see file_of. Raises SecretError."""
    check(reference)
    scheme, _, name = reference.partition(":")
    if scheme == "env":
        value = os.environ.get(name)
        if not value:
            raise SecretError(
                f"the secret reference {reference!r} does not resolve: set the environment variable {name}"
            )
        return value
    if scheme == "file":
        path = file_of(reference, near)
        try:
            value = path.read_text().rstrip("\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not text"
            raise SecretError(f"the secret reference {reference!r} does not resolve: {path}: {reason}") from None
        if not value:
            raise SecretError(f"the secret reference {reference!r} does not resolve: {path} is empty")
        return value
    return _from_secretsmanager(reference, name, region)


def store(reference: str, value: str, *, region: str | None = None) -> None:
    """Put a new value behind an aws-secretsmanager reference; the secret itself is there before. Raises SecretError."""
    check(reference)
    scheme, _, name = reference.partition(":")
    if scheme != "aws-secretsmanager" or "#" in name:
        raise SecretError(f"nothing is written to {reference!r}: it has to be aws-secretsmanager:NAME, a whole secret")
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        _secretsmanager(name, region).put_secret_value(SecretId=name, SecretString=value)
        return
    except ClientError as error:
        reason = error.response.get("Error", {}).get("Code", "refused")
    except BotoCoreError as error:
        reason = type(error).__name__
    raise SecretError(f"nothing can be written to {reference!r}: AWS Secrets Manager says {reason}")


def _secretsmanager(secret_id: str, region: str | None) -> Any:
    import boto3  # imported here: reading a stack file must not load the AWS SDK

    of_arn = secret_id.split(":")[3] if secret_id.startswith("arn:") else region
    return boto3.client("secretsmanager", region_name=of_arn)


def _from_secretsmanager(reference: str, name: str, region: str | None) -> str:
    from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

    secret_id, _, key = name.partition("#")
    try:
        answer = _secretsmanager(secret_id, region).get_secret_value(SecretId=secret_id)
        text = answer["SecretString"]
        return str(json.loads(text)[key]) if key else text
    except ClientError as error:
        reason = error.response.get("Error", {}).get("Code", "refused")
    except NoRegionError:
        reason = "nothing, for no region is set: export AWS_DEFAULT_REGION"
    except BotoCoreError as error:
        reason = type(error).__name__
    except (KeyError, TypeError, ValueError):
        reason = f"no text under the key {key!r}" if key else "it holds no text"
    raise SecretError(f"the secret reference {reference!r} does not resolve: AWS Secrets Manager says {reason}")
