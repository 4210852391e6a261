"""AWS Secrets Manager: `aws-secretsmanager:NAME[#JSON_KEY]`. The SDK is loaded when it is asked."""

from __future__ import annotations

import json
from typing import Any

from ironburst.system.secret_store import Store, Unanswered


def _client(secret_id: str, region: str | None) -> Any:
    import boto3  # imported here: reading a stack file must not load the AWS SDK

    of_arn = secret_id.split(":")[3] if secret_id.startswith("arn:") else region
    return boto3.client("secretsmanager", region_name=of_arn)


def _get(name: str, region: str | None) -> str:
    from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

    secret_id, _, key = name.partition("#")
    try:
        text = _client(secret_id, region).get_secret_value(SecretId=secret_id)["SecretString"]
        return str(json.loads(text)[key]) if key else text
    except ClientError as error:
        reason = error.response.get("Error", {}).get("Code", "refused")
    except NoRegionError:
        reason = "nothing, for no region is set: export AWS_DEFAULT_REGION"
    except BotoCoreError as error:
        reason = type(error).__name__
    except (KeyError, TypeError, ValueError):
        reason = f"no text under the key {key!r}" if key else "it holds no text"
    raise Unanswered(reason)


def _put(name: str, value: str, region: str | None) -> None:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        _client(name, region).put_secret_value(SecretId=name, SecretString=value)
        return
    except ClientError as error:
        reason = error.response.get("Error", {}).get("Code", "refused")
    except BotoCoreError as error:
        reason = type(error).__name__
    raise Unanswered(reason)


SECRETS_MANAGER = Store(
    provider="aws",
    scheme="aws-secretsmanager",
    called="AWS Secrets Manager",
    form=r"[A-Za-z0-9/_+=.@:-]+(#\S+)?",
    hint="a secret's name has letters, digits and /_+=.@- alone, as in aws-secretsmanager:ironburst/prod/munge-key",
    get=_get,
    put=_put,
)
