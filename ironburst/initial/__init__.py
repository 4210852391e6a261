"""A stack file from nothing (`questions`, and `written` from their answers), beside a Slurm that runs already
(`from_slurm`), or from another environment's (`from_stack`). What is AWS's of it: `aws`.
"""
