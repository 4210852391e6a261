"""The stand-in of GitHub refuses what it doesn't implement, and what GitHub refuses."""

import json

import pytest

from lab.ci import workflow
from lab.ci.expressions import Refused, filled, value
from lab.ci.forge import Environment, Forge, git
from lab.ci.runner import pairs

CHECKOUT = "actions/checkout@de0fac2e4500dabe0009e67214ff5f5447ce83dd"
AWS = "aws-actions/configure-aws-credentials@e6de054238d6b7531b4efff3b6587d9aade6a06c"
HEAD = "on: {pull_request: , push: {branches: [main]}}\npermissions: {}\njobs:\n"
FUNCTIONS = {"fromJSON": json.loads, "success": lambda: True}


@pytest.fixture
def forge(tmp_path):
    """A repository with one workflow: `forge(job, on)` is it, and what its pull request did."""
    opened = []

    def make(job, **settings):
        made = Forge(tmp_path, "org/site", {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}, sign_in, {})
        opened.append(made)
        vars(made).update(settings)
        clone = tmp_path / "clone"
        git(tmp_path, "clone", "--quiet", str(made.origin), str(clone))
        flows = clone / ".github/workflows"
        flows.mkdir(parents=True)
        text = f"{HEAD}  one:\n    runs-on: x\n    timeout-minutes: 1\n"
        (flows / "flow.yml").write_text(text + "".join(f"    {line}\n" for line in job.strip().splitlines()))
        who = ("-c", "user.name=a", "-c", "user.email=a@invalid")
        git(clone, "add", "-A")
        git(clone, *who, "commit", "--quiet", "-m", "first")
        git(clone, "push", "--quiet", "origin", "HEAD:main", "HEAD:more")
        return made

    yield make
    for each in opened:
        each.close()


def sign_in(role, subject, seconds):
    return {"AWS_SECRET_ACCESS_KEY": f"secret of {role} for {subject}"}


def ran(made, fork=False):
    pull, (result,) = made.pull_request("more", "More", fork)
    return pull, result


SIGN_IN = f"steps:\n- uses: {AWS}\n  with: {{role-to-assume: r, aws-region: us-east-1}}\n- run: env | grep AWS_"


def test_a_token_is_for_who_has_the_right_to_one(forge):
    _, result = ran(forge(SIGN_IN))
    assert result.conclusion == "failure" and "id-token" in result.log


def test_a_token_says_who_the_job_is_and_credentials_are_masked(forge):
    asked = []
    made = forge(f"permissions: {{id-token: write}}\nenvironment: prod\n{SIGN_IN}")
    made.sign_in = lambda role, subject, s: asked.append((subject, s)) or sign_in(role, subject, s)
    _, result = ran(made)
    assert result.conclusion == "success" and asked == [("repo:org/site:environment:prod", 3600)]
    assert "AWS_SECRET_ACCESS_KEY=***" in result.log and "secret of" not in result.log


def test_a_session_is_as_long_as_the_step_says(forge):
    asked = []
    longer = SIGN_IN.replace("us-east-1}", "us-east-1, role-duration-seconds: 10800}")
    made = forge(f"permissions: {{id-token: write}}\n{longer}")
    made.sign_in = lambda role, subject, s: asked.append(s) or sign_in(role, subject, s)
    assert ran(made)[1].conclusion == "success" and asked == [10800]


def test_a_fork_gets_no_token(forge):
    assert ran(forge(f"permissions: {{id-token: write}}\n{SIGN_IN}"), fork=True)[1].conclusion == "failure"


COMMENT = """steps:
- run: |
    curl -sf -X POST -H "Authorization: Bearer ${{ github.token }}" -d '{"body": "x"}' \\
      $GITHUB_API_URL/repos/org/site/issues/1/comments
"""


@pytest.mark.parametrize(("rights", "ends"), [("{}", "failure"), ("{pull-requests: write}", "success")])
def test_a_comment_needs_the_right_to_it(forge, rights, ends):
    pull, result = ran(forge(f"permissions: {rights}\n{COMMENT}"))
    assert result.conclusion == ends and len(pull.comments) == (ends == "success"), result.log


@pytest.mark.parametrize(("rights", "ends"), [("contents: read", "failure"), ("contents: write", "success")])
def test_a_push_needs_the_right_to_it(forge, rights, ends):
    steps = f"steps:\n- uses: {CHECKOUT}\n- run: git push origin HEAD:made"
    assert ran(forge(f"permissions: {{{rights}}}\n{steps}"))[1].conclusion == ends


def test_an_environment_waits_for_its_reviewers_and_its_branch(forge):
    made = forge("environment: prod\nsteps:\n- run: 'true'", environments={"prod": Environment(reviewed=True)})
    assert "nobody approved prod" in ran(made)[1].log
    made.approve = lambda environment: True
    assert ran(made)[1].conclusion == "success"
    made.environments["prod"].main_only = True
    assert "not allowed to deploy" in ran(made)[1].log


def test_steps_after_a_failure_run_only_where_they_say_so(forge):
    steps = """steps:
- run: exit 3
- run: echo never
- if: always()
  run: echo cleaned
- if: ${{ !cancelled() }}
  run: echo told
"""
    _, result = ran(forge(steps))
    output = [line for line in result.log.splitlines() if not line.startswith("##")]
    assert result.conclusion == "failure" and "cleaned" in output and "told" in output and "never" not in output


def test_what_steps_hand_on(forge):
    steps = """steps:
- id: a
  run: printf 'x<<END\\none\\ntwo\\nEND\\n' >> $GITHUB_OUTPUT; echo WORD=kept >> $GITHUB_ENV; echo ::add-mask::hush
- run: echo "${{ steps.a.outputs.x }} $WORD hush"
"""
    assert "one\ntwo kept ***" in ran(forge(steps))[1].log


@pytest.mark.parametrize(
    "job",
    [
        "services: {}\nsteps: []",
        "steps:\n- run: x\n  shell: python",
        "steps:\n- run: x\n  uses: y",
        "steps:\n- name: neither",
        "permissions: write-all\nsteps: []",
        "permissions: {packages: write}\nsteps: []",
        "strategy: {matrix: {include: [{a: 1}]}}\nsteps: []",
        "steps:\n- uses: actions/checkout@v6",
        "steps:\n- uses: somebody/else@de0fac2e4500dabe0009e67214ff5f5447ce83dd",
        f"steps:\n- uses: {CHECKOUT}\n  with: {{submodules: true}}",
        "steps:\n- run: echo ${{ secrets.KEY }}",
        "steps:\n- run: echo ${{ hashFiles('x') }}",
    ],
)
def test_what_is_not_implemented_is_refused(forge, job):
    with pytest.raises(Refused):
        ran(forge(job))


@pytest.mark.parametrize("name", ["preview", "up", "drift", "lock", "test"])
def test_our_own_files_are_implemented(name):
    from lab.tests.ci.sites import ROOT

    assert workflow.read(ROOT / f".github/workflows/{name}.yml").jobs


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("1 == 1 && 'a' || 'b'", "a"),
        ("a.none || 'else'", "else"),
        ("a.b != 'X'", False),  # capitals don't count
        ("!a.b", False),
        ("(a.b == 'x') && true", True),
        ("fromJSON('[1, 2]')", [1, 2]),
        ("'it''s'", "it's"),
        ("success()", True),
    ],
)
def test_expressions(text, worth):
    assert value(text, {"a": {"b": "x"}}, FUNCTIONS) == worth


@pytest.mark.parametrize("text", ["b.c", "a.b >", "a.b ==", "(a.b", "a.b a.b", "toJSON(a)", "fromJSON('1', '2')"])
def test_expressions_that_are_not_implemented(text):
    with pytest.raises(Refused):
        value(text, {"a": {}}, FUNCTIONS)


def test_a_text_with_expressions():
    assert filled("x-${{ a.b }}-${{ a.c }}", {"a": {"b": 1}}, {}) == "x-1-"


@pytest.mark.parametrize("text", ["a<<END\nb\n", "no equals sign"])
def test_files_that_github_refuses(text):
    with pytest.raises(Refused, match="Invalid"):
        pairs(text)
