"""What `ironburst init` writes for each cloud, with its hall link uncommented as it says: declared, without a change
afterwards, and taken away again, through the pulumi CLI and the stand-ins of the clouds' plugins.
"""

import re

import pytest
import yaml

from ironburst import cli
from ironburst.config.load import read_value
from lab.aws import leftovers
from tests.azure_stack import SUBSCRIPTION, VAULT
from tests.components import test_declare_azure as azures
from tests.components import test_declare_google as googles
from tests.components import test_declare_several as several
from tests.components.projects import ROOT, cloud_project, done

SITE = ["--nodes", "2", "--platform", "dgx-h100", "--addresses", "10.10.0.[11-12]", "--head", "10.10.0.5"]
FLAGS = {
    "aws": ["--region", "us-east-1"],
    "google": ["--region", googles.REGION, "--project", googles.PROJECT],
    "azure": ["--region", "eastus", "--subscription", SUBSCRIPTION, "--key-vault", VAULT],
}
aws, google, azure = several.aws, googles.world, azures.world


def there(name, world):
    """What is declared in a cloud."""
    return leftovers.leftovers(world.url) if name == "aws" else world.declared.ids()


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("aws", "google")]


@pytest.mark.parametrize("name", ["azure", *SLOW])
def test_what_init_writes_is_declared_and_taken_away(name, request, tmp_path):
    world, out, key = request.getfixturevalue(name), tmp_path / "Pulumi.site.yaml", tmp_path / "key.pub"
    key.write_text("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHVsZm9y ops@example.org\n")
    more = ["--ssh-public-key", str(key)] if name == "azure" else []
    assert (
        cli.main(
            ["init", "--yes", "--name", "site", "--budget", "20000", "--output", str(out), *SITE, *FLAGS[name], *more]
        )
        == 0
    )
    text = re.sub(r"# (hall_link: )", r"\1", out.read_text()).replace("YOUR.PUBLIC.ADDRESS", "203.0.113.20")
    out.write_text(re.sub(r'shared_secret: "[^"]*"', 'shared_secret: "env:HALL_KEY"', text))
    settings = {
        key: its for key, its in yaml.safe_load(out.read_text())["config"].items() if not key.startswith("ironburst")
    }
    if name == "aws":
        lab = yaml.safe_load((ROOT / "stacks/Pulumi.lab.yaml").read_text())["config"]
        settings |= {key: its for key, its in lab.items() if key.startswith("aws:")}
        settings["aws:endpoints"] = [dict.fromkeys(settings["aws:endpoints"][0], world.url)]
    elif name == "google":
        settings["gcp:computeCustomEndpoint"] = world.url_of_api
    else:
        settings["azure-native:metadataHost"] = world.url.removeprefix("http://")
    engine = cloud_project(tmp_path, settings, read_value(out), HALL_KEY="k3y-of-the-hall")
    done(engine("stack", "init"))
    before = there(name, world)
    assert "at worst" in done(engine("preview"))
    done(engine("up", "--yes", "--skip-preview"))
    assert there(name, world) != before
    done(engine("preview", "--expect-no-changes"))
    done(engine("destroy", "--yes", "--skip-preview"))
    assert there(name, world) == before
