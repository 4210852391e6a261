"""lab/engine: what happens to resources, state and outputs."""

import pytest

from tests.stand_ins.engine.probe.harness import Project, initialised_project  # noqa: F401  (a fixture)

MUTATING = ("Create", "Update", "Delete")


def names(calls: list[dict]) -> list[str]:
    return [f"{c['call']} {c.get('id') or c['name']}" for c in calls]


def test_create_update_delete_and_outputs(project: Project):
    project.program('a = Thing("a", value=1)\nb = Thing("b", value=a.serial)\npulumi.export("b", b.serial)')
    plan = project.preview()
    assert plan["changeSummary"] == {"create": 3}
    assert project.calls(*MUTATING) == []
    assert project.up().changes == {"create": 3}
    assert names(project.calls(*MUTATING)) == ["Create a", "Create b"]
    assert project.outputs() == {"b": "SN-b-1"}
    assert project.resources()["b"]["dependencies"] == [project.resources()["a"]["urn"]]
    assert project.up("--expect-no-changes").changes == {"same": 3}

    project.program('a = Thing("a", value=2)')
    assert project.up("--expect-no-changes", code=7).changes == {"same": 1, "update": 1, "delete": 1}
    assert names(project.calls(*MUTATING)) == ["Update a-1", "Delete b-1"]
    assert project.outputs() == {}
    assert project.destroy().changes == {"delete": 2}
    assert project.stored() == [] and project.resources() == {}


def test_ignore_changes_and_replace_on_changes(project: Project):
    text = (
        'Thing("a", value={{"keep": {0}, "take": {0}}}, tag={0}, opts=Options(ignore_changes=["value.keep", "tag"]))\n'
    )
    text += 'Thing("b", value={0}, opts=Options(replace_on_changes=["value"]))'
    project.program(text.format(1))
    project.up()
    project.calls()
    project.program(text.format(2))
    assert project.up().changes == {"same": 1, "update": 1, "replace": 1}
    assert sorted(names(project.calls(*MUTATING))) == ["Create b", "Delete b-1", "Update a-1"]
    state = project.resources()
    assert state["a"]["inputs"] == {"value": {"keep": 1, "take": 2}, "tag": 1}
    assert state["a"]["ignoreChanges"] == ["value.keep", "tag"]
    assert state["b"]["id"] == "b-2" and project.stored() == ["a-1", "b-2"]


def test_refresh_takes_over_drift_and_what_is_gone(project: Project):
    project.program(
        'a = Thing("a", value=1)\nb = Thing("b", value=a.serial)\nc = Thing("c", value=3, opts=Options(depends_on=[a]))'
    )
    project.up()
    project.drift("b-1", value="changed by hand")
    (project.store / "a-1.json").unlink()
    assert project.up().changes == {"same": 4}  # an up does not read
    before = project.deployment()

    looked = project.refresh("--preview-only", "--expect-no-changes", code=7)
    assert looked.changes == {"same": 2, "update": 1, "delete": 1}
    assert project.deployment() == before
    assert project.refresh().changes == {"same": 2, "update": 1, "delete": 1}
    state = project.resources()
    assert "a" not in state and "dependencies" not in state["b"] and "dependencies" not in state["c"]
    assert state["b"]["inputs"] == {"value": "changed by hand"}
    assert project.up().changes == {"create": 1, "same": 2, "update": 1}


def test_drift_that_no_input_asks_for_is_taken_over_but_is_no_change(project: Project):
    project.program('Thing("a", value=1)')
    project.up()
    project.drift("a-1", serial="other")
    assert project.refresh("--expect-no-changes").changes == {"same": 2}
    assert project.resources()["a"]["outputs"]["serial"] == "other"


def test_get_reads_and_never_deletes(project: Project):
    project.program('Thing("a", value="found")')
    project.up()
    project.program('Thing("a", value="found")\ng = Thing("g", opts=Options(id="a-1"))\npulumi.export("g", g.value)')
    project.calls()
    assert project.up().changes == {"same": 2}
    assert project.resources()["g"]["external"] is True and project.outputs() == {"g": "found"}
    assert [c["id"] for c in project.calls("Read")] == ["a-1"]
    project.program('Thing("a", value="found")')
    assert project.up().changes == {"same": 2, "discard": 1}
    assert project.calls("Delete") == [] and project.stored() == ["a-1"]
    project.program('Thing("g", opts=Options(id="none-1"))')
    assert "none-1" in project.up(code=1).messages
    assert project.stored() == ["a-1"]


def test_replacement_order_and_a_half_finished_one(project: Project):
    text = 'a = Thing("a", {kind}="{0}")\nb = Thing("b", value=a.serial)\nc = Thing("c", zone=a.serial)'
    project.program(text.format(1, kind="slot"))
    project.up()
    project.calls()
    project.program(text.format(2, kind="slot"))
    project.knobs(fail_create=["a"])
    project.up(code=1)
    assert names(project.calls(*MUTATING)) == ["Delete c-1", "Delete a-1", "Create a"]
    assert {n for n, r in project.resources().items() if r.get("pendingReplacement")} == {"a", "c"}
    project.knobs()
    assert project.up().changes == {"same": 1, "replace": 2, "update": 1}
    assert sorted(names(project.calls(*MUTATING))) == ["Create a", "Create c", "Update b-1"]
    assert project.stored() == ["a-2", "b-1", "c-2"]


def test_a_failed_delete_of_a_replaced_resource_is_made_up_for(project: Project):
    project.program('a = Thing("a", zone="1")')
    project.up()
    project.program('a = Thing("a", zone="2")')
    project.knobs(fail_delete=["a"])
    project.up(code=1)
    assert project.stored() == ["a-1", "a-2"]
    assert [r["id"] for r in project.deployment()["resources"] if r.get("delete")] == ["a-1"]
    project.knobs()
    assert project.up().changes == {"same": 2}
    assert project.stored() == ["a-2"]


def test_deleted_with_and_retain_on_delete_call_no_delete(project: Project):
    project.program(
        'a = Thing("a", value=1)\nThing("b", value=2, opts=Options(deleted_with=a))\n'
        'Thing("k", value=3, opts=Options(retain_on_delete=True))'
    )
    project.up()
    project.calls()
    assert project.destroy().changes == {"delete": 4}
    assert names(project.calls("Delete")) == ["Delete a-1"]
    assert project.stored() == ["b-1", "k-1"] and project.resources() == {}


def test_protected_resources_stay_and_the_rest_goes(project: Project):
    project.program(
        'p = Thing("p", value=1)\na = Thing("a", value=p.serial, opts=Options(protect=True))\nb = Thing("b", value=2)'
    )
    project.up()
    done = project.destroy(code=1)
    assert "protected" in done.messages and done.changes == {"delete": 1}
    assert project.stored() == ["a-1", "p-1"]
    project.program('p = Thing("p", zone="2")\na = Thing("a", zone=p.serial, opts=Options(protect=True))')
    assert "marked for protection" in project.up(code=1).messages


def test_a_failure_keeps_what_is_done_and_deletes_nothing(project: Project):
    project.program('Thing("old", value=1)')
    project.up()
    project.program('a = Thing("a", value=1)\nb = Thing("b", value=a.serial)\nc = Thing("c", value=b.serial)')
    project.knobs(fail_create=["b"])
    done = project.up(code=1)
    assert "probe: create of b was told to fail" in done.messages
    assert project.stored() == ["a-1", "old-1"]
    assert set(project.resources()) == {"t-dev", "a", "old"} and "pending_operations" not in project.deployment()
    project.knobs()
    assert project.up().changes == {"create": 2, "same": 2, "delete": 1}


def test_a_resource_that_failed_to_initialise_is_kept_and_updated(project: Project):
    project.program('Thing("a", value=1)')
    project.knobs(not_ready=["a"])
    assert "not ready yet" in project.up(code=1).messages
    assert project.resources()["a"]["initErrors"] == ["not ready yet"]
    assert project.resources()["a"]["id"] == "a-1"
    project.knobs()
    project.calls()
    assert project.up().changes == {"same": 1, "update": 1}
    assert names(project.calls(*MUTATING)) == ["Update a-1"]
    assert "initErrors" not in project.resources()["a"]


def test_timeouts_and_inherited_options(project: Project):
    project.program("""
class Box(pulumi.ComponentResource):
    def __init__(self, name, opts=None):
        super().__init__("t:index:Box", name, None, opts)
        self.thing = Thing(f"{name}-t", value=1, opts=Options(
            parent=self, custom_timeouts=pulumi.CustomTimeouts(create="1m30s", delete="5s")))
        self.register_outputs({"serial": self.thing.serial})
Box("box", Options(protect=True))
""")
    project.up()
    assert [c["timeout"] for c in project.calls("Create")] == [90]
    thing = project.resources()["box-t"]
    assert thing["customTimeouts"] == {"create": 90, "delete": 5} and thing["protect"] is True
    assert thing["urn"].endswith("::t:index:Box$probe:index:Thing::box-t")
    assert project.resources()["box"]["outputs"] == {"serial": "SN-box-t-1"}


def test_provider_configuration_and_its_replacement(project: Project):
    project.config_file.write_text(
        project.config_file.read_text() + "config:\n  probe:region: north\n  probe:list: [{a: 1}]\n"
    )
    text = 'p = Provider("p", account="{0}")\nThing("a", value=1, opts=Options(provider=p))\nThing("d", value=2)'
    project.program(text.format("one"))
    assert project.up().changes == {"create": 4}
    configured = project.calls("Configure")
    assert {"version": "1.0.0", "region": "north", "list": '[{"a":1}]'} in [c["args"] for c in configured]
    assert {"version": "1.0.0", "account": "one"} in [c["args"] for c in configured]
    assert any(c["variables"].get("probe:config:region") == "north" for c in configured)
    project.program(text.format("two"))
    assert project.preview()["changeSummary"] == {"same": 2, "replace": 2}
    project.calls()
    assert project.up().changes == {"same": 2, "replace": 2}
    deletes = project.calls("Delete")
    assert [(c["id"], c["account"]) for c in deletes] == [("a-1", "one")]  # by the old provider
    assert project.stored() == ["a-2", "d-1"]
    assert [r["inputs"]["account"] for r in project.deployment()["resources"] if r["urn"].endswith("::p")] == ["two"]


@pytest.mark.parametrize("flags", ["", "plain", "no_handshake"])
def test_secrets_never_stand_in_the_state(project: Project, flags: str):
    project.setenv(PROBE_FLAGS=flags)
    project.program(
        's = pulumi.Output.secret("hush-1")\na = Thing("a", value=s, open="yes")\nb = Thing("b", value=[a.value, 1])\n'
        'pulumi.export("s", a.value)\npulumi.export("len", pulumi.Output.unsecret(a.value).apply(len))'
    )
    project.preview()
    project.up()
    project.refresh()
    assert project.up().changes == {"same": 3}
    assert "hush-1" not in project.run("stack", "export").out
    assert "hush-1" in project.run("stack", "export", "--show-secrets").out
    assert project.outputs() == {"s": "[secret]", "len": 6}
    assert project.outputs("--show-secrets") == {"s": "hush-1", "len": 6}
    assert project.resources()["a"]["outputs"]["open"] == "yes"


def test_unknown_diff_is_decided_by_the_inputs(project: Project):
    project.knobs(plain_diff=["a"])
    project.program('Thing("a", value=pulumi.Output.secret({"k": [1, True]}))')
    project.up()
    assert project.up().changes == {"same": 2}
    project.program('Thing("a", value=pulumi.Output.secret({"k": [1, 1]}))')
    assert project.up().changes == {"same": 1, "update": 1}


def test_functions_run_in_previews_and_their_failure_fails_the_program(project: Project):
    project.program('Thing("a", value=1)\npulumi.export("ids", lookup("a")["ids"])')
    assert project.preview()["changeSummary"] == {"create": 2}
    project.up()
    assert project.up().changes == {"same": 2}
    assert project.outputs() == {"ids": ["a-1"]}
    project.program('Thing("a", value=1)\nlookup("a", "probe:index:fail")')
    assert "told to fail" in project.up(code=1).messages


def test_aliases_rename_without_touching_the_resource(project: Project):
    project.program('a = Thing("a", value=1)\nThing("a-child", value=a.serial, opts=Options(parent=a))')
    project.up()
    project.calls()
    project.program(
        'a = Thing("z", value=1, opts=Options(aliases=[pulumi.Alias(name="a")]))\n'
        'Thing("z-child", value=a.serial, opts=Options(parent=a))'
    )
    assert project.up().changes == {"same": 3}
    assert project.calls(*MUTATING) == []
    child = project.resources()["z-child"]
    assert child["id"] == "a-child-1" and child["parent"].endswith("::z") and child["dependencies"] == [child["parent"]]
