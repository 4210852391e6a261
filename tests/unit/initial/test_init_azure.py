"""`ironburst init` in Azure: the region says which cloud."""

import pytest

from ironburst import cli
from ironburst.config import load
from tests import azure_stack

OWNED = ["--nodes", "1", "--platform", "dgx-h100", "--addresses", "10.4.0.11", "--head", "10.4.0.10"]
ASKED = ["init", "--yes", "--name", "hall1", *OWNED, "--region", "eastus", "--budget", "9000"]
KEY = azure_stack.cloud()["ssh_public_key"]
OURS = ["--subscription", azure_stack.SUBSCRIPTION, "--key-vault", azure_stack.VAULT, "--ssh-public-key", KEY]


@pytest.mark.parametrize(
    ("more", "kind", "zones"),
    [
        ([], "Standard_ND96isr_H100_v5", ["eastus-1"]),  # the cheapest with home's GPUs
        (["--rent", "Standard_NC64as_T4_v3=4", "--zones", "eastus-1,eastus-2"], "Standard_NC64as_T4_v3", None),
    ],
)
def test_a_region_of_azure_makes_a_valid_file(tmp_path, capsys, more, kind, zones):
    output = tmp_path / "Pulumi.hall1.yaml"
    assert cli.main([*ASKED, *OURS, *more, "--output", str(output)]) == 0, capsys.readouterr().err
    config = load.load(output)
    (pool,) = config.cloud.pools
    assert (config.cloud.provider, config.cloud.subscription, pool.types) == ("azure", azure_stack.SUBSCRIPTION, [kind])
    assert pool.zones == (zones or ["eastus-1", "eastus-2"]) and config.ssh.cloud_user == "ironburst"
    assert config.slurm.munge_key == "azure-keyvault:lab-vault/ironburst-hall1-munge-key"
    assert f"azure-native:subscriptionId: {azure_stack.SUBSCRIPTION}" in output.read_text()


def test_a_public_key_may_be_a_file(tmp_path, capsys):
    key, output = tmp_path / "key.pub", tmp_path / "Pulumi.hall1.yaml"
    key.write_text(f"{KEY}\n")
    assert cli.main([*ASKED, *OURS[:-1], str(key), "--output", str(output)]) == 0, capsys.readouterr().err
    assert load.load(output).cloud.ssh_public_key == KEY


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "--subscription"),
        (["--subscription", "gpu", *OURS[2:]], "is no id of a subscription"),
        ([*OURS[:2], "--key-vault", "lab-vault", *OURS[4:]], "is no id of a vault"),
        ([*OURS[:4], "--ssh-public-key", "/nothing/there.pub"], "can't be read"),
        ([*OURS[:4], "--ssh-public-key", "ssh-dss AAAA"], "is no public key"),
        ([*OURS, "--rent", "p5.48xlarge=2"], "Unknown instance type 'p5.48xlarge'"),
        ([*OURS, "--zones", "eastus2-1"], "is not a zone of eastus"),
    ],
)
def test_answers_that_do_not_fit_are_one_sentence(tmp_path, capsys, more, said):
    assert cli.main([*ASKED, *more, "--output", str(tmp_path / "Pulumi.x.yaml")]) == 2
    assert said in capsys.readouterr().err


def test_a_subscription_belongs_to_no_region_of_another_cloud(tmp_path, capsys):
    asked = [each if each != "eastus" else "us-east-1" for each in ASKED]
    assert cli.main([*asked, *OURS, "--output", str(tmp_path / "Pulumi.x.yaml")]) == 2
    assert "--subscription belongs to another kind of site" in capsys.readouterr().err
