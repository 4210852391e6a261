"""Stub packages of what Debian does not have, beside the driver's: Apptainer, Enroot, pyxis, DOCA-OFED, the DCGM
exporter, kubelet. Pure data.

Names, versions and paths are the projects' own; the tools only say that they are stubs.
"""

from collections.abc import Iterator

from lab.packages.stub import StubPackage, says, tool, unit

APPTAINER_VERSION = "1.4.2"
ENROOT_VERSION = "3.5.0"
PYXIS_VERSION = "0.20.0"
DOCA_VERSION = "3.2.3"
DCGM_EXPORTER_VERSION = "4.5.0"
KUBELET_VERSIONS = ["1.36.3", "1.37.2"]  # the newer one is there to be left alone
CNI_VERSION = "1.7.1"
CRI_VERSION = "1.36.0"
# As Kubernetes' own package of kubeadm has it
_KUBERNETES = "/etc/kubernetes"
KUBEADM_DROP_IN = f"""# STUB of the lab
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig={_KUBERNETES}/bootstrap-kubelet.conf \
--kubeconfig={_KUBERNETES}/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""


def runtimes() -> Iterator[StubPackage]:
    """The stub packages."""
    yield StubPackage(
        "apptainer",
        APPTAINER_VERSION,
        files={
            "usr/bin/apptainer": says("apptainer", "--version", f"apptainer version {APPTAINER_VERSION}"),
            "etc/apptainer/apptainer.conf": "# STUB of the lab\n",
        },
    )
    yield StubPackage(
        "apptainer-suid",
        APPTAINER_VERSION,
        depends=f"apptainer (= {APPTAINER_VERSION})",
        files={"usr/libexec/apptainer/bin/starter-suid": says("starter-suid", "--version", APPTAINER_VERSION)},
    )
    yield StubPackage(
        "enroot",
        f"{ENROOT_VERSION}-1",
        files={
            "usr/bin/enroot": says("enroot", "version", ENROOT_VERSION),
            "etc/enroot/enroot.conf": "# STUB of the lab\n",
        },
    )
    yield StubPackage("enroot+caps", f"{ENROOT_VERSION}-1", depends=f"enroot (= {ENROOT_VERSION}-1)")
    plugin = "/usr/lib/x86_64-linux-gnu/slurm/spank_pyxis.so"
    yield StubPackage(
        "nvslurm-plugin-pyxis",
        f"{PYXIS_VERSION}-1",
        files={
            plugin[1:]: "STUB of the lab: Slurm can't load this\n",
            "usr/share/pyxis/pyxis.conf": f"# STUB of the lab\nrequired {plugin}\n",
        },
    )
    yield StubPackage(
        "doca-ofed",
        f"{DOCA_VERSION}-1",
        files={"usr/bin/ofed_info": says("ofed_info", "-s", f"OFED-internal-{DOCA_VERSION}:")},
    )
    counters = "# STUB of the lab\nDCGM_FI_DEV_GPU_TEMP, gauge, GPU temperature (in C).\n"
    exporter = unit(
        "NVIDIA DCGM-exporter service",
        "ExecStart=/usr/bin/dcgm-exporter -f /etc/dcgm-exporter/default-counters.csv\n",
    )
    yield StubPackage(
        "datacenter-gpu-manager-exporter",
        f"{DCGM_EXPORTER_VERSION}-1",
        depends="python3",
        files={
            "usr/bin/dcgm-exporter": tool("dcgm-exporter", version=DCGM_EXPORTER_VERSION),
            "etc/dcgm-exporter/default-counters.csv": counters,
            "usr/lib/systemd/system/nvidia-dcgm-exporter.service": exporter,
        },
    )


def kubernetes() -> Iterator[StubPackage]:
    """kubelet and what it depends on, as Kubernetes' own repository has them: nothing is started by installing it."""
    service = "ExecStart=/usr/bin/kubelet\nRestart=always\nRestartSec=2\n"
    head = "Wants=network-online.target\nAfter=network-online.target\nStartLimitIntervalSec=0\n"
    for version in KUBELET_VERSIONS:
        yield StubPackage(
            "kubelet",
            f"{version}-1.1",
            depends="kubernetes-cni, python3, python3-yaml, openssl",
            files={
                "usr/bin/kubelet": tool("kubelet", version=version),
                "usr/lib/systemd/system/kubelet.service": unit("kubelet", service, head=head),
            },
        )
        real = {name: _real(name, version) for name in ("kubeadm", "kubectl")}
        yield StubPackage(
            "kubeadm",
            f"{version}-1.1",
            depends="kubelet, cri-tools",
            files={
                "usr/bin/kubeadm": real["kubeadm"],
                "usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": KUBEADM_DROP_IN,
            },
        )
        yield StubPackage("kubectl", f"{version}-1.1", files={"usr/bin/kubectl": real["kubectl"]})
    yield StubPackage("cri-tools", f"{CRI_VERSION}-1.1", depends="python3", files={"usr/bin/crictl": tool("crictl")})
    yield StubPackage("kubernetes-cni", f"{CNI_VERSION}-1.1", files={"opt/cni/bin/README": "STUB of the lab\n"})


def _real(name: str, version: str) -> str:
    """The lab's own build of a program, where a test has put it; else a stub."""
    real = f"/shared/kubernetes/{name}" + (f"-{version}" if name == "kubeadm" else "")
    run = f'[ -x {real} ] && exec {real} "$@"\n'
    return f'#!/bin/sh\n# STUB of the lab\n{run}echo "{name} {version}: STUB of the lab" >&2\nexit 1\n'
