"""The outside world, behind the Protocols of ironburst.ports and ironburst.convergence.ports.

- aws, azure, google, kubernetes, slurm, redfish (BMCs): packages, one for each system; no_cloud: a site without a cloud
- several_clouds: those of a site as one; answers: what an API says, read; at_once: several calls at one time
- both, bridged: sites with two schedulers; prometheus: what was measured; log_centre, host_journal: what hosts said
- ansible: playbooks; leftovers: what a cancelled one leaves; remote: ssh; pulumi: its CLI
- site_doctor: what the doctor asks hosts and BMCs
- repositories: package lists of apt and dnf; firmware_image: firmware images and their checksums
"""
