"""A site in a bare repository, with a runner in its hall: what the tests of the workflows have in common."""

import json
import shutil
import subprocess
from pathlib import Path

import yaml
from botocore import UNSIGNED
from botocore.exceptions import ClientError
from cryptography.hazmat.primitives.asymmetric import rsa

from ironburst.cli import main
from lab.aws.testing import client
from lab.ci.forge import Environment, Forge, git
from lab.pulumi import binary
from tests import pki

ROOT = Path(__file__).parents[3]
ISSUER, AUDIENCE, NAME = "token.actions.githubusercontent.com", "sts.amazonaws.com", "org/site"
VERSION = {"Version": "2012-10-17"}
SERVICES = ("budgets", "directconnect", "ec2", "events", "iam", "sqs", "ssm", "sts")
TRACKED = (
    "ansible.cfg",
    "Pulumi.yaml",
    "__main__.py",
    "components",
    "ironburst",
    "providers",
    "playbooks",
    "inventory",
    "ci",
    ".github",
)
KEY = rsa.generate_private_key(65537, 2048)
# What a runner in a hall has beside the pulumi CLI: stand-ins of make, of which
# only `setup` does something, and of ssh to the head, where scontrol answers
TOOLS = {
    "make": f'[ "$*" != setup ] || ln -s {ROOT}/.venv .venv',
    "ssh": '[ "$5 $6" = "head scontrol" ] && cat "$LAB_NODES"',
}


def declaration(cloud_url, name):
    """The example staging as the stack `name`, small: no BMCs, and CI that may preview."""
    stack = yaml.safe_load((ROOT / "stacks/Pulumi.staging.yaml").read_text())
    stack["config"]["aws:endpoints"] = [dict.fromkeys(SERVICES, cloud_url)]
    cluster = stack["config"]["ironburst:cluster"]
    for nodes in cluster["halls"][0]["nodes"]:
        del nodes["bmc"]
    del cluster["halls"][0]["bmc_cidr"], cluster["cloud"]["network"]["hall_link"]
    cluster["cloud"]["ci"] = {"issuer": ISSUER, "preview": [f"repo:{NAME}:environment:preview-{name}"]}
    return stack


class Site:
    """The repository's forge, a person's clone of it, and the runner's tools."""

    def __init__(self, folder, cloud_url, stack="staging"):
        self.folder, self.cloud_url, self.stack = folder, cloud_url, stack
        tools = folder / "tools"
        tools.mkdir()
        for name, text in {**TOOLS, "pulumi": f'exec {binary.path()} "$@"'}.items():
            (tools / name).write_text(f"#!/bin/sh\n{text}\n")
            (tools / name).chmod(0o755)
        self.nodes = folder / "nodes.json"
        self.nodes.write_text("")
        self.document = folder / "published" / f"{stack}.json"
        self.document.parent.mkdir()
        self.machine = {
            **binary.environment(folder, tools),
            "HOME": str(folder),
            "PYTHONPATH": f".:{ROOT}",
            "AWS_ENDPOINT_URL": cloud_url,
            "LAB_AWS_ENVIRONMENT": "1",  # `up` calls AWS as the job's own role
            "LAB_NODES": str(self.nodes),
            "IRONBURST_STATE": str(folder / "receipts"),
        }
        backend = self.machine.pop("PULUMI_BACKEND_URL")  # which the workflows take from the forge's variables
        self.forge = Forge(folder, NAME, self.machine, self.sign_in, {"stack": stack})
        settings = {"PULUMI_BACKEND_URL": backend, "DOCUMENT": str(self.document), "HEAD_SSH": "head"}
        self.forge.vars = {"IRONBURST_CI": "on", "AWS_REGION": "us-east-1", **settings}
        self.clone = folder / "clone"
        git(folder, "clone", "--quiet", str(self.forge.origin), str(self.clone))
        for key, value in (("user.name", "anna"), ("user.email", "anna@invalid")):
            git(self.clone, "config", key, value)
        for name in TRACKED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
            ignore = {"ignore": shutil.ignore_patterns("__pycache__"), "symlinks": True}
            copy(ROOT / name, self.clone / name, **(ignore if copy is shutil.copytree else {}))
        (self.clone / "stacks").mkdir()
        (self.clone / ".gitignore").write_text("/.venv\n/build/\n__pycache__/\n")
        shutil.copyfile(ROOT / "stacks/staging.lock.yaml", self.clone / f"stacks/{stack}.lock.yaml")
        self.file = self.clone / f"stacks/Pulumi.{stack}.yaml"
        self.declared = declaration(cloud_url, stack)

    def sign_in(self, role, subject, seconds):
        """What a job gets from AWS for its token, for so long."""
        token = pki.token(KEY, iss=f"https://{ISSUER}", aud=AUDIENCE, sub=subject)
        sts = client(self.cloud_url, "sts", signature_version=UNSIGNED)
        try:
            asked = {"RoleArn": role, "RoleSessionName": "ci", "DurationSeconds": seconds}
            got = sts.assume_role_with_web_identity(**asked, WebIdentityToken=token)
        except ClientError as error:
            raise PermissionError(str(error)) from None
        keys = {"AWS_ACCESS_KEY_ID": "AccessKeyId", "AWS_SECRET_ACCESS_KEY": "SecretAccessKey"}
        return {name: got["Credentials"][key] for name, key in (keys | {"AWS_SESSION_TOKEN": "SessionToken"}).items()}

    def push(self, branch, message, change=lambda cluster: None):
        """A commit on a branch from main, with the declaration as `change` makes it."""
        if git(self.clone, "ls-remote", "origin", "main"):
            git(self.clone, "fetch", "--quiet", "origin")
            git(self.clone, "checkout", "--quiet", "-B", branch, "origin/main")
        change(self.declared["config"]["ironburst:cluster"])
        self.file.write_text(yaml.safe_dump(self.declared))
        assert main(["lock", str(self.file)]) == 0
        git(self.clone, "add", "-A")
        git(self.clone, "commit", "--quiet", "--allow-empty", "-m", message)
        git(self.clone, "push", "--quiet", "--force", "origin", f"HEAD:{branch}")

    def administrator(self, role, subject):
        """A role that an administrator has made for a job, with an administrator's rights."""
        iam = client(self.cloud_url, "iam")
        condition = {"StringEquals": {f"{ISSUER}:aud": AUDIENCE, f"{ISSUER}:sub": f"repo:{NAME}:{subject}"}}
        account = client(self.cloud_url, "sts").get_caller_identity()["Account"]
        who = {"Federated": f"arn:aws:iam::{account}:oidc-provider/{ISSUER}"}
        trust = {"Effect": "Allow", "Principal": who, "Action": "sts:AssumeRoleWithWebIdentity", "Condition": condition}
        trusts = json.dumps(VERSION | {"Statement": trust})
        asked = {"RoleName": role, "MaxSessionDuration": 10800}  # as docs/how-to/ci.md says
        made = iam.create_role(**asked, AssumeRolePolicyDocument=trusts)["Role"]
        everything = VERSION | {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
        iam.put_role_policy(RoleName=role, PolicyName="all", PolicyDocument=json.dumps(everything))
        return made["Arn"]

    def of(self, job):
        """Where the last run of `workflow-job` left what its scripts wrote."""
        return self.folder / job / "workspace/build/ci"

    def prepare_account(self):
        """What an administrator does once: the issuer, the roles, the environments of the forge, an empty stack."""
        client(self.cloud_url, "iam").create_open_id_connect_provider(Url=f"https://{ISSUER}", ClientIDList=[AUDIENCE])
        pki.issues(ISSUER, KEY)
        up = self.administrator("up", f"environment:{self.stack}")
        drift = self.administrator("drift", f"environment:drift-{self.stack}")
        self.forge.environments = {
            self.stack: Environment({"UP_ROLE_ARN": up}, reviewed=True, main_only=True),
            f"drift-{self.stack}": Environment({"DRIFT_ROLE_ARN": drift}, main_only=True),
            f"preview-{self.stack}": Environment({"PREVIEW_ROLE_ARN": "none yet"}),
        }


def said(results):
    return "\n".join(each.log for each in results)


def ended(results, **expected):
    assert {each.job.workflow: each.conclusion for each in results if each.job.workflow in expected} == expected, said(
        results
    )
    return said([each for each in results if each.job.workflow in expected])


def first_up(site):
    """An administrator's own: it makes the roles that CI then has."""
    environment = site.machine | {
        "AWS_ACCESS_KEY_ID": "lab",
        "AWS_SECRET_ACCESS_KEY": "lab",
        "AWS_REGION": "us-east-1",
        "PULUMI_BACKEND_URL": site.forge.vars["PULUMI_BACKEND_URL"],
    }
    (site.clone / ".venv").symlink_to(ROOT / ".venv")
    for verb in (["stack", "init"], ["up", "--yes", "--skip-preview", "--non-interactive"]):
        done = subprocess.run(
            ["pulumi", *verb, "--stack", site.stack], cwd=site.clone, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    done = subprocess.run(
        ["pulumi", "stack", "output", "preview_role_arn", "--stack", site.stack],
        cwd=site.clone, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    site.forge.environments[f"preview-{site.stack}"].vars["PREVIEW_ROLE_ARN"] = done.stdout.split()[-1]
