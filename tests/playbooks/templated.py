"""What Ansible makes of a role's variables, without a host."""

from collections.abc import Mapping
from functools import cache

from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import filter_loader
from ansible.template import Templar, trust_as_template
from programs import PLAYBOOKS

filter_loader.add_directory(str(PLAYBOOKS / "plugins" / "filter"))


def value(role: str, name: str, known: Mapping[str, object], changes: Mapping[str, object] | None = None):
    """Variable or expression `name`. `known` is what the role finds, `changes` count more than its own variables."""
    return expression("{{ " + name + " }}", {**known, **variables_of(role), **(changes or {})})


def expression(text: str, variables: Mapping[str, object]):
    """What a template is with these variables."""
    return Templar(loader=DataLoader(), variables=dict(variables)).template(trust_as_template(text))


def trusted(variables: Mapping[str, object]) -> dict[str, object]:
    """Variables of a play as Ansible reads them: their texts are templates."""
    return {name: trust_as_template(each) if isinstance(each, str) else each for name, each in variables.items()}


@cache
def variables_of(role: str) -> dict[str, object]:
    """A role's defaults and variables."""
    files = [PLAYBOOKS / "roles" / role / part / "main.yml" for part in ("defaults", "vars")]
    loader, found = DataLoader(), {}
    for file in files:
        if file.exists():
            found |= loader.load_from_file(str(file), trusted_as_template=True) or {}
    return found
