"""The lab's cluster with a cloud of Google's beside AWS, as a stack file declares it."""

from ironburst.config.load import read_value
from tests import google_stack

MUNGE_KEY = "google-secretmanager:lab-project/munge-key"


def value():
    """The whole declaration; both clouds know the munge key."""
    said = read_value(google_stack.STACK)
    other = google_stack.cloud()
    other["groups"][0]["name"] = "g-fixed"
    other["network"]["cidr"] = "10.91.0.0/16"
    for pool in other["pools"]:
        pool["name"] = f"g-{pool['name']}"
    other["secrets"] = {said["scheduler"]["munge_key"]: MUNGE_KEY}
    return said | {"other_clouds": [other]}
