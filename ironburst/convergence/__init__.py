"""Turn declared hosts into nodes: validate, leave busy nodes as they are, run the roles, keep a receipt.

- converge: the steps; model: what they work with and report; outcomes: what became of each host; receipts: what is kept
- drift: which hosts are as their receipts say, by inputs (digests) and host_facts (the probe); watch: what it looks at
- drains and rolling: nodes out of service, batch by batch; services: by each node's scheduler; guard: a node that
  is disturbed has no job and gets none
- events: what Ansible reported of each host; ports: what is needed of Ansible and ssh
- power_cap_host: the program that `hall cap` sends to a GPU node
"""
