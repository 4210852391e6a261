"""`ironburst init` in Google Cloud: the region says which cloud."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from ironburst import cli
from ironburst.config import load
from ironburst.config.checks import check
from ironburst.config.load import from_value, read_value

OWNED = ["--nodes", "1", "--platform", "dgx-h100", "--addresses", "10.4.0.11", "--head", "10.4.0.10"]
ASKED = ["init", "--yes", "--name", "hall1", *OWNED, "--region", "us-central1", "--budget", "9000"]


@pytest.mark.parametrize(
    ("more", "kind", "fabric"),
    [
        ([], "a3-highgpu-8g", True),  # the cheapest with home's GPUs
        (["--rent", "g2-standard-48=4", "--zones", "us-central1-a,us-central1-c"], "g2-standard-48", False),
    ],
)
def test_a_region_of_google_makes_a_valid_file(tmp_path, capsys, more, kind, fabric):
    output = tmp_path / "Pulumi.hall1.yaml"
    assert cli.main([*ASKED, "--project", "gpu-prod-4711", *more, "--output", str(output)]) == 0, (
        capsys.readouterr().err
    )
    config = load.load(output)
    (pool,) = config.cloud.pools
    assert (config.cloud.provider, config.cloud.project, pool.types) == ("google", "gpu-prod-4711", [kind])
    assert bool(config.cloud.network.fabric_cidr) == fabric
    assert config.slurm.munge_key == "google-secretmanager:gpu-prod-4711/ironburst-hall1-munge-key"
    assert "gcp:project: gpu-prod-4711" in output.read_text()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "--project"),
        (["--project", "4711"], "is no id of a project"),
        (["--project", "gpu-prod-4711", "--rent", "p5.48xlarge=2"], "Unknown instance type 'p5.48xlarge'"),
        (["--project", "gpu-prod-4711", "--zones", "us-east1-b"], "is not a zone of us-central1"),
    ],
)
def test_answers_that_do_not_fit_are_one_sentence(tmp_path, capsys, more, said):
    assert cli.main([*ASKED, *more, "--output", str(tmp_path / "Pulumi.x.yaml")]) == 2
    assert said in capsys.readouterr().err


def test_a_project_belongs_to_no_region_of_aws(tmp_path, capsys):
    asked = [each if each != "us-central1" else "us-east-1" for each in ASKED]
    assert cli.main([*asked, "--project", "gpu-prod-4711", "--output", str(tmp_path / "Pulumi.x.yaml")]) == 2
    assert "--project belongs to another kind of site" in capsys.readouterr().err


def test_a_kubernetes_of_the_clouds_own_is_made_in_the_first_cloud_only(tmp_path, capsys):
    hosted = ["--nodes", "0", "--scheduler", "kubernetes", "--region", "us-central1", "--budget", "900"]
    asked = ["init", "--yes", "--name", "x", *hosted, "--output", str(tmp_path / "Pulumi.x.yaml")]
    assert cli.main(asked) == 2
    assert "where no Kubernetes of the cloud's own is made: name one of aws" in capsys.readouterr().err


def test_what_it_writes_is_a_second_cloud_of_another_stack(tmp_path):
    """As docs/how-to/several-clouds.md says."""
    asked = [*ASKED, "--project", "gpu-prod-4711", "--output", str(tmp_path / "Pulumi.hall1.yaml")]
    assert cli.main(asked) == 0
    draft, stack = read_value(tmp_path / "Pulumi.hall1.yaml"), read_value(Path("stacks/Pulumi.staging.yaml"))
    copies = {stack["scheduler"]["munge_key"]: draft["scheduler"]["munge_key"]}
    config = from_value(stack | {"other_clouds": [draft["cloud"] | {"secrets": copies}]})
    assert [each.path for each in check(config, datetime.now(UTC)) if each.severity == "error"] == []
    assert {config.cloud_of(pool).provider for pool in config.pools} == {"aws", "google"}
