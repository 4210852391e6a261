"""Pulumi components: the declared envelope (networks, permissions, launch templates,
alarms), fixed cloud nodes, owned nodes.
"""
