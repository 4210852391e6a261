"""Parsers and thresholds of the join gate. Pure and standard library only: the role node_health copies checks.py to every GPU node."""
