"""Previews as `pulumi preview --json` prints them: Pulumi's PreviewDigest, in the shapes of display/json.go 3.x."""

import json

CLUSTER = "ironburst:components:Cluster"


def urn(kind, name, stack="prod"):
    return f"urn:pulumi:{stack}::ironburst::{CLUSTER}${kind}::{name}"


def step(op, kind, name, before=None, after=None, stack="prod", **more):
    """`before`, `after`: inputs; more: diffReasons, replaceReasons, detailedDiff."""
    said = {"op": op, "urn": urn(kind, name, stack), "detailedDiff": None, **more}
    common = {"urn": said["urn"], "custom": True, "type": kind, "parent": urn(CLUSTER, "prod", stack)}
    said |= {"oldState": common | {"inputs": before, "outputs": before}} if before is not None else {}
    return said | ({"newState": common | {"inputs": after}} if after is not None else {})


def preview(*steps, diagnostics=(), config=None):
    """Whole, with the stack itself, which the CLI always shows; what is empty is left out, as Go's omitempty does."""
    of = steps[0]["urn"].split(":")[2] if steps else "prod"
    stack = {"op": "same", "urn": f"urn:pulumi:{of}::ironburst::pulumi:pulumi:Stack::ironburst-{of}"}
    steps = (stack, *steps)
    said = {"config": config or {"aws:region": "us-east-1"}, "steps": list(steps), "diagnostics": list(diagnostics)}
    counts = {op: sum(each["op"] == op for each in steps) for op in {each["op"] for each in steps}}
    said |= {"duration": 1300000000, "changeSummary": counts}
    return json.dumps({key: value for key, value in said.items() if value}, indent=4)
