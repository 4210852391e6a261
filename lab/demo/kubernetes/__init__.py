"""`make demo-kubernetes`: the story of `make demo` with pods. The control plane, the scheduler and the controller are
real; nodes are kwok's, and what an instance does after its boot is acted out (lab.kubernetes.instance).
"""
