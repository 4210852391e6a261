"""Step 3: declared hosts become nodes; a second run must change nothing; the same roles bake the image of rented
nodes.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ironburst import document
from lab.demo.cloud import Room, room_of
from lab.demo.inside import Inside
from lab.system import LabError

INVENTORY = "inventory/lab"
Say = Callable[[str], None]


def converge(inside: Inside, say: Say) -> dict[str, dict[str, Any]]:
    """{"first", "second"}: host -> {"changed", "failed"}."""
    first = once(inside, "first", say)
    say(f"converged {', '.join(first)}; now once more, and beside it the image of the rented nodes")
    pools = [(pool.name, room_of(inside.cloud, pool.instance_type)) for pool in document.read(inside.document).pools]
    both = ThreadPoolExecutor(1 + len(pools))
    try:
        baked = [both.submit(bake, inside, pool, room, say) for pool, room in pools]
        second = once(inside, "second", lambda _line: None, "--always")
        for image in baked:
            image.result()
    finally:
        both.shutdown(wait=False)  # after Ctrl-C: the end of the lab ends what still runs
    say("second run: " + ", ".join(f"{name} changed={host['changed']}" for name, host in second.items()))
    return {"first": first, "second": second}


def once(inside: Inside, name: str, say: Say, *options: str) -> dict[str, Any]:
    """`ironburst converge`: validate.yml, then site.yml on every host. A line of progress a host and role."""
    command = inside.ironburst(
        "converge", "--document", str(inside.document), "--inventory", INVENTORY, "--json", *options
    )
    receipt = json.loads(_follow(inside, command, f"converge-{name}", say))
    hosts = {host: {"changed": said["changed"], "failed": said["failed"]} for host, said in receipt["hosts"].items()}
    wrong = {host: said["error"] for host, said in receipt["hosts"].items() if said["state"] != "converged"}
    if wrong or receipt["error"]:
        raise LabError(f"the {name} converge failed: {receipt['error'] or wrong}")
    return hosts


def bake(inside: Inside, pool: str, room: Room, say: Say) -> None:
    """`ironburst image`: an instance of the pool, playbooks/image.yml on it, its image, its parameter."""
    where = ("--document", str(inside.document), "--inventory", INVENTORY)
    command = inside.ironburst("image", pool, *where, "--base-image", room.base_image, "--user", room.login, "--json")
    said = json.loads(_follow(inside, command, "image", lambda _line: None))
    say(f"image of pool {pool}: {said['image']}")


def _follow(inside: Inside, command: list[str], log: str, say: Say) -> str:
    """Run to the end, saying each line of its progress (stderr), which goes to the log, too; returns standard
    output.
    """
    with inside.site.log(log).open("a") as file:
        process = subprocess.Popen(
            inside.argv(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout and process.stderr
        reader, last = ThreadPoolExecutor(1), ""
        try:
            output = reader.submit(process.stdout.read)
            for line in process.stderr:
                file.write(line)
                last = line.strip() or last
                say(line.strip().split(" s  ", 1)[-1])
            text = output.result()
        finally:
            reader.shutdown(wait=False)
        file.write(text)
        if process.wait() and not text.strip():
            raise LabError(f"ironburst {' '.join(command[3:5])} ended with exit code {process.returncode}: {last}")
    return text
