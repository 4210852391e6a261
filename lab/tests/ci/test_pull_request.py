"""The workflow files, run: from a pull request to a published document, nightly drift, newer versions.

The jobs' own commands run, on lab/ci (a stand-in for GitHub) and the lab's AWS. There are no hosts here,
nor their secrets: `converge --check` says so, which is what the tests ask of it.
"""

import json
import shutil

import pytest

from ironburst import document
from ironburst.config import load
from ironburst.config.aws import sizes, up_policies
from lab.aws.organization import no_launch_without, no_role_without
from lab.aws.testing import client
from lab.ci.forge import Forge, git
from lab.tests.ci.sites import ROOT, Site, ended, first_up
from tests.lab_cloud import clients, cloud, server  # noqa: F401


@pytest.fixture
def site(cloud, tmp_path):  # noqa: F811
    made = Site(tmp_path, cloud.url)
    made.prepare_account()
    yield made
    made.forge.close()


@pytest.mark.slow
def test_from_a_pull_request_to_a_published_document(site):
    site.push("main", "first")
    first_up(site)
    forge = site.forge

    # a pull request: planned with CI's own role, in one comment
    site.push("more", "a second node", lambda c: c["cloud"]["pools"][0].update(max_nodes=2))
    pull, results = forge.pull_request("more", "A second node")
    ended(results, preview="success")
    (comment,) = pull.comments.values()
    assert comment.startswith("<!-- ironburst plan staging -->") and "refused" not in comment
    assert "| `cloud.pools.p5.max_nodes` | `1` | `2` |" in comment and "| rented nodes | 5,000 | 5,000 |" in comment
    # pushed to again, it is the same comment; what it would open is refused, and says how it may be allowed
    git(site.clone, "checkout", "--quiet", "more")
    network = site.clone / "components/aws/network.py"
    honest = network.read_text()
    network.write_text(honest.replace("incoming(self=True,", 'incoming(cidr_blocks=["0.0.0.0/0"],'))
    git(site.clone, "commit", "--quiet", "-am", "open to everybody")
    git(site.clone, "push", "--quiet", "origin", "more")
    ended(forge.synchronize(pull), preview="failure")
    (comment,) = pull.comments.values()
    assert "**refused** (1)" in comment and "let in 0.0.0.0/0" in comment
    network.write_text(honest)
    git(site.clone, "commit", "--quiet", "-am", "closed again")
    git(site.clone, "push", "--quiet", "origin", "more")
    ended(forge.synchronize(pull), preview="success")
    assert len(pull.comments) == 1

    # merged: without a reviewer nothing happens, with one it is applied and published
    forge.approve = lambda environment: False
    ended(forge.merge(pull), up="failure")
    assert not site.document.exists()
    forge.approve = lambda environment: environment == "staging"
    site.push("third", "a third node", lambda c: c["cloud"]["pools"][0].update(max_nodes=3))
    pull, _ = forge.pull_request("third", "A third node")
    log = ended(forge.merge(pull), up="success")
    published = document.read(site.document)
    assert published.serial == 1 and len(published.pool("p5").nodes) == 3
    assert "AWS_SECRET" not in log and "***" not in published.model_dump_json()

    # the next one counts the serial on; every night says whether it is still so
    site.push("fourth", "a fourth node", lambda c: c["cloud"]["pools"][0].update(max_nodes=4))
    pull, _ = forge.pull_request("fourth", "A fourth node")
    ended(forge.merge(pull), up="success")
    assert document.read(site.document).serial == 2
    by_hand, of_nodes = client(site.cloud_url), [{"Name": "description", "Values": ["GPU nodes"]}]
    (group,) = by_hand.describe_security_groups(Filters=of_nodes)["SecurityGroups"]
    ssh = {"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22, "CidrIp": "192.0.2.0/24"}
    by_hand.authorize_security_group_ingress(GroupId=group["GroupId"], **ssh)
    (night,) = forge.nightly("drift")
    assert night.conclusion == "failure" and "security group" in night.summary and "ingress" in night.summary
    # the hosts' secret isn't there, so nobody could look at them: said, and not passed over
    assert "aws-secretsmanager:staging/munge-key" in night.summary and "hosts" not in night.summary


@pytest.mark.slow
def test_newer_versions_become_one_pull_request_that_names_what_they_close(site):
    site.push("main", "first")
    (result,) = site.forge.nightly("lock")
    assert result.conclusion == "success", result.log
    (pull,) = site.forge.pulls.values()
    assert pull.branch == "lock-staging" and pull.title.endswith("with security fixes") and not pull.comments
    assert "driver 580.95.05 -> 580.178.04" in pull.body and "NVIDIA bulletins 5747 (2026-01)" in pull.body
    changed = git(site.forge.origin, "diff", "--stat", "main", "lock-staging")
    assert "staging.lock.yaml" in changed and "1 file" in changed
    site.forge.nightly("lock")
    assert len(site.forge.pulls) == 1


@pytest.mark.slow
def test_a_driver_that_the_stack_file_pins_is_no_pull_request_and_is_told(site):
    site.push("main", "first", lambda c: c["software"].update(driver="580.95.05"))
    (result,) = site.forge.nightly("lock")
    assert result.conclusion == "success" and not site.forge.pulls, result.log
    assert "driver 580.95.05 lacks the fixes of NVIDIA bulletins 5747 (2026-01)" in result.summary


@pytest.fixture
def bare(tmp_path):
    """The forge with our workflow files alone, and their pull request's branch `other`; its runner has no site."""
    (tmp_path / "make").write_text("#!/bin/sh\n")
    (tmp_path / "make").chmod(0o755)
    machine = {"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)}
    made = Forge(tmp_path, "org/site", machine, lambda role, subject: {}, {"stack": "staging"})
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(made.origin), str(clone))
    shutil.copytree(ROOT / ".github", clone / ".github")
    git(clone, "add", "-A")
    git(clone, "-c", "user.name=anna", "-c", "user.email=anna@invalid", "commit", "--quiet", "-m", "first")
    git(clone, "push", "--quiet", "origin", "HEAD:main", "HEAD:other")
    yield made
    made.close()


def test_nothing_runs_before_ci_is_switched_on_and_nothing_of_a_fork(bare):
    ours = {"preview": "skipped", "test": "success"}  # the tests need no rights
    _, results = bare.pull_request("other", "Another")
    assert {each.job.workflow: each.conclusion for each in results} == ours
    assert [each.conclusion for name in ("drift", "lock") for each in bare.nightly(name)] == ["skipped", "skipped"]
    bare.vars["IRONBURST_CI"] = "on"
    _, results = bare.pull_request("other", "From a fork", fork=True)
    assert {each.job.workflow: each.conclusion for each in results} == ours
    (preview,) = [each for each in bare.pull_request("other", "Ours")[1] if each.job.workflow == "preview"]
    assert preview.conclusion == "failure", "it was started, where there is nothing to preview"


BOUNDARY, HOUR_S = "arn:aws:iam::123456789012:policy/security/gpu", 3600
ANYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}


@pytest.mark.slow
def test_a_companys_account_with_sessions_that_are_nearly_over(site, cloud):  # noqa: F811
    """Its organization refuses roles without the boundary and launches without a cost centre, CI has the printed rights
    alone, and by the time that a job calls AWS all but five minutes of its session are over.
    """
    iam = client(cloud.url, "iam")
    iam.create_policy(PolicyName="gpu", Path="/security/", PolicyDocument=json.dumps(ANYTHING))
    cloud.organization += [no_role_without(BOUNDARY), no_launch_without("CostCenter")]

    def declared(cluster):
        cluster["cloud"] |= {
            "iam": {"permissions_boundary": BOUNDARY, "path": "/ironburst/"},
            "tags": {"CostCenter": "4711"},
        }

    site.push("main", "first", declared)
    first_up(site)
    iam.delete_role_policy(RoleName="up", PolicyName="all")
    config = load.from_value(site.declared["config"]["ironburst:cluster"])
    for name, policy in up_policies.policies_of(config, config.cloud, sizes.where(config.cloud)).items():
        made = iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(policy))["Policy"]["Arn"]
        iam.attach_role_policy(RoleName="up", PolicyArn=made)
    left_s, signed = 300, []

    def sign_in(role, subject, seconds):
        got = site.sign_in(role, subject, seconds)
        signed.append(seconds)
        cloud.pass_by(seconds - left_s)
        return got

    site.forge.sign_in, site.forge.approve = sign_in, lambda environment: True
    # a tag goes onto all that there is: many calls of AWS
    site.push("more", "an owner", lambda c: c["cloud"]["tags"].update(owner="platform"))
    pull, results = site.forge.pull_request("more", "An owner")
    ended(results, preview="success")
    ended(site.forge.merge(pull), up="success")
    assert len(client(cloud.url).describe_vpcs(Filters=[{"Name": "tag:owner", "Values": ["platform"]}])["Vpcs"]) == 1
    assert document.read(site.document).serial == 1 and set(signed) == {HOUR_S, 3 * HOUR_S}
    made = [role for role in iam.list_roles()["Roles"] if role["RoleName"].startswith("staging-")]
    assert made and {role["Path"] for role in made} == {"/ironburst/"}
    left_s = -1
    site.push("third", "another owner", lambda c: c["cloud"]["tags"].update(owner="research"))
    pull, _ = site.forge.pull_request("third", "Another owner")
    assert "pulumi preview: exit code 1" in ended(site.forge.merge(pull), up="failure")
    assert "expired" in (site.of("up-up") / "plan.md").read_text()
    assert document.read(site.document).serial == 1
