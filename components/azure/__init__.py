"""Azure: network, fixed nodes, burst pools, rights, the reaper of leases, budget alarm."""
