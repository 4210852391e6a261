"""A stack file from nothing (`questions`, and `written` from their answers), beside a Slurm that runs already
(`from_slurm`), or from another environment's (`from_stack`). What is a cloud's of it: `aws`, `google`; `rooms` chooses.
"""
