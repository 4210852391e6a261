"""What GPU-hours have cost, at home and rented: Slurm's accounting and the ledger, by account, user, job, pool or day;
and the ledger's estimates compared with the provider's bill. Pure.

Money is whole micro-dollars (a bill's: 1e-10 USD, as AWS writes it), so that parts add up to the very total. It is
rounded once: what a lease or a job has cost up to a moment is, and a part is the difference of two such moments.
"""
