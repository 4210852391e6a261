"""What an instance learns from its metadata service, and with its role's credentials from Secrets Manager. It asks from
its own address, by which the service knows it.
"""

import http.client
import json
from dataclasses import dataclass, field
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lab.system import LabError

TOKEN_S = 21600
TIMEOUT_S = 5
PREFIX = "aws-secretsmanager:"


@dataclass(frozen=True)
class Metadata:
    """The service at `host`:`port`, asked from `address`. Version 2 only."""

    address: str
    host: str
    port: int
    _token: list[str] = field(default_factory=list)

    def get(self, path: str) -> str:
        """The text below /latest/; LabError for what isn't there, or if nobody answers."""
        if not self._token:
            self._token.append(self._ask("PUT", "api/token", {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_S)}))
        return self._ask("GET", path, {"X-aws-ec2-metadata-token": self._token[0]})

    def _ask(self, method: str, path: str, headers: dict[str, str]) -> str:
        link = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S, source_address=(self.address, 0))
        try:
            link.request(method, f"/latest/{path}", headers=headers)
            answer = link.getresponse()
            text = answer.read().decode()
        except OSError as error:
            raise LabError(f"the metadata service doesn't answer: {error}") from None
        finally:
            link.close()
        if answer.status != 200:
            raise LabError(f"the metadata service answers {answer.status} to {path}")
        return text

    def user_data(self) -> dict[str, Any]:
        """As the launch gave it."""
        try:
            said: dict[str, Any] = json.loads(self.get("user-data"))
        except ValueError:
            raise LabError("the user data is no JSON") from None
        if said.get("ironburst") != 1 or said.get("scheduler") != "kubernetes":
            raise LabError("the user data is not that of a node for Kubernetes")
        return said

    def secret(self, reference: str, region: str, endpoint: str) -> str:
        """What lies in Secrets Manager, read with the credentials of this instance's role. LabError."""
        role = self.get("meta-data/iam/security-credentials/").strip()
        keys = json.loads(self.get(f"meta-data/iam/security-credentials/{role}"))
        session = boto3.Session(keys["AccessKeyId"], keys["SecretAccessKey"], keys["Token"], region_name=region)
        once = Config(retries={"total_max_attempts": 1}, connect_timeout=TIMEOUT_S, read_timeout=TIMEOUT_S)
        client = session.client("secretsmanager", endpoint_url=endpoint, config=once)
        try:
            return str(client.get_secret_value(SecretId=reference.removeprefix(PREFIX))["SecretString"])
        except ClientError as error:
            said = error.response["Error"]
            raise LabError(f"{reference}: Secrets Manager says {said['Code']}: {said.get('Message', '')}") from None
        except BotoCoreError as error:
            raise LabError(f"{reference}: {error}") from None
