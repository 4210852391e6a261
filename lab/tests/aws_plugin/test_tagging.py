"""Every kind that has tags sets and drops them with calls that boto3 knows."""

from types import SimpleNamespace

import boto3
import pytest
from botocore.validate import validate_parameters

from lab.aws_plugin.resources import RESOURCES

TAGGED = {token: resource.tag for token, resource in RESOURCES.items() if resource.tag}
# two kinds are tagged by an id that is asked for by their name
DESCRIBED = {
    "describe_placement_groups": {"PlacementGroups": [{"GroupId": "pg-1"}]},
    "describe_key_pairs": {"KeyPairs": [{"KeyPairId": "key-1"}]},
}


class Client:
    """Takes calls that botocore's model of the service allows, and keeps their names."""

    def __init__(self, service: str, called: list[str]):
        self._boto, self._called = boto3.client(service, region_name="us-east-1"), called

    def __getattr__(self, name):
        def call(**arguments):
            operation = self._boto.meta.method_to_api_mapping[name]
            validate_parameters(arguments, self._boto.meta.service_model.operation_model(operation).input_shape)
            self._called.append(name)
            return DESCRIBED.get(name)

        return call


@pytest.mark.parametrize("token", TAGGED)
def test_tags_are_dropped_and_set_by_calls_that_exist(token):
    called = []
    aws = SimpleNamespace(client=lambda service: Client(service, called), ec2=Client("ec2", called))
    state = {"arn": "arn:aws:service:us-east-1:123456789012:thing/one"}
    TAGGED[token](aws, "thing-one-of-this-kind", state, {"team": "nlp"}, ["owner"])
    dropped, put = [name for name in called if name not in DESCRIBED]
    assert dropped != put
