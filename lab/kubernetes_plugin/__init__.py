"""The lab's stand-in for Pulumi's `kubernetes` plugin: Pulumi's provider protocol on one side, a Kubernetes API server
on the other.
"""
