"""The lab's cloud: moto's server in this process, plus what ironburst needs from AWS and moto lacks.

A stand-in, not AWS: prices, vCPU quotas, IAM enforcement and spot request objects are not emulated (quota errors can be
injected). `python -m lab.aws --prefix P` is the daemon inside a lab's box; `lab.aws.cloud.Cloud` is the same thing for
tests.
"""
