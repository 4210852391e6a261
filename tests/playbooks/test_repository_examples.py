"""The repositories that the how-to shows are ones that the role base takes, once a key's checksum is in them."""

import re

import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from programs import PLAYBOOKS

from ironburst.cli import mirror

PAGE = PLAYBOOKS.parent / "docs/how-to/sysadmin/package-repositories.md"


def test_the_examples_are_what_the_role_takes():
    spec = yaml.safe_load((PLAYBOOKS / "roles/base/meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    blocks = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)]
    shown = {key: value for block in blocks for key, value in block.items()}
    assert set(shown) == {"base_apt_repositories", "base_dnf_repositories", "base_proxy"}
    validator = ArgumentSpecValidator({key: spec["options"][key] for key in shown})
    assert validator.validate(shown).error_messages == []
    for key, needed, _ in mirror.KEYS.values():
        mirror._check(str(PAGE), key, shown[key], needed)
    assert all(entry["key_sha256"] == "..." for key in shown if key != "base_proxy" for entry in shown[key])
