"""The judgement of the gate: by level (join, accept), by tool (tools names the parsers), over what is declared
(settings, expectation) and the catalogue (tables).

Pure, standard library only, Python 3.6: the role node_health copies every module of this folder to every GPU node.
"""
