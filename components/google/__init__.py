"""Google Cloud: networks, fixed nodes, burst pools, rights, budget alarm."""
