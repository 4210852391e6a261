"""The lab's cloud: moto's server in this process, plus what ironburst needs from AWS and moto lacks.

A stand-in, not AWS; README.md lists its modules, and what isn't emulated. `python -m lab.aws --prefix P` is the daemon
inside a lab's box; `lab.aws.cloud.Cloud` is the same thing for tests.
"""
