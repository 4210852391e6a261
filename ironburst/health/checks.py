"""What a GPU node must show before it may take jobs: driver, GPU count and model, fabric links, shared mounts.

Pure: `evaluate(expected, observed)` judges what the gate's program has read. It fails closed: a tool that is missing,
hangs, answers with something that is not understood, or answers with nothing, is a failed check, never a passed one.

This file is copied to the nodes as it is, so it uses the standard library only (Python 3.6 and newer).
"""

import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

LSPCI = ("lspci", "-Dn", "-d", "10de:")
NVIDIA_SMI = ("nvidia-smi", "--query-gpu=index,name,driver_version,memory.total", "--format=csv,noheader,nounits")
MEMORY_TOLERANCE = 0.1  # catalogues say GB, drivers report usable MiB: H100 80GB has 81559
LAYERS = {"infiniband": "InfiniBand", "efa": "Unspecified"}  # link_layer in /sys/class/infiniband/*/ports/*
DISPLAY_CLASSES = ("0300", "0302")  # VGA and 3D controller: GPUs; NVSwitches are 0680
FORM_WORDS = re.compile(r"^(SXM\d*|PCIe|NVL|SE|\d+(/\d+)*GB|variants)$")


class Unreadable(ValueError):
    """Output that is not understood."""


class Outcome(NamedTuple):
    """One run of a tool. `error`: why there is no answer ("is not installed", "did not answer in 20 s"), else None."""

    returncode: Optional[int]
    stdout: str
    error: Optional[str] = None


class Gpu(NamedTuple):
    """One GPU as nvidia-smi reports it; memory in MiB."""

    index: int
    name: str
    driver: str
    memory_mib: int


class Link(NamedTuple):
    """One port of an RDMA device, as sysfs has it: state "4: ACTIVE", layer "InfiniBand"."""

    device: str
    port: str
    state: str
    layer: str


class Expected(NamedTuple):
    """What the ClusterDocument declares for this node."""

    driver: str
    gpu_model: str
    gpu_count: int
    fabric: str
    fabric_links: int
    mounts: Tuple[str, ...] = ()


class Observed(NamedTuple):
    """What the gate's program has read. `mount_points`: every mount point of the node."""

    lspci: Outcome
    nvidia_smi: Outcome
    links: Tuple[Link, ...]
    mount_points: Tuple[str, ...]


class Finding(NamedTuple):
    """One check: passed or not, and one sentence."""

    check: str
    passed: bool
    text: str


def expected_from(data: Any) -> Expected:
    """Expected from the decoded gate.json. Raises Unreadable for anything missing, of a wrong type, or that would let
    every node pass.
    """
    if not isinstance(data, dict):
        raise Unreadable("the gate's settings are not a JSON object")
    types = {
        "driver": str,
        "gpu_model": str,
        "gpu_count": int,
        "fabric": str,
        "fabric_links": int,
        "mounts": list,
    }  # type: Dict[str, type]
    for name, kind in types.items():
        if not isinstance(data.get(name), kind) or isinstance(data.get(name), bool):
            raise Unreadable(f"the gate's settings have no usable {name}: {data.get(name)!r}")
    if data["gpu_count"] < 1 or not data["gpu_model"] or not data["driver"]:
        raise Unreadable("the gate's settings expect no GPU: it is for GPU nodes")
    if data["fabric"] not in (*LAYERS, "none"):
        raise Unreadable(f"the gate's settings name an unknown fabric: {data['fabric']!r}")
    if data["fabric"] != "none" and data["fabric_links"] < 1:
        raise Unreadable(f"the gate's settings expect {data['fabric']} but no link of it")
    return Expected(mounts=tuple(data["mounts"]), **{name: data[name] for name in types if name != "mounts"})


def answer(tool: str, outcome: Outcome) -> str:
    """The output of a tool that ran. Raises Unreadable if it did not, failed, or said nothing."""
    if outcome.error:
        raise Unreadable(f"{tool} {outcome.error}")
    if outcome.returncode != 0:
        said = outcome.stdout.strip().splitlines()
        raise Unreadable(f"{tool} failed with exit status {outcome.returncode}" + (f": {said[0]}" if said else ""))
    if not outcome.stdout.strip():
        raise Unreadable(f"{tool} says nothing")
    return outcome.stdout


def parse_lspci(text: str) -> List[str]:
    """PCI addresses of the NVIDIA GPUs in the output of `lspci -Dn -d 10de:`."""
    addresses = []
    for line in text.splitlines():
        match = re.match(r"^([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([0-9a-f]{4}): 10de:[0-9a-f]{4}\b", line)
        if not match:
            raise Unreadable(f"lspci prints a line that is not understood: {line!r}")
        if match.group(2) in DISPLAY_CLASSES:
            addresses.append(match.group(1))
    return addresses


def parse_nvidia_smi(text: str) -> List[Gpu]:
    """GPUs in the output of NVIDIA_SMI. A GPU with an unknown value ("[N/A]", "[Unknown Error]") is not understood."""
    gpus = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if (
            len(fields) != 4
            or not fields[0].isdigit()
            or not fields[3].isdigit()
            or not re.match(r"^\d+(\.\d+)+$", fields[2])
        ):
            raise Unreadable(f"nvidia-smi prints a line that is not understood: {line!r}")
        gpus.append(Gpu(int(fields[0]), fields[1], fields[2], int(fields[3])))
    if len({gpu.index for gpu in gpus}) != len(gpus):
        raise Unreadable("nvidia-smi prints one GPU twice")
    return gpus


def model_matches(model: str, gpu: Gpu) -> bool:
    """Whether a GPU is of the catalogue's model: "H100 SXM5 80GB" is nvidia-smi's "NVIDIA H100 80GB HBM3" with 81559
    MiB.
    """
    words = re.split(r"[\s-]+", gpu.name)
    family = [word for word in model.split() if not FORM_WORDS.match(word)]
    if not family or any(word not in words for word in family):
        return False
    wants_sxm, wants_pcie = "SXM" in model, "PCIe" in model
    if (wants_sxm and "PCIe" in words) or (wants_pcie and any(word.startswith("SXM") for word in words)):
        return False
    sizes = re.search(r"(\d+(?:/\d+)*)GB", model)
    if not sizes:
        return True
    return any(
        abs(gpu.memory_mib / 1024 - int(size)) <= MEMORY_TOLERANCE * int(size) for size in sizes.group(1).split("/")
    )


def check_gpus_on_bus(expected: Expected, observed: Observed) -> Tuple[bool, str]:
    found = len(parse_lspci(answer("lspci", observed.lspci)))
    return found == expected.gpu_count, f"{found} of {expected.gpu_count} GPUs on the PCI bus"


def _gpus(observed: Observed) -> List[Gpu]:
    return parse_nvidia_smi(answer("nvidia-smi", observed.nvidia_smi))


def check_gpu_count(expected: Expected, observed: Observed) -> Tuple[bool, str]:
    found = len(_gpus(observed))
    return found == expected.gpu_count, f"the driver has {found} of {expected.gpu_count} GPUs"


def check_gpu_model(expected: Expected, observed: Observed) -> Tuple[bool, str]:
    gpus = _gpus(observed)
    other = [
        f"GPU {gpu.index} is {gpu.name} with {gpu.memory_mib} MiB"
        for gpu in gpus
        if not model_matches(expected.gpu_model, gpu)
    ]
    return bool(gpus) and not other, "; ".join(other) or f"all are {expected.gpu_model}"


def check_driver(expected: Expected, observed: Observed) -> Tuple[bool, str]:
    versions = sorted({gpu.driver for gpu in _gpus(observed)})
    return versions == [expected.driver], f"driver {', '.join(versions)}, declared {expected.driver}"


def check_fabric(expected: Expected, observed: Observed) -> Tuple[bool, str]:
    if expected.fabric == "none":
        return True, "no fabric is declared"
    layer = LAYERS[expected.fabric]
    links = [link for link in observed.links if link.layer == layer]
    active = [link for link in links if link.state == "4: ACTIVE"]
    down = [f"{link.device}/{link.port} is {link.state or 'unknown'}" for link in links if link not in active]
    text = f"{len(active)} of {expected.fabric_links} {expected.fabric} links are active"
    return len(active) >= expected.fabric_links and not down, "; ".join([text, *down])


def check_mounts(expected: Expected, observed: Observed) -> Tuple[bool, str]:
    missing = [path for path in expected.mounts if path not in observed.mount_points]
    return (
        not missing,
        f"not mounted: {', '.join(missing)}"
        if missing
        else f"mounted: {', '.join(expected.mounts) or 'nothing declared'}",
    )


CHECKS: Dict[str, Callable[[Expected, Observed], Tuple[bool, str]]] = {
    "gpus_on_bus": check_gpus_on_bus,
    "gpu_count": check_gpu_count,
    "gpu_model": check_gpu_model,
    "driver": check_driver,
    "fabric": check_fabric,
    "mounts": check_mounts,
}


def evaluate(expected: Expected, observed: Observed) -> List[Finding]:
    """One finding a check, in a fixed order. An error in a check is a failed check."""
    findings = []
    for name, check in CHECKS.items():
        try:
            passed, text = check(expected, observed)
        except Unreadable as error:
            passed, text = False, str(error)
        except Exception as error:  # fail closed, whatever it is
            passed, text = False, f"the check itself failed: {error!r}"
        findings.append(Finding(name, passed is True, text))
    return findings


def passed(findings: List[Finding]) -> bool:
    """Whether the node may take jobs: every known check is there and passed."""
    return {finding.check for finding in findings} == set(CHECKS) and all(finding.passed for finding in findings)
