"""A real Kubernetes control plane on this machine: etcd, kube-apiserver, kube-scheduler, kube-controller-manager.

All of it listens on loopback only and needs no root. Nodes are a stand-in: a kwok node, no kubelet (`nodes`,
`stages`). RBAC, the Node authorizer, NodeRestriction, PodSecurity, ServiceAccount tokens, the scheduler, the Job
controller and the node controller are Kubernetes' own, with their defaults but for times (`commands`).

What a kubelet does, and whether a stand-in node does it:

| a kubelet | here |
|---|---|
| registers under its own name and rights, with its taints, not ready yet | done: NodeRestriction judges its labels |
| is ready a moment later; the node controller takes the not-ready taint away | done |
| a device plugin registers later: until then the node is Ready without any GPU | done |
| renews its Lease; when it stops, the node is Unknown after the grace period | done: without the label `nodes.ALIVE` |
| pulls images, so that a pod is Pending on its node for a time | as long as an annotation says; else none |
| runs containers, and restarts them by `restartPolicy` | time and exit code of an annotation; restarts none |
| stops a pod at `activeDeadlineSeconds` | done |
| gives a deleted pod its grace period | done, to its end unless an annotation says earlier |
| asks again at its own door: devices, memory, topology; UnexpectedAdmissionError | no: what the scheduler binds, runs |
| evicts under pressure, refuses at shutdown, kills at OOM | no |
| runs on while it is unreachable, and tells all at its return | only a run's end and a deletion are told then |
| has static pods, logs, exec, port-forward, volumes, probes | no |
| runs a DaemonSet's pods, which then do something to the node | they run, and do nothing |
| resets extended resources to zero when it restarts | no |
| reports image and node status every 5 minutes | no: the Lease alone |
| gets its certificate by a signing request with a bootstrap token | rented nodes do (`instance`) |

A node whose instance ends while the API server is away falls silent only when that is back, and kwok may tell the end
of its pods' work first: a real one couldn't.

`instances` is the lab's AWS whose instances act as such nodes: they run the node's own programs, and have the rights of
their instance and of their own certificate.

There is no network between pods, no cloud controller manager (a terminated instance's Node stays until somebody deletes
it) and no add-on (CoreDNS, kube-proxy, the NVIDIA device plugin, Kueue).
"""
