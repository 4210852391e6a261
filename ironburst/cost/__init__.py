"""What GPU-hours have cost, at home and rented, and the ledger's estimates compared with the provider's bill. Pure.

Money is whole micro-dollars (a bill's: 1e-10 USD, as AWS writes it), so that parts add up to the total exactly. It is
rounded once: what a lease or a job has cost up to a moment is, and a part is the difference of two such moments.

- accounted: Slurm's accounting; leases: the ledger's; report: by account, user, job, pool, cloud or day
- bought: waits saved
- bill: its lines (line), by bill_row; bill_provider, aws, azure, google: what they are for; causes: of differences
- reconcile, instance_bill: compared with the estimates
- gathered: all of it as JSON values; shown: for people, as CSV, and as a page
"""
