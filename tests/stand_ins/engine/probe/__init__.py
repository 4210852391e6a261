"""A probe provider, its program side, and the harness of the engine's tests."""
