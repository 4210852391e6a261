"""Filter `ansible_facts | os_target`: the key under which the roles keep the package names of an operating system."""

from __future__ import annotations

from ansible.errors import AnsibleFilterError

SUPPORTED = ("debian12", "debian13", "ubuntu2204", "ubuntu2404", "rhel9", "rhel10")
RHEL_FAMILY = ("redhat", "rocky", "almalinux")


def os_target(facts: dict) -> str:
    """`debian13`, `ubuntu2404`, `rhel9`...; Rocky and Alma count as rhel. Raises AnsibleFilterError for anything
    else.
    """
    distribution = facts["distribution"].lower()
    if distribution in RHEL_FAMILY:
        target = f"rhel{facts['distribution_major_version']}"
    elif distribution == "ubuntu":
        target = "ubuntu" + facts["distribution_version"].replace(".", "")
    else:
        target = distribution + facts["distribution_major_version"]
    if target == "rhel8":
        raise AnsibleFilterError(
            f"{facts['distribution']} {facts['distribution_version']} is not supported: this Ansible can't manage its "
            "Python 3.6; install release 9 or 10"
        )
    if target not in SUPPORTED:
        raise AnsibleFilterError(
            f"{facts['distribution']} {facts['distribution_version']} is not supported: "
            f"use one of {', '.join(SUPPORTED)} (rhel: also Rocky, Alma)"
        )
    return target


class FilterModule:
    """Filters of ironburst's roles."""

    def filters(self):
        """Name -> function, as Ansible asks for them."""
        return {"os_target": os_target}
