"""Joins the names that BMCs and drivers report ("NVIDIA H100 80GB HBM3") to the catalogue's ("H100 SXM5 80GB")."""

import re
from collections.abc import Iterable
from functools import lru_cache

from ironburst.catalog.hardware import Gpu

# Words that tell nothing about which GPU it is: makers, marketing, memory technology, cooling ("SXM6 AC").
_NOISE = re.compile(r"nvidia|corporation|tesla|gpu|tensor|core|edition|ac|hbm\w*|gddr\w*")
_MEMORY = re.compile(r"(\d+)gb")
_FORM = re.compile(r"(sxm|pcie|nvl)\d*")


def possible_models(reported: str, gpus: Iterable[Gpu]) -> frozenset[str]:
    """The catalogue models that `reported` may name: empty if there is none, several where the name is vague ("A100").

    NVIDIA's names say PCIe or NVL where a board is one, so a name without a form factor
    means the SXM module if the chip has one.
    """
    chip, form, memory = _parse(reported)
    same_chip = [gpu for gpu in gpus if _parse(gpu.model)[0] == chip]
    fits = [gpu for gpu in same_chip if memory is None or gpu.memory_gb == memory]
    if form:
        family = form.rstrip("0123456789")
        fits = [gpu for gpu in fits if _form(gpu) == family]
        fits = [gpu for gpu in fits if _parse(gpu.model)[1] == form] or fits  # SXM2 and SXM3 of one chip
    elif any(_form(gpu) == "sxm" for gpu in same_chip):
        fits = [gpu for gpu in fits if _form(gpu) == "sxm"]
    return frozenset(gpu.model for gpu in fits)


@lru_cache(4096)
def _parse(name: str) -> tuple[tuple[str, ...], str | None, int | None]:
    """("NVIDIA A100-PCIE-40GB") -> (("a100",), "pcie", 40): chip words, form factor, memory in GB."""
    form = memory = None
    chip = []
    for word in re.findall(r"[a-z0-9]+", name.lower()):
        if size := _MEMORY.fullmatch(word):
            memory = int(size[1])
        elif _FORM.fullmatch(word):
            form = word
        elif not _NOISE.fullmatch(word):
            chip.append(word)
    if chip and re.fullmatch(r"g[hb]\d+", chip[0]):
        memory = None  # superchips report the CPU's memory: "NVIDIA GH200 480GB"
    return tuple(chip), form, memory


def _form(gpu: Gpu) -> str | None:
    """sxm, pcie or nvl; None for modules of other kinds."""
    words = re.findall(r"[a-z]+", (gpu.form_factor or "").lower())
    return next((form for form in ("nvl", "sxm", "pcie") if form in words), None)
