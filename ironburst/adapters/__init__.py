"""The outside world, behind the Protocols of ironburst.ports and ironburst.convergence.ports.

- rooms: aws, kubernetes, slurm, redfish (BMCs); both, bridged: two schedulers at once; no_cloud; pulumi
- ansible: playbooks (what a cancelled one leaves: leftovers); remote: ssh alone
"""
