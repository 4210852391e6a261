"""The outside world, behind the Protocols of ironburst.ports and ironburst.convergence.ports.

- slurm (its JSON: slurm_json); aws (its errors: aws_errors; baking: aws_images); pulumi; redfish: BMCs
- ansible: playbooks (what a cancelled one leaves: leftovers); remote: ssh alone
"""
