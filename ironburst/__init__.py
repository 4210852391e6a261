"""ironburst: one declaration for the GPU nodes you own and the GPU nodes you rent."""

__version__ = "0.2.0"
