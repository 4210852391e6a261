"""What a document or a stack file names, connected.

- clouds: the table, a row for each cloud; provider: what a row has; aws, azure, google, none: the rows
- schedulers: the queue; owned_nodes: BMCs; site_doctor: what the doctor asks; convergence: Ansible and ssh
"""
