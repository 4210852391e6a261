"""How EC2's notice of a spot node is shared out: a turn of the controller until it is read, Slurm's way to the node,
and the rest for the job (KillWait).
"""

NOTICE_S = 120
"""EC2 User Guide, "Spot Instance interruption notices"; the controller waits for jobs of a node it gives up as long"""
WAY_S = 10
"""scontrol, slurmctld and slurmd until the job has its SIGTERM: below 2 s in the lab"""
USUAL_S, SLURMS_S = 90, 30
"""what is given where it fits; Slurm's own default, which is the least"""


def kill_wait_s(tick_s: int) -> int:
    """KillWait where none is declared."""
    return max(SLURMS_S, min(USUAL_S, NOTICE_S - tick_s - WAY_S))


def most_s(tick_s: int) -> int:
    """The longest KillWait that ends before the node does; may be below 0."""
    return NOTICE_S - tick_s - WAY_S
