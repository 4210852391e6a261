"""The controller runs under the role that the declaration made for it: an IAM user of the head may take that role, and
nothing else. The lab's AWS enforces both.
"""

from __future__ import annotations

import sys

from lab.demo.cloud import Commands

USER = "ironburst-head"
PROFILE = "controller"
CREATE_USER = (
    "import boto3, json, sys; iam, (name, role) = boto3.client('iam'), sys.argv[1:];"
    "iam.create_user(UserName=name);"
    "may = {'Effect': 'Allow', 'Action': 'sts:AssumeRole', 'Resource': role};"
    "document = json.dumps({'Version': '2012-10-17', 'Statement': may});"
    "iam.put_user_policy(UserName=name, PolicyName='controller', PolicyDocument=document);"
    "key = iam.create_access_key(UserName=name)['AccessKey'];"
    "print(key['AccessKeyId'], key['SecretAccessKey'])"
)
DELETE_USER = (
    "import boto3, sys; iam, name = boto3.client('iam'), sys.argv[1]\n"
    "for key in iam.list_access_keys(UserName=name)['AccessKeyMetadata']:\n"
    "    iam.delete_access_key(UserName=name, AccessKeyId=key['AccessKeyId'])\n"
    "iam.delete_user_policy(UserName=name, PolicyName='controller')\n"
    "iam.delete_user(UserName=name)\n"
)


def prepare(inside: Commands, role_arn: str) -> None:
    """The head's user, its key, and a profile with which boto3 takes the controller's role and renews it."""
    key, secret = inside.run([sys.executable, "-c", CREATE_USER, USER, role_arn]).split()
    inside.aws_config.touch(0o600)
    inside.aws_config.write_text(
        f"[profile head]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n\n"
        f"[profile {PROFILE}]\nrole_arn = {role_arn}\nsource_profile = head\nrole_session_name = ironburst\n"
    )


def take_away(inside: Commands) -> None:
    """What `prepare` made in the account."""
    inside.run([sys.executable, "-c", DELETE_USER, USER])
