"""Bare-metal nodes: what a BMC reports, compared with what is declared.

- node: the Pulumi resource; declared: what it is given; discovered: proposals from BMCs found in a network
- documents: Redfish documents, link by link; said: their properties; makers: where each maker keeps what
- inventory, hardware: what a node has; power, sensors, health: how it is; gpu_names: as the catalogue names GPUs
- verify, minimums, mismatch: against the declaration; drift: against what was accepted
- lifecycle, cycle: states of a node, and one step at a time; rule_table: such a table, run
- install_inputs, install_scripts, unattended, netboot: an installation; panel: what a BMC shows of one
- bios, bios_cycle: settings; firmware, updates, updating: versions
- shown: what a node has, for people; telemetry: temperatures and power for Prometheus
"""
