"""`make demo`: the main job on the lab, end to end. Each step runs the product itself; what stands in is the world
around it.
"""
