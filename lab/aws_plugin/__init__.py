"""The lab's stand-in for Pulumi's `aws` plugin: Pulumi's provider protocol on one side, boto3 on the other."""
