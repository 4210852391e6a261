"""Slurm: the scheduler, its answers of five releases, accounting, and what the doctor asks it.

- scheduler: the port; answers, asked, arrays, defaults, values: squeue's and scontrol's JSON; occupancy: jobs on nodes
- accounting: sacct for the cost report; own: what a user may see; comments: AdminComment
- site: a Slurm that already runs; bridge: slurm-bridge's jobs; doctor: its checks on the head
- rows, stream: what is printed again is not read again, nor is all in memory at once; fields: what is read of a row
- narrow, job_text: a large queue by `scontrol show job`; build: SchedMD's packages
"""
