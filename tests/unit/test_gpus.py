"""What a scheduler's GPU type says: whole GPUs, or parts of one."""

import contextlib
import json
from pathlib import Path

import pytest

from ironburst.adapters.slurm import answers as slurm_json
from ironburst.adapters.slurm import site as slurm_site
from ironburst.nodes.gpus import is_slice, whole
from ironburst.ports import WrongShape

SLICES = (
    *("1g.10gb", "1g.5gb+me", "1g.24gb+me.all", "1g.24gb-me", "4g.96gb+gfx", "1c.2g.20gb"),
    *("a100_3g.20gb", "h100_1g.10gb", "nvidia_h100_80gb_hbm3_1g.10gb", "nvidia_a100-sxm4-80gb_1c.3g.40gb"),
    *("NVIDIA_H200_1g.18gb", "mig-3g.71gb", "1g10gb", "a100_1g_5gb", "mig_24gb", "a100-mig", "mig"),
)
WHOLE = (
    *("", "h100", "a100", "a100_80gb", "nvidia_h100_80gb_hbm3", "nvidia_a100-sxm4-40gb", "rtx_6000_ada_48gb"),
    *("nvidia_gb200", "gh200", "l40s", "mi300x", "tesla_v100_sxm2_32gb", "nvidia_rtx_pro_6000_blackwell_96gb"),
)


@pytest.mark.parametrize("type", SLICES)
def test_a_type_that_ends_in_a_mig_profile_is_a_slice_to_every_reader(type, tmp_path):
    assert is_slice(type)
    assert whole(f"cpu=2,gres/gpu=3,gres/gpu:{type}=1,gres/gpu:h100=2") == 2
    assert slurm_json.tres(f"cpu=2,mem=1G,gres/gpu:{type}=7").gpus == 0
    node = {"name": "g1", "partitions": ["gpu"], "state": ["MIXED"], "cpus": 48, "real_memory": 1000, "address": "g1"}
    node |= {"gres": f"gpu:{type}:8(S:0-3),gpu:h100:2(S:0-3)", "tres": "cpu=48,mem=1000M,gres/gpu=10", "reason": ""}
    (tmp_path / "nodes.json").write_text(json.dumps({"nodes": [node]}))
    assert slurm_json.nodes({"nodes": [node]})[0].total.gpus == 2
    (host,) = slurm_site.read(tmp_path).hosts
    assert (host.gpus, host.gpu_type) == (2, "h100")


FIXTURES = Path(__file__).parents[1] / "adapters/slurm_fixtures"
DELETED = "deleted"


def damaged(value, given):
    """The JSON with each of its values replaced, of lists those of the first item."""
    for key in list(value) if isinstance(value, dict) else range(len(value[:1])) if isinstance(value, list) else ():
        kept = value[key]
        value[key] = given
        if given is DELETED:
            del value[key]
            yield
            value |= {key: kept} if isinstance(value, dict) else {}
            if isinstance(value, list):
                value.insert(key, kept)
            continue
        yield
        value[key] = kept
        yield from damaged(kept, given)


@pytest.mark.parametrize("given", [DELETED, None, "N/A", [], {}, -1], ids=str)
@pytest.mark.parametrize("release", ["23.02", "23.11", "24.11", "25.05", "26.05"])
def test_an_answer_of_slurm_that_is_damaged_is_one_sentence(release, given, tmp_path):
    for kind, key, read in (("squeue", "jobs", slurm_json.read_jobs), ("nodes", "nodes", slurm_json.read_nodes)):
        whole_answer = json.loads((FIXTURES / release / f"{kind}.json").read_text())
        answer = {key: whole_answer[key][:1], "meta": whole_answer.get("meta", {})}
        sound, refused = read(answer), 0
        for _ in damaged(answer, given):
            try:
                refused += read(answer) != sound
            except WrongShape:
                refused += 1
            if kind == "nodes":
                (tmp_path / "nodes.json").write_text(json.dumps(answer))
                with contextlib.suppress(slurm_site.UnreadableSite):
                    slurm_site.read(tmp_path)
        assert refused, "a damage is seen: it is refused, or read as something else"


@pytest.mark.parametrize("type", WHOLE)
def test_a_memory_size_in_a_name_is_no_slice(type):
    assert not is_slice(type)
    assert slurm_json.tres(f"cpu=2,gres/gpu{':' if type else ''}{type}=7").gpus == 7
