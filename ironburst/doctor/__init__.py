"""The checks of `ironburst doctor`: does a declared cluster find what it needs? Pure: answers in, findings out.

- checks: a result, and the shape of a check; declared: what is declared; rented: nodes of any cloud; aws, azure,
  google: of an account, a subscription or a project
- hosts, host_probe: hosts; bmcs: BMCs; slurm, topology: the head; second_head: what two share; backups: theirs;
  published: the document in use
"""
