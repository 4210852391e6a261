"""The demo in Azure: its Resource Manager by its SDK's own models, and what is beside it (lab/azure)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from lab import names
from lab.demo.cloud import MUNGE_KEY, Commands, Room
from lab.packages import cloud_clients

MUNGE_SECRET, OPERATOR = "lab-vault/munge-key", "8f0e8a1c-53c2-4a0e-8d0e-2f6c9a7b1d22"
HEAD = "4a5d1c1e-7a52-4d6e-9a53-0f3c4b1f2a11"  # cloud.controller.principal of the stack
_IDENTITY = {"IDENTITY_ENDPOINT": f"{names.AZURE_VARIABLES['AZURE_RESOURCE_MANAGER_URL']}/lab/identity"}


class Azure(Room):
    """Its operator signs in as an owner of the subscription, the head as the principal that has the controller's role:
    each by a managed identity's endpoint, with a header of its own.
    """

    name, stack, instance_type = "Azure", "lab-azure", "Standard_ND96isr_H100_v5"
    capacity: ClassVar = {
        ("eastus-1", "spot"): 0,
        ("eastus-2", "spot"): 2,
        ("eastus-1", "on-demand"): 3,
        ("eastus-2", "on-demand"): 1,
    }
    no_capacity = "SkuNotAvailable"
    notice_s = 10.0  # 30 at most there; a node looks every 5
    base_image, login = "Debian:debian-13:13-gen2:latest", "ironburst"
    control_port = 5012
    stand_in = "Azure (its API by its SDK's models)"

    def __init__(self) -> None:
        self._operator, self._head = secrets.token_urlsafe(20), secrets.token_urlsafe(20)

    def environment(self, _run: Path) -> dict[str, str]:
        """The operator's."""
        return names.AZURE_VARIABLES | _IDENTITY | {"IDENTITY_HEADER": self._operator}

    def start(self, inside: Commands) -> str:
        """The APIs; who signs in, a stock image, the munge key."""
        self.serve(inside, "azure")
        self.control(inside, "POST", "/lab/identities", header=self._operator, principal=OPERATOR, owner=True)
        self.control(inside, "POST", "/lab/images", name=self.base_image)
        self.control(inside, "POST", "/lab/secrets", name=MUNGE_SECRET, value=MUNGE_KEY)
        return "Azure's APIs (a stand-in) answer; the munge key lies in Key Vault"

    def sign_in(self, inside: Commands, _outputs: Mapping[str, str]) -> None:
        """The head is the principal that the stack names."""
        self.control(inside, "POST", "/lab/identities", header=self._head, principal=HEAD)

    def on_head(self, _inside: Commands) -> dict[str, tuple[str, int]]:
        """Nothing: what it signs in with is in its service's environment."""
        return {}

    def settings(self, _inside: Commands) -> dict[str, str]:
        """No owner's header."""
        return names.AZURE_VARIABLES | _IDENTITY | {"IDENTITY_HEADER": self._head}

    def libraries(self, folder: Path, root: Path) -> str:
        """As pip would install them; Debian's are too old."""
        cloud_clients.put("azure", folder / "opt/ironburst/azure", root)
        return "/opt/ironburst/azure"

    def take_away(self, inside: Commands) -> None:
        """The secret; the head's right went with its assignment."""
        self.control(inside, "POST", "/lab/secrets", name=MUNGE_SECRET, value=None)
        self.wait_for_end(inside)


AZURE = Azure()
