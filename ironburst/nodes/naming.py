"""Names that are made from declared ones: partitions, nodes, tags, parameters, Pulumi's resources. Each is made here
and nowhere else: who writes a name and who looks for it must agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

CLUSTER_TAG = "ironburst:cluster"
POOL_TAG = "ironburst:pool"
GROUP_TAG = "ironburst:group"
LEASE_TAG = "ironburst:lease"
"""on rented instances only: by it the controller and its reaper know their own"""
OWNER_TAG = "ironburst:owner"
"""on rented instances: the id of the controller that launched them, of its ledger"""
MARKET_TAG, PRICE_TAG, ACCOUNT_TAG = "ironburst:market", "ironburst:usd-per-hour", "ironburst:account"
"""on rented instances: what a ledger is rebuilt from"""
ROLE_TAG = "ironburst:role"
"""on instances that images are built on, and on the images"""

RENTED_TAINT = "ironburst.io/rented"
"""of Kubernetes nodes that are rented and in service"""
NOT_READY_TAINT = "ironburst.io/not-ready"
"""of Kubernetes nodes that are rented and not in service yet"""
GATE_CONDITION = "ironburst.io/GatePassed"
"""of Kubernetes nodes, written by their gate"""
GATE_TAINT = "readiness.k8s.io/ironburst-gate"
"""of Kubernetes nodes whose gate doesn't pass, where there is a NodeReadinessRule, which takes this prefix alone"""
BAD_GPU_TAINT = "ironburst.io/bad-gpu"
"""of devices: a GPU that alone fails the gate"""
SITE_LABEL = "ironburst.io/site"
TEAM_LABEL = "ironburst.io/team"  # of a team's namespace and own nodes
"""of Kubernetes nodes: home's value, and one for each pool"""
TIME_LIMIT = "ironburst.io/time-limit"
"""annotation of a pod, or of a namespace or LocalQueue for its pods without a limit: for how long money is set aside"""
CLUSTER_LABEL = "ironburst.io/cluster"
"""of what Karpenter launches in a budget of ours: the stack's name"""
NODE_LABEL = "ironburst.io/node"
"""of Kubernetes nodes that are called as their instances are: what we call them"""
SCHEDULERS = {"slurm": "Slurm", "kubernetes": "Kubernetes"}
"""kinds of schedulers, and what people call them"""
FIRST_POD_JOB = 2**32
"""ids of jobs from here on are of pods; Slurm's have 32 bits"""


_TASK_BITS = 22  # Slurm's task ids have no more (MaxArraySize), and its job ids 26
_LAST_TASK = (1 << _TASK_BITS) - 1


def task_of_array(array: int, task: int) -> int:
    """Our id of a task of Slurm's: the same before and after Slurm splits it off its array and gives it an id of its
    own. Below zero, where no job's is; in the order of the tasks.
    """
    return -((array << _TASK_BITS) | (_LAST_TASK - task))


def called(job: int) -> str:
    """A job of Slurm's as its users and commands call it: 8_1 is a task of an array."""
    return f"{-job >> _TASK_BITS}_{_LAST_TASK - (-job & _LAST_TASK)}" if job < 0 else str(job)


def id_of(called: str) -> int:
    """The other way round; of a part of a heterogeneous job (8+1) its leader's. Raises ValueError."""
    array, _, task = called.partition("+")[0].partition("_")
    return task_of_array(int(array), int(task)) if task else int(array)


def node_role(scheduler: str, pool: str) -> str:
    """Logical name of a role of rented nodes: `pool` has one of its own; `scheduler`: kind of one beside the stack's
    first. Both empty: all others.
    """
    if pool:
        return logical("node", pool)
    return logical(scheduler, "node") if scheduler else "node"


def scheduler_of(job: int) -> str:
    """Of which kind of scheduler a job is, by its id."""
    return "kubernetes" if job >= FIRST_POD_JOB else "slurm"


def node_labels(
    partition: str,
    region: str | None,
    zones: Sequence[str],
    types: Sequence[str],
    declared: Mapping[str, str],
) -> dict[str, str]:
    """The labels of rented Kubernetes nodes which lie in one of these zones and are of one of these types: those that
    are sure. A kubelet may give itself each of them (NodeRestriction).
    """
    sure = {
        "topology.kubernetes.io/region": region or "",
        "topology.kubernetes.io/zone": zones[0] if len(zones) == 1 else "",
        "node.kubernetes.io/instance-type": types[0] if len(types) == 1 else "",
        SITE_LABEL: partition,
    }
    return {**declared, **{key: value for key, value in sure.items() if value}}


def burst_partition(pool: str) -> str:
    """The Slurm partition of a pool's nodes: `burst-p5`."""
    return f"burst-{pool}"


# The Slurm partition, without nodes and DOWN, of waiting jobs that home can never run: Slurm admits a job that one of
# its partitions takes, and one that is DOWN takes all and starts none (docs/adr/0080). So no pool is called so.
WAITING_PARTITION = burst_partition("any")


def gpu_type(model: str) -> str:
    """Slurm's gres type of a GPU model ("H100 SXM5 80GB" -> h100), as the role slurm_head writes it."""
    return model.split()[0].lower()


def own_partition(account: str) -> str:
    """The Slurm partition of the nodes of only one team: `own-vision`."""
    return f"own-{account}"


def numbered(name: str, count: int) -> list[str]:
    """Slurm's names of the nodes of a pool or a fixed group: `p5-1` to `p5-<count>`."""
    return [f"{name}-{number}" for number in range(1, count + 1)]


def image_parameter(cluster: str, pool: str) -> str:
    """The SSM parameter that holds the pool's image id: baking an image writes it, the controller reads it."""
    return f"/ironburst/{cluster}/{pool}/image"


SEPARATOR = "--"
"""behind a cluster's name in names that a project's clusters share: a name itself has none there, so that no cluster's
begin as another's do
"""


def rented_prefix(cluster: str) -> str:
    """How the names of a cluster's rented instances begin, where they have names."""
    return f"ib-{cluster}{SEPARATOR}"


def image_family(cluster: str, pool: str) -> str:
    """The same where images have families, whose newest one counts: its name, 63 characters at most."""
    return f"ironburst-{cluster}{SEPARATOR}{pool}"


def cluster_object(cluster: str) -> str:
    """What a stack's objects in a Kubernetes cluster are called, where there is one of a kind."""
    return f"ironburst-{cluster}"


def node_pool(cluster: str, pool: str) -> str:
    """What Karpenter's NodePool of a declared pool is called."""
    return f"{cluster_object(cluster)}-{pool}"


def check_controller(cluster: str) -> str:
    """Who answers the AdmissionCheck of that name, in Kueue's words."""
    return f"ironburst.io/{cluster}"


def logical(*parts: str) -> str:
    """The logical name that Pulumi knows a resource by: its parts joined, `p5-us-east-1a-template`. Stable as long as
    the declaration's names are.
    """
    return "-".join(parts)


def tags(cluster: str, name: str, *, pool: str | None = None, group: str | None = None) -> dict[str, str]:
    """Tags of a resource. `name` is what people see in the console;
    a pool's or a group's resources carry its name too.
    """
    wanted = {"Name": logical(cluster, name), CLUSTER_TAG: cluster, POOL_TAG: pool, GROUP_TAG: group}
    return {key: value for key, value in wanted.items() if value is not None}


def tag_value(text: str) -> str:
    """Any text as a tag's value: 256 characters at most, of those that every AWS service takes; others are spelled as
    =XX. Empty for a text that doesn't fit.
    """
    value = quote(text, safe="", errors="replace").replace("~", "%7E").replace("%", "=")
    return value if len(value) <= 256 else ""


def untagged(value: str) -> str:
    """The text of a tag's value."""
    return unquote(value.replace("=", "%"))


def price(value: str) -> float | None:
    """USD per hour that such a value has; None: none, or none that can be."""
    try:
        usd = float(value)
    except ValueError:
        return None
    return usd if 0 <= usd < math.inf else None


def locked_nodes(hall: str, names: str) -> str:
    """What the version lock calls a group of owned nodes (`names`: one range expression): `hall-a/dgx[01-04]`."""
    return f"{hall}/{names}"


def locked_group(group: str) -> str:
    """What the version lock calls a fixed group: `group/fixed`."""
    return f"group/{group}"


def locked_pool(pool: str) -> str:
    """What the version lock calls a pool: `pool/p5`."""
    return f"pool/{pool}"
