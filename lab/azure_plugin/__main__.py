"""Serve the plugin: print the port, then answer until the engine ends the process."""

from __future__ import annotations

from lab.azure_plugin.provider import AzureStandIn
from lab.provider.serve import forget, serve

if __name__ == "__main__":
    forget(["ARM_", "AZURE_"])
    serve(AzureStandIn)
