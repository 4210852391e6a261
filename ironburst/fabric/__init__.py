"""A stress test of a fabric by its own nodes, in pairs.

- rounds: who is measured with whom, and when (pure)
- measure_host: the program that is sent to the nodes
- judge: what is too slow, and which port it comes from (pure)
- stress: takes nodes out of service, measures, and gives them back
"""
