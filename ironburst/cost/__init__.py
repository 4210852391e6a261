"""What GPU-hours have cost, at home and rented: Slurm's accounting and the ledger, by account, user, job, pool or day;
and the ledger's estimates held against the provider's bill.

Money is whole micro-dollars (a bill's: 1e-10 USD, as AWS writes it), so that parts add up to the very total. It is
rounded once: what a lease or a job has cost up to a moment is, and a part is the difference of two such moments.

- accounted, leases and report: what was used and paid, row by row; bought: how much sooner jobs began
- bill, instance_bill and reconcile: the bill, difference by difference
- gathered: all of it as JSON values; shown: for people, as CSV, and as a page
"""
