"""The unmodified program with a cluster of EKS, through the pulumi CLI: it comes in the lab's AWS, and behind it
stands a real API server, where the same `up` declares what belongs into the cluster.
"""

import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from ironburst import document
from lab.aws import leftovers
from lab.aws.testing import client
from tests import planes
from tests.components.projects import ROOT, done, project
from tests.components.test_declare import IMAGE, cloud
from tests.components.test_declare_organization import declared, deploys, organize
from tests.unit.kubernetes_stack import on_eks

__all__ = ["cloud"]
pytestmark = [pytest.mark.slow, planes.BUILT]
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/ironburst-lab-nodes"


@pytest.fixture
def plane(cloud):
    with planes.running("eks-up") as plane:
        cloud.eks.behind = plane.layout().server, plane.layout().authority.read_text()
        yield plane


@pytest.fixture
def engine(tmp_path, cloud, plane, monkeypatch):
    """The lab's stack on EKS; `aws eks get-token` gives the administrator's token of the API server."""
    token = plane.layout().kubeconfig("admin").read_text().split("token: ")[1].split()[0]
    (tmp_path / "bin").mkdir()
    credential = json.dumps({"status": {"token": token}})
    (tmp_path / "bin/aws").write_text(f"#!/bin/sh\necho \"$@\" >> {tmp_path}/asked\necho '{credential}'\n")
    (tmp_path / "bin/aws").chmod(0o755)
    # its own Python first: a shim of pyenv would put other folders, and another aws, before ours
    first = (str(tmp_path / "bin"), str(Path(sys.executable).parent))
    monkeypatch.setenv("PATH", os.pathsep.join([*first, os.environ["PATH"]]))
    run = project(tmp_path, "lab")
    stack = yaml.safe_load((ROOT / "stacks" / "Pulumi.lab.yaml").read_text())
    settings = stack["config"]
    settings["aws:endpoints"] = [dict.fromkeys([*settings["aws:endpoints"][0], "eks"], cloud.url)]
    on_eks(settings["ironburst:cluster"])
    pool = {"name": "p5", "instance_type": "p5.48xlarge", "max_nodes": 2, "zones": ["us-east-1b"], "boot": "45s"}
    settings["ironburst:cluster"]["cloud"]["pools"] = [pool]
    (tmp_path / "project/stacks/Pulumi.lab.yaml").write_text(yaml.safe_dump(stack))
    return run


def test_a_cluster_of_eks_comes_with_what_belongs_into_it_and_goes(engine, cloud, plane, tmp_path):
    before = leftovers.leftovers(cloud.url)
    done(engine("stack", "init"))
    first = done(engine("preview"))
    assert "aws:eks:Cluster" in first.replace("/cluster:", ":")
    done(engine("up", "--yes", "--skip-preview"))
    outputs = json.loads(done(engine("stack", "output", "--json")))
    read = document.parse(outputs["cluster"])
    assert read.scheduler.api_server == plane.layout().server
    (host,) = read.hosts
    policy = plane.api().call("GET", POLICY)
    assert policy["spec"]["validations"][0]["expression"].startswith(
        f"object.metadata.name in ['{host.instance_id}'] || "
    )
    entries = client(cloud.url, "eks").list_access_entries(clusterName="ironburst-lab")["accessEntries"]
    assert all(any(role in arn for arn in entries) for role in ("lab-fixed-eks", "lab-controller", "lab-node"))
    (place,) = read.pool("p5").zones
    # what the controller launches has the tag by which EKS knows its nodes
    launched = client(cloud.url).run_instances(
        ImageId=IMAGE, LaunchTemplate={"LaunchTemplateId": place.place.launch_template_id}, MinCount=1, MaxCount=1
    )["Instances"][0]
    assert {"Key": "kubernetes.io/cluster/ironburst-lab", "Value": "owned"} in launched["Tags"]
    client(cloud.url).terminate_instances(InstanceIds=[launched["InstanceId"]])
    asked = (tmp_path / "asked").read_text().splitlines()
    assert set(asked) == {"--region us-east-1 eks get-token --cluster-name ironburst-lab --output json"}
    assert json.loads(outputs["kubeconfig"])["users"][0]["user"]["exec"]["command"] == "aws"
    done(engine("preview", "--expect-no-changes"))
    done(engine("refresh", "--preview-only", "--expect-no-changes"))
    done(engine("destroy", "--yes", "--skip-preview"))
    assert leftovers.leftovers(cloud.url) == before


def test_the_printed_rights_are_enough_for_a_cluster(engine, cloud, tmp_path):
    """In a company's account, for whoever does `up` with these rights alone."""
    organize(cloud)
    path = tmp_path / "project/stacks/Pulumi.lab.yaml"
    stack = yaml.safe_load(path.read_text())
    declared(stack["config"]["ironburst:cluster"])
    deploys(cloud, stack["config"])
    path.write_text(yaml.safe_dump(stack))
    before = leftovers.leftovers(cloud.url)
    done(engine("stack", "init"))
    done(engine("up", "--yes", "--skip-preview"))
    done(engine("preview", "--expect-no-changes"))
    done(engine("destroy", "--yes", "--skip-preview"))
    assert leftovers.leftovers(cloud.url) == before
