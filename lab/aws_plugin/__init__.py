"""The lab's stand-in for Pulumi's `aws` plugin: Pulumi's provider protocol on one side, boto3 on the other."""

import gc

gc.set_threshold(100_000, 20, 50)  # what boto3 reads of EC2 stays: to search it for garbage took half of the start
