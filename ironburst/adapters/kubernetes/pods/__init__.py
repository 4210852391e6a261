"""Pods as their JSON has them, to what is kept of them."""

from ironburst.adapters.kubernetes.pods.view import SHAPES, owner_of, read_pod, registry, requests, version_of

__all__ = ["SHAPES", "owner_of", "read_pod", "registry", "requests", "version_of"]
