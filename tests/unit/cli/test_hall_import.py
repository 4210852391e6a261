"""`ironburst hall import FOLDER`: files in, a proposal out, nothing overwritten."""

import json

import pytest
import yaml

from ironburst.cli import main
from tests.unit.hall.netbox_rest import NetBox, choice


@pytest.fixture
def folder(tmp_path):
    box = NetBox()
    site = box.site("dc1")
    kind = box.type("NVIDIA", "DGX H100", 8)
    rack = box.rack(site, "r01", max_weight=1200, weight_unit=choice("kg"))
    box.device(site, "dgx01", "AI", kind, rack, 1)
    box.device(site, "jump", "Jumphost", box.type("Dell", "R660"), rack, 40)
    for name, text in box.pages().items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_it_is_printed_or_written_to_a_new_file(folder, capsys):
    assert main(["hall", "import", str(folder), "--role", "jumphost=login"]) == 0
    printed = capsys.readouterr().out
    (hall,) = yaml.safe_load(printed)["halls"]
    assert [each["names"] for each in hall["nodes"]] == ["dgx01", "jump"] and hall["nodes"][1]["role"] == "login"
    out = folder / "hall.yaml"
    asked = ["hall", "import", str(folder), "--role", "jumphost=login", "--output", str(out)]
    assert main(asked) == 0 and out.read_text() == printed
    assert "things to declare, 0 to look at, 0 not taken over" in capsys.readouterr().out
    assert main(asked) == 2 and out.read_text() == printed
    assert "hall.yaml is there already: give another --output" in capsys.readouterr().err


def test_json_has_every_object_of_a_note(folder, capsys):
    assert main(["hall", "import", str(folder), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (left,) = [note for note in said["notes"] if note["list"] == "left"]
    assert left["of"] == ["jump"] and "--role jumphost=KIND" in left["message"]
    assert said["hall"]["nodes"][0]["addresses"] is None


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--role", "jumphost"], "--role jumphost: write ROLE=KIND, with KIND one of gpu, head, login, leaf"),
        (["--role", "jumphost=server"], "--role jumphost=server: write ROLE=KIND"),
        (["--site", "dc2"], "--site dc2: racks and devices are of dc1"),
        (["--output", "/nowhere/hall.yaml"], "/nowhere/hall.yaml can't be written: No such file"),
    ],
)
def test_bad_input_is_one_sentence(folder, capsys, more, words):
    assert main(["hall", "import", str(folder), *more]) == 2
    said = capsys.readouterr()
    assert words in said.err and said.err.count("\n") == 1 and said.out == ""


def test_files_that_are_no_pages(folder, tmp_path, capsys):
    (folder / "racks-0.json").write_bytes(b'{"results": "\xff"}')
    assert main(["hall", "import", str(folder)]) == 2
    assert "racks-0.json isn't UTF-8" in capsys.readouterr().err
    empty = tmp_path / "empty"
    assert main(["hall", "import", str(empty)]) == 2
    assert "has no *.json: save NetBox's pages there" in capsys.readouterr().err
