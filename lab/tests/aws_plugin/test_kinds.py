"""Every kind of resource of the aws stand-in: create, read, no false change, change in place, replacement, delete;
against lab.aws.
"""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest

from lab.aws.cloud import Cloud
from lab.aws_plugin.harness import Engine, config
from lab.aws_plugin.resources import RESOURCES
from lab.provider.wire import plain
from lab.tests.aws_plugin.kinds import ANCHOR, CASES, World


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    cloud = Cloud(seed=1)
    engine = Engine(config(cloud.url, defaultTags={"tags": {"ironburst:cluster": "lab"}}))
    try:
        yield World(engine, cloud, cloud.register_image("/images/one"))
    finally:
        engine.close()
        cloud.close()


def test_every_kind_has_a_case() -> None:
    assert set(CASES) == set(RESOURCES)


@pytest.mark.parametrize("token", CASES)
def test_life_of(token: str, world: World) -> None:
    case, engine = CASES[token], world.engine
    inputs = case.inputs(world)
    held = engine.create(token, "thing", inputs)
    assert held.id
    for key, value in inputs.items():
        assert plain(held.outputs[key]) == value, key
    for key in case.outputs:
        assert plain(held.outputs[key]) not in (None, "", []), key

    # A refresh finds what was created, and the same program changes nothing.
    fresh = engine.read(held)
    assert (fresh.inputs, fresh.outputs) == (held.inputs, held.outputs)
    same = engine.diff(held, inputs)
    assert (same.changes, dict(same.detailedDiff)) == (same.DIFF_NONE, {})

    if case.change:
        news = case.change(world)
        moved = engine.diff(held, news)
        assert moved.changes == moved.DIFF_SOME and not moved.replaces, moved
        held = engine.update(held, news)
        for key, value in news.items():
            assert plain(held.outputs[key]) == value, key
        fresh = engine.read(held)
        assert (fresh.inputs, fresh.outputs) == (held.inputs, held.outputs)
        assert engine.diff(held, news).changes == moved.DIFF_NONE
    if case.replace:
        hard = engine.diff(held, case.replace(world))
        assert set(case.because) <= set(hard.replaces)

    engine.delete(held)
    assert engine.read(held) is None
    engine.delete(held)  # already gone: no error


def test_a_fixed_efa_node_takes_its_interfaces_from_the_template(world: World) -> None:
    engine = world.engine
    template = world.need("template")
    node = engine.create(
        "aws:ec2/instance:Instance", "fixed-1", {"ami": world.image, "launchTemplate": {"id": template, "version": "1"}}
    )
    shown = world.engine.read(node)
    assert shown.outputs["subnetId"] == world.need("subnet")
    assert shown.outputs["instanceType"] == "p5.48xlarge"
    instance = next(i for i in world.cloud.backend.all_instances() if i.id == node.id)
    expected = [(0, "efa"), (1, "efa-only")]
    assert sorted((n.network_card_index, n.interface_type) for n in instance.nics.values()) == expected
    with pytest.raises(grpc.RpcError, match="InvalidParameterCombination"):
        engine.create(
            "aws:ec2/instance:Instance",
            "wrong",
            {"ami": world.image, "subnetId": world.need("subnet"), "launchTemplate": {"id": template, "version": "1"}},
        )
    engine.delete(node)


def test_an_interface_endpoint(world: World) -> None:
    made = world.engine.create(
        "aws:ec2/vpcEndpoint:VpcEndpoint",
        "ssm",
        {
            "vpcId": world.need("vpc"),
            "serviceName": "com.amazonaws.us-east-1.ssm",
            "vpcEndpointType": "Interface",
            "privateDnsEnabled": True,
            "subnetIds": [world.need("subnet"), world.need("subnet2")],
            "securityGroupIds": [world.need("group")],
        },
    )
    fresh = world.engine.read(made)
    assert fresh.inputs == made.inputs and fresh.outputs["networkInterfaceIds"]
    world.engine.delete(made)
    assert world.engine.read(made) is None


def test_anchor_and_profile_are_disabled_unless_asked_otherwise(world: World) -> None:
    inputs = {key: value for key, value in ANCHOR(world).items() if key != "enabled"}
    anchor = world.engine.create("aws:rolesanywhere/trustAnchor:TrustAnchor", "anchor", inputs)
    profile = world.engine.create("aws:rolesanywhere/profile:Profile", "profile", {"roleArns": []})
    assert (anchor.outputs["enabled"], profile.outputs["enabled"]) == (False, False)


def test_a_new_template_version_is_the_default_only_where_asked(world: World) -> None:
    engine, token = world.engine, "aws:ec2/launchTemplate:LaunchTemplate"
    held = engine.create(token, "versions", {"instanceType": "p5.48xlarge"})
    held = engine.update(held, {"instanceType": "p5en.48xlarge"})
    assert (held.outputs["latestVersion"], held.outputs["defaultVersion"]) == (2, 1)
    held = engine.update(held, {"instanceType": "p5en.48xlarge", "updateDefaultVersion": True, "description": "third"})
    assert (held.outputs["latestVersion"], held.outputs["defaultVersion"]) == (3, 3)
    previewed = engine.update(held, {"instanceType": "p5.48xlarge", "updateDefaultVersion": True}, preview=True)
    assert previewed.outputs["latestVersion"] != 3
    engine.delete(held)
