"""What the lab's stand-ins for Pulumi's provider plugins share: the protocol's values, a process that serves them, the
fence around the lab, what the SDK declares, and the engine's side for their tests.
"""
