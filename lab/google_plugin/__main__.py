"""Serve the plugin: print the port, then answer until the engine ends the process."""

from __future__ import annotations

from lab.google_plugin.provider import GoogleStandIn
from lab.provider.serve import forget, serve

if __name__ == "__main__":
    forget(["GOOGLE_", "GCLOUD_", "CLOUDSDK_"])
    serve(GoogleStandIn)
