#!/usr/bin/env python3
"""A stand-in for perftest's ib_write_bw between nodes of one machine, as the real one refuses, delays and says in part:

- a client whose server doesn't listen yet ends at once ("Couldn't connect to ADDRESS:PORT", exit status 1)
- a card that isn't there: "IB device NAME not found", exit status 1
- a server says nothing that tells when it listens, serves one client, and waits for ever where none comes
- a link that breaks while it is measured: "Completion with error at client", syndrome 0x81 (retries), exit status 1
- a driver that hangs prints its head and never ends
- with -D the peak isn't measured: 0.00, and a warning

What a line gives is in $PERFTEST, JSON: {"late_s": before a server listens, "devices": {address: [names]},
"gbps": {"ADDRESS DEVICE to ADDRESS DEVICE": Gb/s, "broken" or "hangs"}, "else": Gb/s}. Whose program it is: $ADDRESS.
"""

import json
import os
import socket
import sys
import time
from pathlib import Path

world, me = json.loads(Path(os.environ["PERFTEST"]).read_text()), os.environ["ADDRESS"]
words = sys.argv[1:]
device, port = words[words.index("-d") + 1], int(words[words.index("-p") + 1])
address = None if words[-2] == "-p" else words[-1]
assert "-D" in words and words[words.index("-s") + 1] == "65536"
if device not in world["devices"][me]:
    print(f"IB device {device} not found\n Unable to find the Infiniband/RoCE device")
    sys.exit(1)
if address is None:
    time.sleep(world.get("late_s", 0))
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((me, port))
        listening.listen(1)
        with listening.accept()[0] as peer:
            peer.sendall(f"{me} {device}".encode())
            peer.recv(1)  # until the client has ended
    sys.exit(0)
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.unit.health.samples.links import ib_write_bw  # noqa: E402 - a server, or who is refused, needs none of it

try:
    with socket.create_connection((address, port), 5) as peer:
        other = peer.recv(100).decode()
        gbps = world["gbps"].get(f"{me} {device} to {other}", world["else"])
        text = ib_write_bw(float(gbps) * (65536 + 4096) / 65536 if not isinstance(gbps, str) else 1.0, "Gb/sec", False)
        head, row = text.split(" 65536", 1)
        print(" WARNING: BW peak won't be measured in this run.\n" + head, end="", flush=True)
        while gbps == "hangs":
            time.sleep(1)
        if gbps == "broken":
            print(" Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0")
            sys.exit(1)
        iterations, peak, *rest = row.split(maxsplit=2)
        print(f" 65536      {iterations}             0.00               {rest[0]}", end="")
except OSError:
    print(f"Couldn't connect to {address}:{port}\n Unable to open file descriptor for socket connection")
    sys.exit(1)
