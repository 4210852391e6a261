"""Which model of the catalogue a GPU is, by the name and the memory that the tools print of it."""

import functools
import re
from typing import Iterable, List, Optional, Sequence, Tuple

from .expectation import Expectation, Model
from .findings import Finding, Unreadable, judged

MEMORY_TOLERANCE = 0.1  # catalogues say GB, drivers report usable MiB: H100 80GB has 81559
FORM_WORDS = re.compile(r"^(SXM\d*|PCIe|NVL|SE|\d+(/\d+)*GB|variants)$")
# A vGPU in a guest: NVIDIA A10-24Q, GRID V100D-32C, NVIDIA A100-2-10C. Its number is its memory; what the card does is
# the host's to know
VIRTUAL = re.compile(r"-(\d+)[ABCQ]\d?$")
UUID = re.compile(r"^GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
NAME = re.compile(
    r"^(?!.*N/A)(?:(NVIDIA|Tesla|Quadro|GeForce|GRID|TITAN|RTX|A100|A800|H100|H800)[ -]\S.*|[AHLBVTP]\d{1,3}\w?)$"
)
HBM = re.compile(r"\b(P100|V100S?|A100|A800|A30|H100|H800|H20|H200|GH200|B200|B300|GB200|GB300)\b")
# Cards that a cloud wires with eight of their sixteen lanes (EC2's g4dn, g5, g6e): only where nobody says what machine
# it is. The lanes are the machine's: column `pcie_lanes` of aws_instance_types.csv
WIRED_NARROW = re.compile(r"\b(T4|A10G|L40S)\b")


def refuse_others(text: str) -> None:
    """Raises Unreadable for what another maker's tool says, or lspci of another maker's accelerators."""
    head = text[:65536]
    small = head.lower()
    other = next((maker for maker, form in OTHERS.items() if form.search(head if maker == "AMD" else small)), None)
    if other:
        raise Unreadable(f"this is of {other}, not NVIDIA: the gate judges NVIDIA's GPUs only")


def wanted_lanes(declared: Optional[int], most: int, narrow: bool) -> int:
    """PCIe lanes that a GPU with `most` must have. declared: of the machine; 0: all; None: nobody says. narrow: it is
    one of WIRED_NARROW.
    """
    return declared or (min(most, 8) if declared is None and narrow else most)


# Each begins with a letter or sign of its own and none ignores case: a search takes a tenth of the time. All but AMD's
# are of text in small letters
OTHERS = {
    "AMD": re.compile(r"AMD-SMI\b|ROCm System Management|ROCM-SMI|AMD Instinct|\[Instinct |12\d\d: 1002:|\[1002:74"),
    "Intel": re.compile(r"hl-smi\b|habana labs|12\d\d: 1da3:|ponte vecchio|xpu-?smi"),
    "Huawei": re.compile(r"npu-smi\b|12\d\d: 19e5:"),
}


def _words(name: str) -> List[str]:
    return re.split(r"[\s-]+", name)


def _is_family(model: str, words: List[str]) -> bool:
    """Whether the words of a product's name have all of the model's that are no form or size: H100, RTX 6000."""
    family = [word for word in model.split() if not FORM_WORDS.match(word)]
    return bool(family) and all(word in words for word in family)


def _other_form(form: str, words: List[str]) -> bool:
    """Whether a product's name says SXM where `form` says PCIe, or the reverse."""
    pcie, sxm = "PCIe" in words or "PCIE" in words, any(word.startswith("SXM") for word in words)
    return ("SXM" in form and pcie) or ("PCIe" in form and sxm)


def fits_memory(memory_mib: float, size_gb: int) -> bool:
    """Whether a GPU that reports that many MiB may be sold as one of this size."""
    return abs(memory_mib / 1024 - size_gb) <= MEMORY_TOLERANCE * size_gb


@functools.lru_cache(maxsize=1024)
def find_models(name: str, models: Tuple[Model, ...]) -> Tuple[Model, ...]:
    """The catalogue's models that a product name may mean, whatever the memory.
    "NVIDIA H100 80GB HBM3": H100 SXM5 80GB and its variants.
    """
    words = _words(re.sub(r"\.\.\.$", "", name))
    fitting = []
    for model in models:
        other_nvl = "NVL" in words and "NVL" not in model.name.split()
        if _is_family(model.name, words) and not _other_form(model.form_factor, words) and not other_nvl:
            fitting.append(model)
    longest = max([len(model.name.split()) for model in fitting if "RTX" in model.name] or [0])
    return tuple(model for model in fitting if "RTX" not in model.name or len(model.name.split()) == longest)


def memory_sizes(name: str, models: Tuple[Model, ...]) -> List[int]:
    """Marketed sizes in GB that a GPU of this name may have; empty: not known."""
    stated = VIRTUAL.search(name) or re.search(r"\b(\d{2,3})\s?G(B|$| )", name)
    if stated and "GH200" not in name:  # GH200's number is the CPU's memory
        return [int(stated.group(1))]
    sizes = [model.memory_gb for model in find_models(name, models) if model.memory_gb]
    if re.search(r"\bH20\b", name.replace("-", " ")):
        sizes.append(141)
    return sizes


def board_of(names: Sequence[str], models: Tuple[Model, ...]) -> Optional[int]:
    """GPUs on a baseboard of the product, if all have one name and it is always that many."""
    boards = {model.board for name in names for model in find_models(name, models)}
    return boards.pop() if len(names) == 1 and len(boards) == 1 else None


def model_matches(model: str, name: str, memory_mib: float) -> bool:
    """Whether a GPU is of the catalogue's model:
    "H100 SXM5 80GB" is nvidia-smi's "NVIDIA H100 80GB HBM3" with 81559 MiB. A vGPU is no whole card, and of none.
    """
    words = _words(name)
    if VIRTUAL.search(name) or not _is_family(model, words) or _other_form(model, words):
        return False
    sizes = re.search(r"(\d+(?:/\d+)*)GB", model)
    return not sizes or any(fits_memory(memory_mib, int(size)) for size in sizes.group(1).split("/"))


def declared_model(name: Optional[str], models: Iterable[Model]) -> Optional[Model]:
    """The catalogue's model of exactly this name, as a stack declares it; None: it has none."""
    return next((model for model in models if model.name == name), None)


def nvlinks(model: Optional[Model], gpus: int) -> int:
    """NVLinks that each of that many GPUs must have up: those of an SXM board, where there is more than one."""
    return (model.links or 0) if model and "PCIe" not in model.form_factor and gpus > 1 else 0


def named_as_declared(names: Iterable[str], expected: Expectation) -> List[Finding]:
    """Whether GPUs of these product names are of the declared model, where the output shows no memory; none: nothing is
    declared.
    """
    model = expected.gpu_model
    if not model:
        return []
    known = declared_model(model, expected.models)
    memory_mib = (known.memory_gb or 0) * 1024.0 if known else 0.0
    wrong = [name for name in sorted(set(names)) if not model_matches(model, name, memory_mib)]
    return judged("gpu_model", [f"{wrong[0]} is listed, declared is {model}"] if wrong else [], f"all are {model}")


def numbered_as_declared(ids: Iterable[str], expected: Expectation) -> List[Finding]:
    """The same by the PCI ids of the GPUs (4 hexadecimal digits); none, too, where the catalogue does not know them."""
    model, told = expected.gpu_model, set(ids)
    models = [known.name for known in expected.models if told and told <= set(known.pci_ids)]
    if not model or not models:
        return []
    wrong = [f"the GPUs are {models[0]}, declared is {model}"] if model not in models else []
    return judged("gpu_model", wrong, f"all are {model}")
