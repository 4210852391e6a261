#!/usr/bin/python3
"""ironburst-join: at boot a rented node learns its Slurm name, its head and the munge key.

The launch's user data (JSON: ironburst, nodes, conf_server, munge_key, region) and ami-launch-index come from the
instance metadata service (IMDSv2 only), the key from AWS Secrets Manager with the instance role's credentials; both are
asked again until a deadline. Writes /etc/ironburst/node.env, /etc/munge/munge.key, and for ironburst-data which data
sets the launch names (/etc/ironburst/data.json). Exit status 1, and none of them touched, if anything is missing: then
neither munge nor slurmd starts. For ironburst-dead-man it writes what the launch declares
(/run/ironburst/dead-man.json), or that this instance is nobody's rented node and never ends itself.
"""

import contextlib
import json
import os
import pwd
import re
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

IMDS = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254").rstrip("/")
ROOT = Path(os.environ.get("IRONBURST_JOIN_ROOT", "/"))  # another root in tests
DEADLINE_S = float(os.environ.get("IRONBURST_JOIN_DEADLINE", "120"))
BOOT_S = 120  # of the longest time from launch to joined: those of the boot itself
SAFE = re.compile(r"^[A-Za-z0-9._:-]+$")


class JoinError(Exception):
    """Why the node can't join; one sentence."""


class NotRented(JoinError):
    """This instance was launched by somebody else: it is no node, and may stay."""


def imds(path, token=None, ttl=None):
    """An answer of the metadata service; without a token a new one, for ttl seconds. Raises OSError."""
    headers = {"X-aws-ec2-metadata-token": token} if token else {"X-aws-ec2-metadata-token-ttl-seconds": str(ttl)}
    request = urllib.request.Request(f"{IMDS}/latest/{path}", headers=headers, method="GET" if token else "PUT")
    with urllib.request.urlopen(request, timeout=5) as response:
        return response.read().decode()


def launch(end):
    """(user data, ami-launch-index), asked until the metadata service answers or the deadline `end` (monotonic) is
    over.
    """
    while True:
        try:
            token = imds("api/token", ttl=300)
            return imds("user-data", token), imds("meta-data/ami-launch-index", token)
        except urllib.error.HTTPError as error:
            if error.code == 404 and error.url.endswith("/user-data"):
                raise NotRented(f"the metadata service at {IMDS} answers 404 for {error.url}") from None
            if error.code in (401, 403, 404):
                raise JoinError(f"the metadata service at {IMDS} answers {error.code} for {error.url}") from None
            reason = f"HTTP {error.code}"
        except OSError as error:
            reason = str(error)
        if time.monotonic() > end:
            raise JoinError(f"the metadata service at {IMDS} did not answer in {DEADLINE_S:g} s: {reason}")
        time.sleep(0.5)


def parse(user_data):
    """The launch's user data. Raises JoinError."""
    try:
        data = json.loads(user_data)
    except ValueError:
        raise NotRented("the user data is not JSON: this instance was not launched by ironburst") from None
    if not isinstance(data, dict) or data.get("ironburst") != 1:
        ours = isinstance(data, dict) and "ironburst" in data
        raise (JoinError if ours else NotRented)(
            "the user data has no `ironburst: 1`: this instance was not launched by an ironburst that this image knows"
        )
    return data


def told(data, index):
    """(node name, head, reference of the munge key, region) of the user data. Raises JoinError."""
    try:
        name, head = data["nodes"][int(index)], data["conf_server"]
        key, region = data["munge_key"], data["region"]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        wanted = "nodes, conf_server, munge_key or region"
        raise JoinError(f"the user data has no usable {wanted} for launch index {index}: {error!r}") from None
    for value in (name, head):
        if not isinstance(value, str) or not SAFE.match(value):
            raise JoinError(f"the user data names {value!r}, which is no host name or address")
    return name, head, key, region


def data_sets(data, region):
    """What ironburst-data is to bring, of the user data: its settings. It has what the boot leaves of the pool's limit.
    Raises JoinError.
    """
    sets = data.get("data") or {}
    if sets and not (ROOT / "usr/local/sbin/ironburst-data").exists():
        named = ", ".join(sorted(sets))
        raise JoinError(f"the launch names data sets ({named}), and this image can't bring any: bake the image anew")
    return {"region": region, "seconds": max(60, data.get("boot_s", 0) - BOOT_S), "sets": sets}


def munge_key(reference, region, end):
    """The munge key behind an aws-secretsmanager reference, as bytes without a trailing newline; asked for until `end`
    (monotonic): a new instance's role may be unknown for some seconds.
    """
    scheme, _, rest = reference.partition(":")
    if scheme != "aws-secretsmanager" or not rest:
        raise JoinError(f"a rented node can only resolve aws-secretsmanager references, not {scheme}:")
    import boto3
    from botocore.config import Config

    name, _, field = rest.partition("#")
    while True:
        try:  # a session of its own each time: boto3 asks for the role's credentials once, and waits for them 1 s
            settings = Config(retries={"mode": "standard", "total_max_attempts": 5})
            client = boto3.Session().client("secretsmanager", region_name=region, config=settings)
            text = client.get_secret_value(SecretId=name)["SecretString"]
            key = str(json.loads(text)[field]) if field else text
            break
        except Exception as error:  # boto3's errors are made at run time; the text never holds the secret
            if time.monotonic() > end:
                raise JoinError(
                    f"the munge key {reference} does not resolve: {type(error).__name__}: {error}"
                ) from None
            print(
                f"join: the munge key does not resolve yet: {type(error).__name__}: {error}",
                file=sys.stderr,
                flush=True,
            )
        time.sleep(1.0)
    key = key.rstrip("\n").encode()
    if len(key) < 32:
        raise JoinError(f"the munge key {reference} has {len(key)} bytes; munge wants 32 or more")
    return key


def write(path, content, mode, owner=None):
    """Write a file at once, with its mode from the first moment on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(path.name + ".new")
    with contextlib.suppress(FileNotFoundError):
        new.unlink()
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    if owner:
        user = pwd.getpwnam(owner)
        os.chown(new, user.pw_uid, user.pw_gid)
    new.replace(path)


def declare(**settings):
    """For ironburst-dead-man; dead_man_s None: it never acts here."""
    write(ROOT / "run/ironburst/dead-man.json", json.dumps(settings).encode(), 0o644)


def main():
    """The exit status."""
    end = time.monotonic() + DEADLINE_S
    try:
        user_data, index = launch(end)
        data = parse(user_data)
        name, head, reference, region = told(data, index)
        declare(node=name, dead_man_s=data.get("dead_man_s"), hard_limit_s=data.get("hard_limit_s"))
        data_settings = data_sets(data, region)
        key = munge_key(reference, region, end)
    except JoinError as error:
        if isinstance(error, NotRented):
            declare(dead_man_s=None)
        print(f"join: {error}", file=sys.stderr)
        return 1
    write(ROOT / "etc/munge/munge.key", key, 0o400, owner="munge" if Path("/") == ROOT else None)
    write(ROOT / "etc/ironburst/data.json", json.dumps(data_settings).encode(), 0o644)
    write(ROOT / "etc/ironburst/node.env", f"IRONBURST_NODE={name}\nIRONBURST_CONF_SERVER={head}\n".encode(), 0o644)
    print(f"join: this is {name}, the head is {head}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
