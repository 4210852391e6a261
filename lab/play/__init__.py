"""Playing on a lab that a demo kept: a shell on any node, jobs, faults, prices. `ironburst lab` calls it."""
