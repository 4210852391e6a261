"""The demo in Google Cloud: Compute Engine by its own description, and what is beside it (lab/google)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from lab import names
from lab.demo.cloud import MUNGE_KEY, Commands, Room
from lab.google import sign_in
from lab.hosts import rootfs
from lab.packages import cloud_clients

PROJECT, USER = "lab-project", "admin"
STOCK = "debian-13"
CREDENTIALS = "/etc/ironburst/google"
MUNGE_SECRET = f"projects/{PROJECT}/secrets/munge-key"
OPERATOR, HEAD = f"operator@{PROJECT}.iam.gserviceaccount.com", f"ironburst-head@{PROJECT}.iam.gserviceaccount.com"


class Google(Room):
    """Its operator signs in as an owner of the project, the head as an account that may be the controller's."""

    name, stack, instance_type = "Google", "lab-google", "a3-highgpu-8g"
    capacity: ClassVar = {
        ("us-central1-a", "spot"): 0,
        ("us-central1-b", "spot"): 2,
        ("us-central1-a", "on-demand"): 3,
        ("us-central1-b", "on-demand"): 1,
    }
    no_capacity = "ZONE_RESOURCE_POOL_EXHAUSTED"
    notice_s = 5.0  # 120 are asked for; then the power button, and the end within half a minute
    base_image, login = f"projects/{PROJECT}/global/images/{STOCK}", USER
    control_port = 5011
    stand_in = "Google Cloud (its API by its own description)"

    def environment(self, run: Path) -> dict[str, str]:
        """The operator's."""
        return names.GOOGLE_VARIABLES | {"GOOGLE_APPLICATION_CREDENTIALS": str(run / "operator.json")}

    def start(self, inside: Commands) -> str:
        """The APIs; who signs in, a stock image, the munge key, the key of fixed nodes in the project's metadata."""
        self.serve(inside, "google")
        run, token = inside.document.parent, secrets.token_urlsafe(20)
        self.control(inside, "POST", "/lab/subjects", token=token, email=OPERATOR, owner=True)
        for name, text in {
            "operator.token": token,
            "operator.json": sign_in.credentials(names.GOOGLE_ENDPOINT, str(run / "operator.token")),
        }.items():
            (run / name).touch(0o600)
            (run / name).write_text(text)
        self.control(inside, "POST", "/lab/images", name=STOCK)
        self.control(inside, "POST", "/lab/secrets", name=MUNGE_SECRET, value=MUNGE_KEY)
        public = rootfs.ssh_key(inside.box.root).with_suffix(".pub").read_text()
        self.control(inside, "POST", "/lab/metadata", key="ssh-keys", value=f"{USER}:{public}")
        return "Google's APIs (a stand-in) answer; the munge key lies in Secret Manager"

    def sign_in(self, inside: Commands, outputs: Mapping[str, str]) -> None:
        """The head's token, and whom it may be."""
        account, token = outputs["controller_account"], secrets.token_urlsafe(20)
        self.control(inside, "POST", "/lab/subjects", token=token, email=HEAD)
        self.control(inside, "POST", "/lab/impersonators", email=HEAD, account=account)
        run = inside.document.parent
        (run / "head.token").touch(0o600)
        (run / "head.token").write_text(token)
        (run / "head.account").write_text(account)

    def on_head(self, inside: Commands) -> dict[str, tuple[str, int]]:
        """Its token, and where it is exchanged."""
        run = inside.document.parent
        account = (run / "head.account").read_text()
        said = sign_in.credentials(names.GOOGLE_ENDPOINT, f"{CREDENTIALS}/token", account)
        where = CREDENTIALS[1:]
        return {
            f"{where}/token": ((run / "head.token").read_text(), 0o400),
            f"{where}/google.json": (said, 0o400),
        }

    def settings(self, _inside: Commands) -> dict[str, str]:
        """No owner's token."""
        return names.GOOGLE_VARIABLES | {"GOOGLE_APPLICATION_CREDENTIALS": f"{CREDENTIALS}/google.json"}

    def libraries(self, folder: Path, root: Path) -> str:
        """As pip would install them; Debian's are too old."""
        cloud_clients.put("google", folder / "opt/ironburst/google", root)
        return "/opt/ironburst/google"

    def take_away(self, inside: Commands) -> None:
        """The secret and the key of fixed nodes; the head's right went with the controller's account."""
        self.control(inside, "POST", "/lab/secrets", name=MUNGE_SECRET, value=None)
        self.control(inside, "POST", "/lab/metadata", key="ssh-keys", value=None)
        self.wait_for_end(inside)


GOOGLE = Google()
