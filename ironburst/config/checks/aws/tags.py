"""The organization's tags: what EC2, IAM and the instance metadata service take, and what is ours.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html (restrictions; those of keys that instances show in
their metadata), https://docs.aws.amazon.com/IAM/latest/UserGuide/id_tags.html (case), read 2026-11-28.
"""

from __future__ import annotations

import re
import unicodedata

from ironburst.config.aws import eks_cluster
from ironburst.config.aws.models import AwsCloud
from ironburst.config.checks.common import Findings, cloud_nodes
from ironburst.config.finding import Finding, path_of
from ironburst.config.models import ClusterConfig
from ironburst.nodes.naming import CLUSTER_TAG

OURS = CLUSTER_TAG.partition(":")[0] + ":"
MOST = 50 - 9
"""50 of a resource, and a rented instance has up to 9 of ours"""
KEY, VALUE = 128, 256
"""characters"""
IN_METADATA = re.compile(r"[0-9A-Za-z+\-=._:@]+")
"""of keys that instances show; EC2 takes a comma there, and IAM doesn't"""
RESERVED = (".", "..", "_index")


def tags(config: ClusterConfig) -> Findings:
    """Every key and value can be a tag of all that is made."""
    if not (cloud := config.cloud_by_class(AwsCloud)):
        return
    path, given = path_of("cloud", "tags"), cloud.tags
    if len(given) > MOST:
        message = f"has {len(given)}, and a resource takes 50, of which 9 are ours: write {MOST} at most"
        yield Finding(path, len(given), "tags", message)
    seen: dict[str, str] = {}
    for key, value in given.items():
        here = path_of("cloud", "tags", key)
        if wrong := _wrong_key(key) or _shown(config, key):
            yield Finding(here, key, "tags", f"the key {key!r} {wrong}")
        elif (other := seen.setdefault(key.casefold(), key)) and other != key:
            message = f"the key {key!r} differs from {other!r} in case alone, and IAM takes one of them: leave one out"
            yield Finding(here, key, "tags", message)
        if wrong := _wrong_text(value, VALUE):
            yield Finding(here, value, "tags", f"the value of {key!r} {wrong}")


def _wrong_key(key: str) -> str:
    """What is wrong with it everywhere; empty: nothing."""
    plain = key.casefold()
    if plain.startswith("aws:"):
        return "begins with aws:, which AWS keeps for itself: write another"
    if plain.startswith((OURS, "kubernetes.io/cluster/")) or plain == "name":
        return "is ours, by which nodes and their rights are known: write another"
    return _wrong_text(key, KEY) if key else "is empty: write one"


def _wrong_text(text: str, most: int) -> str:
    if len(text) > most:
        return f"has {len(text)} characters, and AWS takes {most}"
    bad = {sign for sign in text if sign not in "_.:/=+-@" and unicodedata.category(sign)[0] not in "LZN"}
    return f"has {', '.join(map(repr, sorted(bad)))}: write letters, digits, spaces and _ . : / = + - @" if bad else ""


def _shown(config: ClusterConfig, key: str) -> str:
    """Instances show their tags in their metadata, but those of EKS."""
    showing = [at for at, nodes in cloud_nodes(config) if not eks_cluster.cluster_of(config, nodes)]
    if not showing or (IN_METADATA.fullmatch(key) and key not in RESERVED):
        return ""
    return (
        "can't be shown in the metadata of instances, which EC2 then refuses: write letters, digits and + - = . _ : @"
    )
