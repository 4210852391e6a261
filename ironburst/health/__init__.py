"""Parsers and thresholds of the gate. Pure and standard library only: the role node_health copies this package to every
GPU node.
"""
