"""Writes the samples; what was captured stays."""

from pathlib import Path

from tests.unit.health.damage import tool_of
from tests.unit.health.samples import samples

FOLDER = Path(__file__).parents[1] / "healthy"

for path in FOLDER.iterdir():
    if tool_of(path.name) and not path.name.endswith("-captured"):
        path.unlink()
for name, text in samples().items():
    (FOLDER / name).write_text(text)
print(len(samples()), "samples")
