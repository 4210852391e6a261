"""AWS: network, fixed nodes, burst pools, rights, budget and alarms."""
