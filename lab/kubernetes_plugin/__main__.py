"""Serve the plugin: print the port, then answer until the engine ends the process."""

from lab.kubernetes_plugin.provider import KubernetesStandIn
from lab.provider.serve import forget, serve

if __name__ == "__main__":
    forget(["KUBE", "HELM_", "PULUMI_K8S_"])  # the caller's clusters and switches
    serve(KubernetesStandIn)
