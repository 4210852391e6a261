"""`ironburst hall verify` on the production example: a fabric as declared, and with two plugs swapped."""

import json
from pathlib import Path

import pytest

from ironburst.cli import main
from ironburst.cli.hall import usable
from ironburst.config import halls

STACK = Path(__file__).parents[3] / "stacks/Pulumi.prod.yaml"


def fabric(swapped: bool = False) -> str:
    """What ibnetdiscover prints of the declared fabric (its form: tests/unit/hall/seen)."""
    hall = halls.declared(usable(STACK))[0]
    peers: dict[str, dict[str, str]] = {}
    for cable in hall.cables:
        if cable.speed == "NDR":
            for here, there in ((cable.a, cable.b), (cable.b, cable.a)):
                peers.setdefault(here.device, {})[here.port] = (
                    f'"S-1"[{there.port}]\t\t# "MF0;{there.device}:MQM9790/U1" lid 3 4xNDR'
                    if hall.device[there.device].is_switch
                    else f'"H-1"[1](10000f) \t\t# "{there.device} mlx5_{int(there.port[2:]) - 1}" lid 5 4xNDR'
                )
    switches = {name: ports for name, ports in peers.items() if hall.device[name].is_switch}
    if swapped:
        ports = switches["leaf3"]
        ports["2"], ports["5"] = ports["5"], ports["2"]
    return "\n".join(
        line
        for name, ports in switches.items()
        for line in (
            f'Switch\t64 "S-1"\t\t# "MF0;{name}:MQM9790/U1" enhanced port 0 lid 3 lmc 0',
            *(f"[{port}]\t{peer}" for port, peer in ports.items()),
        )
    )


def test_a_fabric_as_declared(tmp_path, capsys):
    (tmp_path / "fabric.txt").write_text(fabric())
    assert main(["hall", "verify", str(STACK), "--ibnetdiscover", str(tmp_path / "fabric.txt")]) == 0
    assert capsys.readouterr().out == "every cable that could be seen is as declared\n"


def test_swapped_plugs_are_named(tmp_path, capsys):
    (tmp_path / "fabric.txt").write_text(fabric(swapped=True))
    command = ["hall", "verify", str(STACK), "--ibnetdiscover", str(tmp_path / "fabric.txt")]
    assert main(command) == 3
    assert capsys.readouterr().out == (
        "dgx02/ib3 and dgx05/ib3 are swapped: dgx02/ib3 is at leaf3/5, dgx05/ib3 at leaf3/2. "
        "Swap the two plugs at leaf3, or declare it so\n"
    )
    assert main([*command, "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["differences"][0]["kind"] == "swapped"


def test_neighbours_of_a_node(tmp_path, capsys):
    text = (Path(__file__).parents[1] / "hall/seen/lldp-one.json").read_text()
    (tmp_path / "dgx01.json").write_text(
        text.replace("eth-leaf1", "eth1").replace("eth0", "eth1").replace("swp1", "Ethernet1/1")
    )
    assert main(["hall", "verify", str(STACK), "--lldp", str(tmp_path / "dgx01.json")]) == 0
    (tmp_path / "dgx02.json").write_text((tmp_path / "dgx01.json").read_text())
    assert main(["hall", "verify", str(STACK), "--lldp", str(tmp_path / "dgx02.json")]) == 3
    assert "dgx02/eth1 to eth1/2 is elsewhere: dgx02/eth1 is at eth1/1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "give --ibnetdiscover FILE"),
        (["--ibnetdiscover", "nothing.txt"], "nothing.txt can't be read"),
        (["--ibnetdiscover", "empty.txt"], "no device in it"),
        (["--lldp", "empty.txt"], "empty is no node of hall hall-a"),
        (["--hall", "b", "--lldp", "empty.txt"], "--hall b is none of them: give --hall with one of hall-a"),
    ],
)
def test_bad_input(more, said, tmp_path, capsys, monkeypatch):
    (tmp_path / "empty.txt").write_text("")
    monkeypatch.chdir(tmp_path)
    assert main(["hall", "verify", str(STACK), *more]) == 2
    assert said in capsys.readouterr().err
