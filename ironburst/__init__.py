"""ironburst: one declaration for the GPU nodes you own and the GPU nodes you rent.

- config, catalog: what a person writes, and what the market offers; document: what the declaration became
- burst: the policy; replay: histories played through it
- software, hall, health, shares: versions that fit, power and cabling, the health gate, teams' shares
- plan, cost, doctor: what a change would do, what it has cost, what is missing
- controller: rents and gives back; convergence: drains, converges and resumes hosts
- baremetal, baking, nodes: owned machines, images of rented nodes, names and states of all nodes
- fabric: a stress test of InfiniBand; monitoring: alert rules, targets and receivers for Prometheus and Alertmanager
- ports: what is needed of the outside world; adapters: each system that gives it; wiring: which cloud gives what
- initial: new stack files; page, cli: the page of `ironburst serve`, the command line
- slurm_programs, kubernetes_rights, roles: what slurmctld calls, rights in a cluster, the Ansible roles
- system: files, signals and secrets of this machine
"""

__version__ = "0.2.0"
