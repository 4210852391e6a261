"""Slurm: the scheduler, its answers of five releases, accounting, and what the doctor asks it."""
