"""A cloud is spoken in its own rooms: which lines elsewhere name one, by module. None may do so more often."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORDS = re.compile(
    r"(?<![A-Za-z])(?:google|Google|GOOGLE|googleapis?|googleapiclient|azure|Azure|AZURE|vmss|VMSS|gcp|Gcp|GCP|gce|Gce|GCE|gke|GKE|gcloud"
    r"|aws|Aws|AWS|amazon|Amazon|amazonaws|ec2|Ec2|EC2|ebs|EBS|efa|Efa|EFA|eks|Eks|EKS|iam|IAM|s3|S3"
    r"|sqs|SQS|ssm|SSM|sts|STS|fsx|FSx|vpc|Vpc|VPC|arn|ARN|ami|AMI|boto3?|botocore)(?![a-z])"
)
TOPS = ("ironburst", "components", "providers", "playbooks")


def docstrings(tree):
    """The lines of strings that are statements of their own."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, node.end_lineno + 1)


def imported(tree):
    """The lines of imports: who may import a cloud's room is test_layers' matter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from range(node.lineno, node.end_lineno + 1)


def lines(text):
    """The numbers of the lines of code that name a cloud; comments, docstrings and imports don't count."""
    tree, comments = ast.parse(text), {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.start[1]
    left_out = {*docstrings(tree), *imported(tree)}
    code = ((n, line[: comments.get(n, len(line))]) for n, line in enumerate(text.splitlines(), 1))
    return [n for n, line in code if n not in left_out and WORDS.search(line)]


def counted():
    """{path of a module: how many of its lines name a cloud}."""
    paths = sorted(path for top in TOPS for path in (ROOT / top).rglob("*.py"))
    found = {str(path.relative_to(ROOT)): len(lines(path.read_text())) for path in [*paths, ROOT / "__main__.py"]}
    return {path: count for path, count in found.items() if count}


# A cloud's rooms: what lies there may speak it; and what has no room for that
ROOMS = re.compile(r"(?:^|/)(?:aws|azure|google)(?:\.py$|/)")
ROWS = (
    "ironburst/config/clouds.py",
    "ironburst/cost/bill.py",
    "ironburst/document/places.py",
    "ironburst/initial/rooms.py",
    "ironburst/plan/policy.py",
    "ironburst/wiring/clouds.py",
)
"""a cloud is one line there: a row of a table, or one of a union"""
OF_AWS = ("playbooks/roles/cloud_node/files/ironburst-join.py",)
"""programs that are one file on a node"""
MEANT_OTHERWISE = {"ironburst/baremetal/makers.py": 1}
"""AMI is American Megatrends there"""
LEFT = {
    "ironburst/cli/init.py": 3,
    "ironburst/cli/new_site.py": 1,
}
"""path: lines that name a cloud, and are to say what they mean of any cloud or to go into a room. They become fewer"""


def elsewhere():
    """{path: lines} of the modules that are no cloud's."""
    known = {**dict.fromkeys(ROWS, 1), **MEANT_OTHERWISE}
    left = {path: count - known.get(path, 0) for path, count in counted().items()}
    return {path: count for path, count in left.items() if count and path not in OF_AWS and not ROOMS.search(path)}


def test_no_module_names_a_cloud_more_often_than_it_did():
    found = elsewhere()
    more = {path: count for path, count in found.items() if count > LEFT.get(path, 0)}
    assert more == {}, "a cloud's words belong into its room of the same floor"


@pytest.mark.parametrize("path", [*ROWS, *OF_AWS, *MEANT_OTHERWISE, *LEFT])
def test_no_entry_outlives_its_module(path):
    assert lines((ROOT / path).read_text()), "names no cloud, or has moved: take it out of the list"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('region = Aws("us-east-1")', [1]),
        ('"""Of AWS."""\nfrom ironburst.adapters.aws.cloud import X\nname = 1  # of EC2', []),
        ("own_arn = 1\nlearn = warn = 2\nAMI_ID = 3", [1, 3]),
        ("laws = 1\nPARNELL = 2\ncloud_aws = 3", [3]),
        ("x = 'on GCP'\nurl = 'compute.googleapis.com'\ngce_zone = 1\nagce = Googled = 2", [1, 2, 3]),
        ("x = 'on Azure'\nazure_zone = 1\nnazure = 2", [1, 2]),
    ],
)
def test_what_counts(text, said):
    assert lines(text) == said
