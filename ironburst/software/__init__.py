"""Which versions of driver, kernel module and CUDA fit which GPU. Pure: the facts are arguments.

- model: groups of nodes, wishes, the exact set, broken rules; state: what a rule looks at; versions: as numbers
- solve: the newest set of each group that breaks no rule;
  packages: its names per operating system; remedies: what would resolve a conflict
- rules: which rules apply; node_rule, driver_rules, node_rules and site_rules: their conditions
- lock: the sets as plain data, and what changed in them; mirror: the files that a site without internet copies
- security: fixes of NVIDIA's bulletins; slurm_upgrade: which release follows which
"""
