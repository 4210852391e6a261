"""Karpenter on AWS."""

NODE_CLASS = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass"}
"""of which a NodePool's nodes are, but its name"""
