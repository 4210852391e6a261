"""`ironburst plan`: what is refused and what is let through, each by a preview of the CLI's own shape."""

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from ironburst.cli import main
from ironburst.plan.comment import MOST
from ironburst.plan.preview import UNKNOWN, read_preview, read_refresh
from tests import google_stack
from tests.unit.plan.steps import preview, step

STACKS = Path(__file__).parents[3] / "stacks"
INSTANCE, NODE = "aws:ec2/instance:Instance", "baremetal:index:Node"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
SECRET = "aws:secretsmanager/secret:Secret"
TODAY = datetime.now(UTC).date()


@pytest.fixture
def plan(tmp_path, capsys):
    """`plan(preview, change, *options)`: exit code, comment and errors, for the example prod as `change` makes it."""

    def write(name, change):
        stack = yaml.safe_load((STACKS / "Pulumi.prod.yaml").read_text())
        change(stack["config"]["ironburst:cluster"])
        path = tmp_path / name / "Pulumi.prod.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(yaml.safe_dump(stack))
        return path

    def run(text, change=lambda declared: None, *options, before=None):
        (tmp_path / "preview.json").write_text(text)
        given = ["--before", str(write("before", before))] if before else []
        code = main(
            ["plan", str(write("now", change)), "--preview", str(tmp_path / "preview.json"), *given, *map(str, options)]
        )
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def nodes(tmp_path):
    """What `scontrol show node --json` says, saved: name -> (states, allocated CPUs)."""

    def save(**states):
        raw = [{"name": name.replace("_", "-"), "state": s, "alloc_cpus": cpus} for name, (s, cpus) in states.items()]
        path = tmp_path / "nodes.json"
        path.write_text(json.dumps({"nodes": raw}))
        return path

    return save


def allowing(rule, of=None, days=3, **changes):
    entry = {"rule": rule, "reason": "the rack moves", "by": "anna", "until": TODAY + timedelta(days=days)}

    def change(declared):
        declared.update(changes)
        declared["allow"] = [entry | ({"of": of} if of else {})]

    return change


REPLACED = step(
    "replace",
    INSTANCE,
    "inference-1",
    {"keyName": "old"},
    {"keyName": "new"},
    diffReasons=["keyName"],
    replaceReasons=["keyName"],
    detailedDiff={"keyName": {"kind": "update-replace", "inputDiff": False}},
)
RETYPED = step("update", INSTANCE, "inference-1", {}, {}, diffReasons=["instanceType"])
GONE = step("delete", NODE, "dgx08", {"name": "dgx08"})
HARMFUL = [
    (REPLACED, "inference-1", "replaced for keyName"),
    (RETYPED, "inference-1", "stopped for its new instanceType"),
]
HARMFUL += [(GONE, "dgx08", "taken away")]


@pytest.mark.parametrize(("harmful", "name", "words"), HARMFUL)
def test_a_node_that_nobody_asked_about_counts_as_busy(plan, harmful, name, words):
    code, out, err = plan(preview(harmful))
    assert code == 3 and f"{name} would be {words}" in err and "wasn't asked" in err
    assert "**refused** (1)" in out and f"rule: node, of: {name}" in err


@pytest.mark.parametrize(("harmful", "name", "_words"), HARMFUL)
@pytest.mark.parametrize(
    ("states", "cpus", "code", "why"),
    [
        (["IDLE", "DRAIN"], 0, 0, ""),
        (["MIXED", "DRAIN"], 64, 3, "it runs jobs on 64 CPUs"),
        (["IDLE", "DRAIN", "COMPLETING"], 0, 3, "it runs jobs"),
        (["IDLE"], 0, 3, "it isn't drained (IDLE), so a job may start on it"),
        (["DOWN"], 0, 3, "it isn't drained (DOWN)"),
    ],
)
def test_a_drained_node_without_jobs_may_go(plan, nodes, harmful, name, _words, states, cpus, code, why):
    asked = nodes(**{name.replace("-", "_"): (states, cpus)})
    got, _, err = plan(preview(harmful), lambda _: None, "--nodes", asked)
    assert got == code and why in err


def test_a_node_that_slurm_does_not_know_counts_as_busy(plan, nodes):
    code, _, err = plan(preview(GONE), lambda _: None, "--nodes", nodes(dgx01=(["IDLE"], 0)))
    assert code == 3 and "Slurm doesn't know it" in err


def test_a_head_that_was_not_reached_is_no_answer(plan, tmp_path):
    (tmp_path / "nodes.json").write_text("\n")
    code, _, err = plan(preview(GONE), lambda _: None, "--nodes", tmp_path / "nodes.json")
    assert code == 3 and "wasn't asked" in err


def test_what_the_example_does_at_first_is_not_refused(plan):
    code, out, _ = plan(
        preview(step("create", INSTANCE, "inference-1", after={}), step("create", NODE, "dgx01", after={}))
    )
    assert code == 0 and "2 made" in out and "refused" not in out


def test_tags_of_a_node_may_change(plan):
    assert plan(preview(step("update", INSTANCE, "inference-1", {}, {}, diffReasons=["tags", "tagsAll"])))[0] == 0


def test_a_step_that_is_not_known_is_harm(plan):
    code, _, err = plan(preview(step("rename-everything", NODE, "dgx01", {}, {})))
    assert code == 3 and "rename-everything" in err


def test_parts_of_a_replacement_are_one_change():
    parts = [step(op, INSTANCE, "inference-1", {"a": 1}, {"a": 2}) for op in ("create-replacement", "replace")]
    parts.append(step("delete-replaced", INSTANCE, "inference-1", {"a": 1}))
    (change,) = read_preview(preview(*parts)).changes
    assert (change.op, change.before, change.after) == ("replace", {"a": 1}, {"a": 2})


def test_somebody_answers_for_it_until_a_day(plan):
    code, out, err = plan(preview(GONE), allowing("node", "dgx08"))
    assert code == 0 and err == "" and "node of dgx08, by anna until" in out and "the rack moves" in out


@pytest.mark.parametrize(
    "change", [allowing("node", "dgx08", days=-1), allowing("node", "dgx07"), allowing("open-network", "dgx08")]
)
def test_an_allowance_that_is_over_or_of_something_else_lets_nothing_through(plan, change):
    assert plan(preview(GONE), change)[0] == 3


def test_an_allowance_far_ahead_is_bad_input(plan):
    code, _, err = plan(preview(GONE), allowing("node", "dgx08", days=60))
    assert code == 2 and "more than 31 days ahead" in err


def test_an_allowance_says_of_what(plan):
    code, _, err = plan(preview(GONE), allowing("node"))
    assert code == 2 and "allow[0].of" in err


def ceiling(usd):
    return {"budget": {"usd_per_month": 60000, "total_usd_per_month": usd}}


def test_dearer_than_the_ceiling_is_refused(plan):
    code, out, err = plan(preview(), lambda declared: declared.update(ceiling(100000)))
    assert code == 3 and "120,342 USD at worst" in err and "**120,342**" in out
    assert plan(preview(), lambda declared: declared.update(ceiling(130000)))[0] == 0
    assert plan(preview(), allowing("budget", **ceiling(100000)))[0] == 0


def test_dollars_before_and_after(plan):
    def smaller(declared):
        declared["cloud"]["groups"][0]["count"] = 1

    _, out, _ = plan(preview(), smaller, before=lambda declared: None)
    assert "| `cloud.groups.inference.count` | `2` | `1` |" in out
    assert "| fixed group inference | 60,269 | 30,134 |" in out and "| **in all** | 120,342 | **90,207** |" in out


def test_a_price_that_is_not_known_is_refused_under_a_ceiling(plan):
    def elsewhere(declared):  # no network prices there
        declared["cloud"] |= {"region": "eu-north-1", "price": {"p5.48xlarge": {"on_demand": 40}}, "pools": []}
        declared["cloud"]["network"]["zones"] = ["eu-north-1a"]
        declared["cloud"]["groups"][0]["zone"] = "eu-north-1a"
        declared.update(ceiling(1_000_000))

    code, out, err = plan(preview(), elsewhere)
    if code == 2:
        pytest.fail(err)
    assert code == 3 and "price of network isn't known" in err and "not known" in out


def ingress(*networks, key="cidrBlocks"):
    return {"ingress": [{"protocol": "-1", "fromPort": 0, "toPort": 0, key: list(networks)}]}


@pytest.mark.parametrize(
    "opened",
    [
        step("update", GROUP, "prod-nodes", ingress("10.0.0.0/8"), ingress("10.0.0.0/8", "0.0.0.0/0")),
        step("create", GROUP, "prod-nodes", after=ingress("::/0", key="ipv6CidrBlocks")),
        step("update", GROUP, "prod-nodes", ingress(), ingress("0.0.0.0/1", "128.0.0.0/1")),
        step("update", GROUP, "prod-nodes", ingress(), ingress(UNKNOWN)),
        step("update", GROUP, "prod-nodes", ingress(), {"ingress": UNKNOWN}),
        step(
            "create",
            "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
            "prod-nodes",
            after={"cidrIpv4": "0.0.0.0/0"},
        ),
        step(
            "create",
            "aws:ec2/securityGroupRule:SecurityGroupRule",
            "prod-nodes",
            after={"type": "ingress", "cidrBlocks": ["0.0.0.0/0"]},
        ),
    ],
)
def test_an_open_network_is_refused_and_may_be_answered_for(plan, opened):
    code, _, err = plan(preview(opened))
    assert code == 3 and "security group prod-nodes would let in" in err
    assert plan(preview(opened), allowing("open-network", "prod-nodes"))[0] == 0


@pytest.mark.parametrize(
    "harmless",
    [
        step("update", GROUP, "prod-nodes", ingress("0.0.0.0/0"), ingress("0.0.0.0/0", "10.0.0.0/8")),  # as it was
        step("delete", GROUP, "prod-nodes", ingress("0.0.0.0/0")),
        step(
            "create", GROUP, "prod-nodes", after=ingress("10.30.0.0/20") | {"egress": [{"cidrBlocks": ["0.0.0.0/0"]}]}
        ),
        step(
            "create",
            "aws:ec2/securityGroupRule:SecurityGroupRule",
            "out",
            after={"type": "egress", "cidrBlocks": ["0.0.0.0/0"]},
        ),
    ],
)
def test_what_opens_nothing_is_let_be(plan, harmless):
    assert plan(preview(harmless))[0] == 0


def other_key(declared):
    declared["scheduler"]["munge_key"] = "aws-secretsmanager:prod/other"


def test_another_munge_key_is_refused_and_may_be_answered_for(plan):
    code, _, err = plan(preview(), other_key, before=lambda declared: None)
    assert code == 3 and "munge_key of slurm would be aws-secretsmanager:prod/other instead of" in err

    def allowed(declared):
        other_key(declared)
        allowing("join-secret", "slurm")(declared)

    assert plan(preview(), allowed, before=lambda declared: None)[0] == 0
    assert plan(preview(), before=lambda declared: None)[0] == 0


def test_another_copy_of_it_in_a_second_cloud_is_refused(plan):
    def with_copy(name):
        def change(declared):
            cloud = google_stack.cloud()
            network, key = {"cidr": "10.93.0.0/16", "zones": ["us-central1-a"]}, declared["scheduler"]["munge_key"]
            copies = {key: f"google-secretmanager:lab-project/{name}"}
            kept = {name: cloud[name] for name in ("provider", "project", "region")}
            declared["other_clouds"] = [kept | {"network": network, "secrets": copies}]

        return change

    code, _, err = plan(preview(), with_copy("new"), before=with_copy("old"))
    assert code == 3 and "munge_key of slurm in google would be google-secretmanager:lab-project/new instead of" in err
    assert plan(preview(), with_copy("old"), before=with_copy("old"))[0] == 0


@pytest.mark.parametrize("op", ["delete", "replace"])
def test_a_secret_that_goes_is_refused(plan, op):
    code, _, err = plan(preview(step(op, SECRET, "munge", {}, {})))
    assert code == 3 and "secret munge" in err


def test_a_preview_that_failed_is_shown_and_refused(plan):
    said = {"message": "prod/Pulumi: no such image\n", "severity": "error"}
    code, out, _ = plan(json.dumps({"diagnostics": [said]}))
    assert code == 3 and "no such image" in out and "the preview failed" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("Previewing update", "is not JSON"),
        ("[]", "has no steps"),
        ("{}", "has no steps"),
        ('{"steps": [{"op": "create"}]}', "shape that isn't known"),
        (preview(step("create", NODE, "dgx01", after={}, stack="staging")), "is of the stack staging"),
    ],
)
def test_what_is_no_preview_of_this_stack_is_bad_input(plan, text, words):
    code, out, err = plan(text)
    assert (code, out) == (2, "") and words in err


def refreshed(*steps, **more):
    """As the CLI 3.260.0 prints it: what is unchanged is a step `refresh`, and counts as same."""
    counts = {"same": 1} | Counter(each["op"] for each in steps)
    unchanged = {"op": "refresh", "urn": "urn:pulumi:prod::ironburst::pulumi:pulumi:Stack::ironburst-prod"}
    digest = {"steps": [unchanged, *steps], "duration": 1000, "changeSummary": counts} | more
    return json.dumps({key: value for key, value in digest.items() if value is not None}, indent=4)


def test_drift_of_both_sides_is_in_the_comment(plan, tmp_path):
    changed = step("update", GROUP, "prod-nodes", ingress(), ingress("192.0.2.0/24"))
    (tmp_path / "refresh.json").write_text(refreshed({**changed, "diffReasons": ["ingress"]}))
    host = {"state": "drifted", "why": ["/etc/slurm/slurm.conf"], "tasks": [], "error": None}
    report = {"cluster": "prod", "hosts": {"dgx01": host, "dgx02": {"state": "unchanged"}}, "error": None}
    (tmp_path / "converge.json").write_text(json.dumps(report))
    files = ["--refresh", tmp_path / "refresh.json", "--converge", tmp_path / "converge.json"]
    code, out, _ = plan(preview(), lambda _: None, *files, "--expect-no-changes")
    assert code == 4 and "`dgx01`: drifted: /etc/slurm/slurm.conf" in out and "dgx02" not in out
    assert "security group `prod-nodes`: changed ingress" in out
    assert plan(preview(), lambda _: None, *files)[0] == 0


def test_no_drift_and_no_change_is_zero(plan, tmp_path):
    (tmp_path / "refresh.json").write_text(refreshed())
    (tmp_path / "converge.json").write_text(json.dumps({"hosts": {"dgx01": {"state": "unchanged"}}, "error": None}))
    files = ["--refresh", tmp_path / "refresh.json", "--converge", tmp_path / "converge.json"]
    code, out, _ = plan(preview(), lambda _: None, *files, "--expect-no-changes")
    assert code == 0 and "none on 1 hosts" in out and "none of the declared resources" in out


def test_a_converge_that_said_nothing_is_drift(plan, tmp_path):
    (tmp_path / "converge.json").write_text("")
    code, out, _ = plan(preview(), lambda _: None, "--converge", tmp_path / "converge.json", "--expect-no-changes")
    assert code == 4 and "said nothing" in out


def test_a_converge_that_could_not_look_is_drift_and_not_none(plan, tmp_path):
    (tmp_path / "converge.json").write_text(json.dumps({"hosts": {}, "error": "no secret"}))
    code, out, _ = plan(preview(), lambda _: None, "--converge", tmp_path / "converge.json", "--expect-no-changes")
    assert code == 4 and "- no secret" in out and "none on" not in out


def test_a_refresh_that_did_not_end_is_bad_input(plan, tmp_path):
    (tmp_path / "refresh.json").write_text(refreshed(duration=None))
    code, _, err = plan(preview(), lambda _: None, "--refresh", tmp_path / "refresh.json")
    assert code == 2 and "no summary" in err
    with pytest.raises(ValueError, match="has no steps: write what `pulumi refresh --preview-only --json` prints"):
        read_refresh("[]")


def test_a_change_that_a_refresh_counts_and_does_not_name_is_drift(plan, tmp_path):
    (tmp_path / "refresh.json").write_text(refreshed(changeSummary={"same": 1, "update": 2}))
    code, out, _ = plan(preview(), lambda _: None, "--refresh", tmp_path / "refresh.json", "--expect-no-changes")
    assert code == 4 and "2 more resources are otherwise than in the state" in out


def test_a_comment_fits_and_starts_with_its_marker(plan):
    many = [step("create", f"aws:ec2/kind{n}:Kind{n}", f"name-{n}" * 9, after={}) for n in range(2000)]
    code, out, _ = plan(preview(*many))
    assert code == 0 and out.startswith("<!-- ironburst plan prod -->\n")
    assert len(out) < MOST + 1000 and "more: the job's log has all of them" in out


def test_what_a_resource_is_called_is_no_markup(plan):
    evil = "x` | </details> [click](http://192.0.2.1) "
    _, out, _ = plan(preview(step("delete", NODE, evil, {})))
    assert "</details>" not in out.replace("\\<", "").split("#### Changes")[0]


def test_json_says_the_same(plan):
    code, out, _ = plan(preview(GONE), lambda _: None, "--json")
    said = json.loads(out)
    assert code == 3 and said["refusals"][0]["rule"] == "node" and said["changes"][0]["name"] == "dgx08"


COMPONENT = step("create", "ironburst:components:BareMetalNodes", "hall-a", after={})
READ = step("create", NODE, "dgx01", after={"serial": "S1"})


@pytest.mark.parametrize(
    "more",
    [
        step("create", INSTANCE, "inference-1", after={}),
        step("delete", NODE, "dgx02", before={"serial": "S2"}),
        step("create", NODE, "dgx02", after={"install": {"mark": "CHG-1"}}),
        step("update", NODE, "dgx02", {"install": {"mark": "CHG-1"}}, {}, diffReasons=["install"]),
        step("replace", NODE, "dgx02", {"name": "dgx02"}, {"name": "dgx03"}, replaceReasons=["name"]),
    ],
)
def test_the_state_is_written_once_where_bmcs_are_read_and_nothing_else_is_done(plan, tmp_path, more):
    def of_up(*steps):
        plan(preview(*steps), lambda _: None, "--up-environment", tmp_path / "up.env")
        return (tmp_path / "up.env").read_text()

    updated = step("update", NODE, "dgx04", {"serial": "S3"}, {"serial": "S4"}, diffReasons=["serial"])
    assert of_up(COMPONENT, READ, updated) == "PULUMI_SKIP_CHECKPOINTS=true\n"
    assert of_up(COMPONENT, READ, more) == ""
