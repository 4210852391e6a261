"""The gang of examples/kubernetes, as a person applies it, at a real API server with its Job controller and scheduler:
it is taken as it is written, and read as one job that may be rented for.
"""

import pytest
import yaml

from ironburst.adapters.kubernetes import Access, Client, Kubernetes
from ironburst.burst import eligibility
from ironburst.wiring import schedulers
from lab.system import CHECKOUT, wait_for
from tests import planes
from tests.fakes.both import both_document
from tests.fakes.snapshots import POLICY

pytestmark = [pytest.mark.slow, planes.BUILT]
LIMIT_S = 60
KINDS = {"Service": "/api/v1/namespaces/default/services", "Job": "/apis/batch/v1/namespaces/default/jobs"}
STORAGE = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
VOLUME = {  # shared storage as every node mounts it, and the claim that has it
    "persistentvolumes": STORAGE | {"capacity": {"storage": "1Gi"}, "nfs": {"server": "192.0.2.1", "path": "/runs"}},
    "namespaces/default/persistentvolumeclaims": STORAGE
    | {"resources": {"requests": {"storage": "1Gi"}}, "volumeName": "runs"},
}


@pytest.fixture(scope="module")
def plane():
    with planes.running("examples") as plane:
        yield plane


def test_an_indexed_job_is_one_gang_that_may_be_rented_for(plane):
    api = plane.api()
    for path, spec in VOLUME.items():
        api.call("POST", f"/api/v1/{path}", {"metadata": {"name": "runs"}, "spec": spec})
    for part in yaml.safe_load_all((CHECKOUT / "examples/kubernetes/ddp-job.yaml").read_text()):
        api.call("POST", f"{KINDS[part['kind']]}?fieldValidation=Strict", part)
    site = schedulers.site_of(both_document(boot_s=600))
    cluster = Kubernetes(Client(Access(plane.layout().kubeconfig("admin"))), site, deliver=str)

    def rentable():
        """None until there is one job whose volume is bound."""
        jobs = cluster.observe().jobs
        return next(iter(jobs), None) if not any(eligibility.not_rentable(job, POLICY) for job in jobs) else None

    job = wait_for(rentable, LIMIT_S, "the gang in the queue, one that may be rented for", 0.2)
    cluster.close()
    assert (job.name, job.nodes, job.each.gpus, job.time_limit_s) == ("default/ddp", 2, 8, 7200.0)
