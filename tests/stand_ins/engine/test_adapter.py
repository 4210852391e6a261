"""ironburst/adapters/pulumi.py on lab/engine."""

import pytest

from ironburst.adapters.pulumi import Pulumi, PulumiError
from tests.stand_ins.engine.probe.harness import ENGINE, Project


@pytest.fixture
def project(tmp_path, monkeypatch) -> Project:
    return Project(tmp_path, monkeypatch)


def test_a_stack_from_init_to_destroy(project: Project):
    events: list[dict] = []
    pulumi = Pulumi(project.folder, "dev", ENGINE, progress=events.append)
    pulumi.stack_init()
    pulumi.stack_init()
    project.program(
        'a = Thing("a", value=1)\npulumi.export("a", a.serial)\npulumi.export("s", pulumi.Output.secret("x"))'
    )
    plan = pulumi.preview()
    assert plan.changes == {"create": 2} and plan.changed and {s["op"] for s in plan.steps} == {"create"}
    assert pulumi.up().changes == {"create": 2}
    assert any(e.get("resOutputsEvent", {}).get("metadata", {}).get("urn", "").endswith("::a") for e in events)
    assert pulumi.outputs() == {"a": "SN-a-1", "s": "[secret]"}
    assert pulumi.outputs(show_secrets=True)["s"] == "x"
    project.drift("a-1", value=7)
    assert pulumi.refresh(preview_only=True).changed
    assert pulumi.export()["deployment"]["resources"]
    assert pulumi.destroy().changes == {"delete": 2} and project.stored() == []
    assert pulumi.stack_exists() and project.config_file.exists()


def test_one_error_names_the_resource_and_its_reason(project: Project):
    pulumi = Pulumi(project.folder, "dev", ENGINE)
    pulumi.stack_init()
    project.program('a = Thing("a", value=1)\nThing("b", value=a.serial)')
    project.knobs(fail_create=["b"])
    with pytest.raises(
        PulumiError, match=r"`up` of stack dev failed .*probe:index:Thing b: probe: create of b was told to fail"
    ) as failure:
        pulumi.up()
    assert failure.value.code == 1 and failure.value.diagnostics[0]["urn"].endswith("::b")
    project.program('raise pulumi.RunError("hall-a has no rack r9")')
    with pytest.raises(PulumiError, match="hall-a has no rack r9"):
        pulumi.preview()
    with pytest.raises(PulumiError, match="no stack named"):
        Pulumi(project.folder, "none", ENGINE).up()


def test_a_command_that_is_not_there(project: Project):
    with pytest.raises(PulumiError, match="'no-such-command' is not there"):
        Pulumi(project.folder, "dev", ["no-such-command"]).preview()


def test_an_interrupted_caller_takes_the_command_with_it(project: Project):
    def stop(event: dict) -> None:
        raise KeyboardInterrupt

    pulumi = Pulumi(project.folder, "dev", ENGINE, progress=stop)
    pulumi.stack_init()
    project.program('Thing("a", value=1)')
    with pytest.raises(KeyboardInterrupt):
        pulumi.up()
    assert not list(project.states.rglob("locks/**/*.json"))
