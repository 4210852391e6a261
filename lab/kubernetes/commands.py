"""The command lines of the control plane's programs: pure. The flags are those of kubeadm where it sets one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ORDER = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")  # as they start
# what listens: etcd-peer is there because etcd has no way without
LISTENERS = ("etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
LOOPBACK = "127.0.0.1"
NOBODYS = "192.0.2.1"  # an address for documentation: stages.REACHABLE knows by it that a node isn't kwok's
SERVICES, PODS = "10.96.0.0/16", "10.244.0.0/16"
ALIVE = "lab.ironburst/alive"  # label: a node is kept alive while it is "true"


@dataclass(frozen=True)
class Options:
    """What a lab's control plane is started with.

    `users`: {name: groups} beside the administrator. `feature_gates`: {name: on}, for every program of Kubernetes.
    `runtime_config`: {"scheduling.k8s.io/v1alpha2": "true"}. A node is Unknown `grace_s` seconds after its last
    heartbeat (Kubernetes has 50; there are eight in that time) and its pods are evicted `toleration_s` seconds after
    that, unless they tolerate more or less. The API server listens at `address` alone; `port` 0: any free one.
    `known_authority`: that of the lab's stack, in the place of a new one.
    """

    users: Mapping[str, Sequence[str]] = field(default_factory=dict)
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    runtime_config: Mapping[str, str] = field(default_factory=dict)
    grace_s: int = 8
    toleration_s: int = 300
    address: str = LOOPBACK
    port: int = 0
    known_authority: bool = False


@dataclass(frozen=True)
class Layout:
    """Where one control plane has its files and its ports: {listener: port}."""

    folder: Path
    programs: Path
    ports: Mapping[str, int]
    address: str = LOOPBACK

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def authority(self) -> Path:
        """The cluster's authority: it has signed the server's certificate, and signs those of nodes."""
        return self.certificates / "ca.crt"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.csv"

    @property
    def stages(self) -> Path:
        return self.folder / "stages.yaml"

    @property
    def account_key(self) -> Path:
        return self.folder / "service-accounts.key"

    @property
    def server(self) -> str:
        return f"https://{self.address}:{self.ports['kube-apiserver']}"

    def kubeconfig(self, user: str) -> Path:
        return self.folder / f"{user.replace(':', '.')}.kubeconfig"


def health(layout: Layout, program: str) -> str:
    """URL that answers 200 when the program works."""
    scheme = "http" if program in ("etcd", "kwok") else "https"
    path = "healthz" if program in ("kube-controller-manager", "kwok") else "readyz"
    address = layout.address if program == "kube-apiserver" else LOOPBACK
    return f"{scheme}://{address}:{layout.ports[program]}/{path}"


def command(program: str, layout: Layout, options: Options) -> list[str]:
    """The command line of one program of `ORDER`."""
    flags = {
        "etcd": _etcd,
        "kube-apiserver": _apiserver,
        "kube-controller-manager": _controller_manager,
        "kube-scheduler": _scheduler,
        "kwok": _kwok,
    }[program](layout, options)
    return [str(layout.programs / program), *(f"--{name}={value}" for name, value in flags.items())]


def _etcd(layout: Layout, _: Options) -> dict[str, object]:
    client, peer = (f"http://{LOOPBACK}:{layout.ports[name]}" for name in ("etcd", "etcd-peer"))
    return {
        "data-dir": layout.folder / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
        "unsafe-no-fsync": "true",  # a kill loses nothing, only a crash of the machine does
    }


def _apiserver(layout: Layout, options: Options) -> dict[str, object]:
    return {
        "etcd-servers": f"http://{LOOPBACK}:{layout.ports['etcd']}",
        "bind-address": layout.address,
        # else it looks for a default route, which a box has not
        "advertise-address": NOBODYS,
        "secure-port": layout.ports["kube-apiserver"],
        "tls-cert-file": layout.certificates / "apiserver.crt",
        "tls-private-key-file": layout.certificates / "apiserver.key",
        "client-ca-file": layout.authority,
        "enable-bootstrap-token-auth": "true",
        "service-cluster-ip-range": SERVICES,
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": layout.account_key,
        "service-account-signing-key-file": layout.account_key,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",  # PodSecurity and ServiceAccount are on by default
        "allow-privileged": "true",
        "token-auth-file": layout.tokens,
        "default-not-ready-toleration-seconds": options.toleration_s,
        "default-unreachable-toleration-seconds": options.toleration_s,
        **_pairs("runtime-config", options.runtime_config),
        **_gates(options),
    }


def _controller_manager(layout: Layout, options: Options) -> dict[str, object]:
    kubeconfig = layout.kubeconfig("system:kube-controller-manager")
    return {
        **_as(kubeconfig, layout, "kube-controller-manager"),
        "root-ca-file": layout.authority,
        "cluster-signing-cert-file": layout.authority,
        "cluster-signing-key-file": layout.certificates / "ca.key",
        "controllers": "*,bootstrapsigner,tokencleaner",
        "service-account-private-key-file": layout.account_key,
        "use-service-account-credentials": "true",
        "node-monitor-period": "1s",
        "node-monitor-grace-period": f"{options.grace_s}s",
        **_gates(options),
    }


def _scheduler(layout: Layout, options: Options) -> dict[str, object]:
    return {**_as(layout.kubeconfig("system:kube-scheduler"), layout, "kube-scheduler"), **_gates(options)}


def _as(kubeconfig: Path, layout: Layout, program: str) -> dict[str, object]:
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": LOOPBACK,
        "secure-port": layout.ports[program],
        "cert-dir": layout.certificates,
        "leader-elect": "false",
    }


def _kwok(layout: Layout, options: Options) -> dict[str, object]:
    return {
        "kubeconfig": layout.kubeconfig("kwok"),
        "config": layout.stages,
        "manage-nodes-with-label-selector": f"{ALIVE}=true",
        "node-lease-duration-seconds": max(4, options.grace_s // 2),  # it renews them four times as often
        "node-ip": NOBODYS,
        "cidr": PODS,
        "server-address": f"{LOOPBACK}:{layout.ports['kwok']}",
    }


def _gates(options: Options) -> dict[str, str]:
    return _pairs("feature-gates", {name: str(on).lower() for name, on in options.feature_gates.items()})


def _pairs(flag: str, values: Mapping[str, str]) -> dict[str, str]:
    return {flag: ",".join(f"{key}={value}" for key, value in values.items())} if values else {}
