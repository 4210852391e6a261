"""The files that the forges read: by the forges' published schemas, actionlint, and what we promise of them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
GITLAB = ROOT / ".gitlab-ci.yml"
CHECK = Path(sys.executable).with_name("check-jsonschema")
BUILT = ROOT / ".lab/cache/actionlint-1.7.8/actionlint"  # by `make actionlint`
ENVIRONMENTS = ["staging", "prod"]
PINNED = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}")


def read(path):
    """A workflow. YAML 1.1 takes the key `on` for yes."""
    said = yaml.safe_load(path.read_text())
    return {("on" if key is True else key): value for key, value in said.items()}


def jobs():
    return [(f"{path.stem}/{name}", job) for path in WORKFLOWS for name, job in read(path)["jobs"].items()]


def checked(*arguments):
    done = subprocess.run([CHECK, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_githubs_schema():
    assert {path.stem for path in WORKFLOWS} == {"preview", "up", "drift", "lock", "test"}
    checked("--builtin-schema", "vendor.github-workflows", *WORKFLOWS)


def test_gitlabs_schema():
    checked("--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci", GITLAB)


def test_actionlint():
    linter = shutil.which("actionlint") or (str(BUILT) if BUILT.exists() else None)
    if not linter:
        pytest.skip("no actionlint on PATH, and `make actionlint` (needs Go) has built none")
    done = subprocess.run([linter, "-no-color", *map(str, WORKFLOWS)], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("name", "job"), [pytest.param(*job, id=job[0]) for job in jobs()])
def test_a_job_has_an_end_and_pinned_actions_and_no_logic(name, job):
    assert job["timeout-minutes"]
    for step in job["steps"]:
        assert "uses" not in step or PINNED.fullmatch(step["uses"]), step
        assert len(step.get("run", "").strip().splitlines()) <= 1, f"a script of ci/ does it: {step['run']}"


@pytest.mark.parametrize(("name", "job"), [pytest.param(*job, id=job[0]) for job in jobs()])
def test_credentials_are_taken_last_and_outlive_the_job(name, job):
    """What `up` made is written into the state at its end: a session that ends before loses it."""
    steps = job["steps"]
    taken = [n for n, step in enumerate(steps) if "configure-aws-credentials" in step.get("uses", "")]
    assert len(taken) == (name.split("/")[0] in ("preview", "up", "drift"))
    for n in taken:
        seconds = steps[n]["with"].get("role-duration-seconds", 3600)  # the action's own, and a new role's longest
        assert seconds >= 60 * job["timeout-minutes"] and seconds <= 43200, name
        assert re.fullmatch(r"ci/(preview|up|drift)\.sh", steps[n + 1]["run"]), name
        # of other clouds only the way to a token is taken, which lasts as long as the job; none has a role: no AWS
        assert steps[n - 1]["run"] == 'python3 ci/sign_in.py >> "$GITHUB_ENV"'
        role = steps[n]["with"]["role-to-assume"].strip("${ }")
        assert steps[n]["if"] == f"{role} != ''" and steps[n - 1]["env"]["AWS_ROLE_ARN"] == f"${{{{ {role} }}}}"


def test_gitlabs_programs_take_the_role_by_a_token_that_lives_as_long_as_the_job():
    hall = yaml.safe_load(GITLAB.read_text())[".hall"]
    assert hall["variables"]["AWS_WEB_IDENTITY_TOKEN_FILE"] and hall["id_tokens"]
    assert "AWS_ACCESS_KEY_ID" not in GITLAB.read_text()
    assert set(hall["id_tokens"]) == {"AWS_TOKEN", "GOOGLE_TOKEN", "AZURE_TOKEN"}


def test_nobody_gets_more_rights_than_the_job_needs():
    for path in WORKFLOWS:
        assert read(path)["permissions"] in ({}, {"contents": "read"}), path
    rights = {name: {key for key, way in job.get("permissions", {}).items() if way == "write"} for name, job in jobs()}
    assert rights == {
        "preview/plan": {"id-token", "pull-requests"},
        "up/up": {"id-token"},
        "drift/drift": {"id-token"},
        "lock/lock": {"contents", "pull-requests"},
        "test/test": set(),
    }
    assert "secrets." not in "".join(path.read_text() for path in WORKFLOWS)  # GitHub's own token is github.token


def test_an_up_waits_for_approval_and_is_never_cut_off():
    job = read(ROOT / ".github/workflows/up.yml")["jobs"]["up"]
    assert job["environment"] == "${{ matrix.stack }}" and job["concurrency"]["cancel-in-progress"] is False
    assert job["strategy"] == {"fail-fast": True, "max-parallel": 1, "matrix": {"stack": ENVIRONMENTS}}
    gitlab = yaml.safe_load(GITLAB.read_text())
    assert gitlab[".up"]["interruptible"] is False and gitlab[".up"]["resource_group"] == "up-$STACK"
    assert gitlab[".up"]["rules"][-1]["when"] == "manual" and gitlab["up-prod"]["needs"] == ["up-staging"]


def test_all_files_are_of_the_same_environments():
    for name, job in jobs():
        assert name == "test/test" or job["strategy"]["matrix"]["stack"] == ENVIRONMENTS
    gitlab = yaml.safe_load(GITLAB.read_text())
    for name in ("preview", "drift", "lock"):
        assert gitlab[name]["parallel"]["matrix"] == [{"STACK": ENVIRONMENTS}]
    assert all((ROOT / f"stacks/Pulumi.{stack}.yaml").exists() for stack in ENVIRONMENTS)


def test_both_forges_run_the_same_scripts():
    def scripts(text):
        return set(re.findall(r"(?<!build/)ci/[\w.]+", text))

    github = set().union(*(scripts(path.read_text()) for path in WORKFLOWS))
    assert github == scripts(GITLAB.read_text())
    assert {path.name for path in (ROOT / "ci").glob("*.*")} == {Path(name).name for name in github}
