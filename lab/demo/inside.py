"""Running the product's commands in the lab's box, so that none of them outlives the lab and none reaches outside
it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lab import names
from lab.demo.aws import AWS
from lab.demo.cloud import DemoCloud
from lab.hosts.bmcs import PASSWORD_FILE, PASSWORD_VARIABLE
from lab.hosts.box import Box
from lab.hosts.host import SSH_OPTIONS
from lab.hosts.rootfs import ssh_key
from lab.packages import repository
from lab.pulumi import binary
from lab.site import Site
from lab.system import CHECKOUT, LabError


class Boxed:
    """The command line in a box: how to run a program there, with which environment and files; of the stack `stack`
    (empty: that of the cloud's demo).
    """

    def __init__(self, box: Box, stack: str, ledger: Path, cloud: DemoCloud = AWS):
        self.cloud: DemoCloud = cloud
        self.box, self.stack, self.ledger = box, stack or self.cloud.stack, ledger
        run = box.dir / "run"
        self.document, self.aws_config = run / "document.json", run / "aws-config"
        self.env = {
            **binary.environment(run / "pulumi", Path(sys.executable).parent),
            **self.cloud.environment(run),
            PASSWORD_VARIABLE: PASSWORD_FILE.read_text(),
            "IRONBURST_DOCUMENT": str(self.document),
            "IRONBURST_STATE": str(run / "state"),
        }

    def argv(self, *command: str) -> list[str]:
        """`command` as it is run in the box, from the project's folder, with the lab's environment."""
        settings = [f"{name}={value}" for name, value in self.env.items()]
        return [*self.box.enter_prefix(), "env", f"--chdir={CHECKOUT}", *settings, *command]

    def log(self, name: str) -> Path:
        """Where a program's output goes."""
        return self.box.dir / "log" / f"{name}.log"

    def ironburst(self, verb: str, *arguments: str) -> list[str]:
        """The product's own command line."""
        return [sys.executable, "-m", "ironburst.cli", verb, *arguments]

    def run(
        self, command: Sequence[str], *, ok: Sequence[int] = (0,), log: str | None = None, stdin: str | None = None
    ) -> str:
        """Run to the end and return standard output; LabError with the last lines unless the exit code is in `ok`."""
        done = subprocess.run(
            self.argv(*command),
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            text=True,
            capture_output=True,
        )
        if log:
            with self.log(log).open("a") as file:
                file.write(f"$ {' '.join(command)}\n{done.stdout}{done.stderr}\n")
        if done.returncode not in ok:
            lines = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-12:]
            raise LabError(
                f"{' '.join(command[:6])} … ended with exit code {done.returncode}:\n"
                + "\n".join(f"    {line}" for line in lines)
            )
        return done.stdout

    def spawn(self, command: Sequence[str], log: str) -> int:
        """Start a daemon in the box; its pid there."""
        settings = [f"{name}={value}" for name, value in self.env.items()]
        return self.box.spawn(["env", f"--chdir={CHECKOUT}", *settings, *command], self.log(log))


class Inside(Boxed):
    """A lab with hosts, and what runs on its head."""

    def __init__(self, site: Site, cloud: DemoCloud = AWS):
        super().__init__(site.box, "", site.dir / "shared" / "ironburst" / "ledger.sqlite", cloud)
        self.site = site
        self.ansible = site.dir / "run" / "ansible"
        self.ansible.mkdir(parents=True, exist_ok=True)
        key = str(ssh_key(site.box.root))
        shared = ("ControlMaster=auto", "ControlPersist=60", f"ControlPath={site.dir / 'run'}/ssh-%C")
        self.ssh = ["ssh", "-i", key, *SSH_OPTIONS, *(word for option in shared for word in ("-o", option))]
        self.env |= {
            "ANSIBLE_HOME": str(self.ansible),
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "IRONBURST_SSH_KEY": key,
            "IRONBURST_LAB_KEY_SHA256": repository.key_sha256(site.box.root),
        }

    def head_prefix(self) -> list[str]:
        """Command prefix that runs a command on the head, from inside the box."""
        return [*self.ssh, f"root@{names.ADDRESSES['head']}"]
