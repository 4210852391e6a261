#!/usr/bin/python3
"""ironburst-fabric check|accept [--json] [--settle SECONDS]: the InfiniBand fabric's links, error counters and subnet
managers.

check compares them with the limits (/etc/ironburst/fabric.json) and with what was seen before, and leaves figures for
the node exporter; accept makes today's links and counters what is expected from now on (after a planned change of
cables). Exit status 0: good, 1: problems, 2: a tool is missing, hangs, or says something that isn't understood. Python
3.6 (EL 8).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time

STATE = "/var/lib/ironburst/fabric/seen.json"
TIMEOUT = 120  # seconds; a large fabric takes a while
PAUSE = 0.5  # seconds between two looks while settling

LINK = re.compile(
    r'^(?P<guid>0x[0-9a-f]{16}) "\s*(?P<name>.*?)"\s+(?P<lid>\d+)\s+(?P<port>\d+)\[.*?\] ==\((?P<state>.*?)\)==>'
    r'\s*(?P<peer_guid>0x[0-9a-f]{16})?\s*\d*\s*(?P<peer_port>\d+)?\[.*?\] "(?P<peer>.*?)" \((?P<notes>.*)\)\s*$'
)
UP = re.compile(r"^\s*(?P<width>\d+)X\s+(?P<lane>[\d.]+) Gbps\s+(?P<logical>\w+)\s*/\s*(?P<physical>\w+)\s*$")
PORT_ERRORS = re.compile(r"^\s+GUID (?P<guid>0x[0-9a-f]+) port (?P<port>\d+|ALL):(?P<counters>.*)$")
COUNTER = re.compile(r"\s*\[(\w+) == (\d+)(?: \([^)\]]*\))?\]")


class FabricError(Exception):
    """Nothing can be said; the text is one sentence."""


# --- reading: pure


def parse_links(text):
    """`iblinkinfo --line`: {"guid:port": {name, port, peer, width, lane_gbps, state}} of all ports; width 0 where a
    port is down.
    """
    links = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        row = LINK.match(line)
        if not row:
            raise FabricError("iblinkinfo says something that isn't understood: %s" % line.strip()[:160])
        up = UP.match(row.group("state"))
        if not up and not re.match(r"^\s*(Down|Initialize|Armed|Sleep)\b", row.group("state")):
            raise FabricError("iblinkinfo shows a link state that isn't understood: %s" % row.group("state").strip())
        links["%s:%s" % (row.group("guid"), row.group("port"))] = {
            "name": row.group("name"),
            "port": int(row.group("port")),
            "peer": row.group("peer"),
            "width": int(up.group("width")) if up else 0,
            "lane_gbps": float(up.group("lane")) if up else 0.0,
            "state": "/".join(up.group("logical", "physical")) if up else re.sub(r"\s+", "", row.group("state")),
        }
    if not links:
        raise FabricError("iblinkinfo shows no link at all")
    return links


def parse_errors(text):
    """`ibqueryerrors`: {"guid:port": {counter: value}} of the ports that it names; its summary must be there."""
    errors = {}
    if not re.search(r"^## Summary: [1-9]\d* nodes checked", text, re.M):
        raise FabricError("ibqueryerrors gives no summary: %s" % (" ".join(text.split())[:160] or "no output"))
    for line in text.splitlines():
        port = PORT_ERRORS.match(line)
        counters = {}
        if port and not COUNTER.sub("", port.group("counters")).strip():
            counters = {key: int(value) for key, value in COUNTER.findall(port.group("counters"))}
        if not counters and re.match(r"^\s+GUID\b", line):
            raise FabricError("ibqueryerrors says something that isn't understood: %s" % line.strip()[:160])
        if counters and port.group("port") != "ALL":
            errors["0x%016x:%s" % (int(port.group("guid"), 16), port.group("port"))] = counters
    return errors


def parse_managers(text):
    """`saquery SMIR`: [{"guid", "priority", "state"}], at least one. State 3 is the master."""
    fields = {key: re.findall(r"^\s+%s\.+(\S+)$" % key, text, re.M) for key in ("GUID", "Priority", "SMState")}
    if not fields["GUID"] or len({len(values) for values in fields.values()}) != 1:
        raise FabricError("saquery names no subnet manager: %s" % (" ".join(text.split())[:160] or "no output"))
    if not all(value.isdigit() for value in fields["Priority"] + fields["SMState"]):
        raise FabricError("saquery gives a subnet manager's priority or state that is no number")
    return [
        {"guid": guid, "priority": int(priority), "state": int(state)}
        for guid, priority, state in zip(fields["GUID"], fields["Priority"], fields["SMState"])
    ]


def judge(links, errors, managers, settings, seen):
    """(problems, warnings) of what was read, against the settings and what was seen before ({} at the first time)."""
    problems, warnings = [], []
    for _, link in sorted(links.items()):
        problems += link_problems(link, settings)
    for key, was in sorted(seen.get("links", {}).items()):
        if links.get(key, {"state": "Down"})["state"].split("/")[0] == "Down":
            lost = (was["name"], was["port"], was["peer"])
            problems.append("the link of %s port %s to %s was up and is not any more" % lost)
    if seen:
        problems += risen(links, errors, settings["limits"], seen.get("errors", {}))
    masters = [manager for manager in managers if manager["state"] == 3]
    if len(masters) != 1:
        problems.append("the fabric has %d master subnet managers" % len(masters))
    wanted = settings["subnet_managers"]
    if len(managers) > wanted:
        guids = ", ".join(manager["guid"] for manager in managers)
        counts = "%d subnet managers run, declared are %d" % (len(managers), wanted)
        problems.append("%s (%s): stop the others" % (counts, guids))
    elif len(managers) < wanted:
        warnings.append("%d of %d declared subnet managers run" % (len(managers), wanted))
    return problems, warnings


def place(link):
    """Where a link is, as sentences say it."""
    return "%s port %s" % (link["name"], link["port"])


def link_problems(link, settings):
    """What is wrong with a link that is not down: not brought up, too narrow or too slow."""
    width, lane, state = link["width"], link["lane_gbps"], link["state"]
    waiting = state.split("/")[0] in ("Initialize", "Armed", "Init")
    if waiting or (width and state != "Active/LinkUp"):
        return ["%s is %s: the subnet manager has not brought it up" % (place(link), state)]
    if width and width < settings["min_width"]:
        widths = "runs %dX, at least %dX is wanted" % (width, settings["min_width"])
        return ["%s %s: reseat or replace the cable" % (place(link), widths)]
    if width and lane < settings["min_lane_gbps"]:
        return ["%s runs %g Gb/s a lane, at least %g is wanted" % (place(link), lane, settings["min_lane_gbps"])]
    return []


def risen(links, errors, limits, before):
    """A sentence for each counter that rose by more than its limit; one that is lower than before was cleared."""
    problems = []
    for key, counters in sorted(errors.items()):
        for counter, limit in sorted(limits.items()):
            then, now = before.get(key, {}).get(counter, 0), counters.get(counter, 0)
            more = now - then if now >= then else now
            if more > limit:
                where = place(links[key]) if key in links else key
                told = (counter, where, more, limit)
                problems.append("%s of %s rose by %d since the last look, allowed is %d" % told)
    return problems


def samples(links, errors, managers, problems):
    """Lines of the node exporter's text file."""
    up = [link for link in links.values() if link["width"]]
    out = ["# TYPE ironburst_fabric_ports_up gauge", "ironburst_fabric_ports_up %d" % len(up)]
    out += ["# TYPE ironburst_fabric_subnet_managers gauge", "ironburst_fabric_subnet_managers %d" % len(managers)]
    out += ["# TYPE ironburst_fabric_problems gauge", "ironburst_fabric_problems %d" % len(problems)]
    out += ["# TYPE ironburst_fabric_time_seconds gauge", "ironburst_fabric_time_seconds %d" % time.time()]
    out += ["# TYPE ironburst_fabric_errors_total counter"]
    for key, counters in sorted(errors.items()):
        guid, port = key.split(":")
        for counter in sorted(counters):
            labels = 'guid="%s",port="%s",counter="%s"' % (guid, port, counter)
            out.append("ironburst_fabric_errors_total{%s} %d" % (labels, counters[counter]))
    return out


# --- the machine


def ask(argv):
    """Output of a tool. Raises FabricError if it is missing, hangs, or fails without a word."""
    pipe = subprocess.PIPE
    options = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "universal_newlines": True}
    try:
        done = subprocess.run(argv, timeout=TIMEOUT, **options)
    except OSError as error:
        raise FabricError("%s can't be run: %s" % (argv[0], error.strerror)) from None
    except subprocess.TimeoutExpired:
        raise FabricError("%s did not answer in %d s" % (argv[0], TIMEOUT)) from None
    if done.returncode and not done.stdout.strip():
        why = " ".join(done.stderr.split()) or "exit status %d" % done.returncode
        raise FabricError("%s failed: %s" % (" ".join(argv), why))
    return done.stdout


def look():
    """(links, errors, managers) as the fabric says now."""
    errors = ["ibqueryerrors", "--threshold-file", os.devnull]  # no thresholds of its own: every error is told
    return (
        parse_links(ask(["iblinkinfo", "--line"])),
        parse_errors(ask(errors)),
        parse_managers(ask(["saquery", "SMIR"])),
    )


def write(path, text):
    """Replace a file at once, readable for all."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    new = os.path.join(os.path.dirname(path), ".%s.new" % os.path.basename(path))
    with open(new, "w") as file:
        file.write(text)
    os.chmod(new, 0o644)
    os.replace(new, path)


def run(arguments):
    """One look, kept for the next: what main() prints, as a dict."""
    with open(arguments.settings) as file:
        settings = json.load(file)
    seen = {}
    if os.path.exists(arguments.state) and arguments.verb == "check":
        with open(arguments.state) as file:
            seen = json.load(file)
    until = time.monotonic() + arguments.settle
    while True:
        try:
            links, errors, managers = look()
            problems, warnings = judge(links, errors, managers, settings, seen)
            if not problems or time.monotonic() > until:
                break
        except FabricError:
            if time.monotonic() > until:
                raise
        time.sleep(PAUSE)
    known = dict(seen.get("links", {}), **{key: link for key, link in links.items() if link["width"]})
    write(arguments.state, json.dumps({"links": known, "errors": errors}, sort_keys=True))
    if os.path.isdir(settings["metrics"]):
        text = "\n".join(samples(links, errors, managers, problems)) + "\n"
        write(os.path.join(settings["metrics"], "ironburst-fabric.prom"), text)
    up = sum(1 for link in links.values() if link["width"])
    return {"problems": problems, "warnings": warnings, "ports_up": up, "subnet_managers": managers}


def main():
    """The exit status."""
    parser = argparse.ArgumentParser(description="the InfiniBand fabric's links, error counters and subnet managers")
    parser.add_argument("verb", choices=["check", "accept"])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--settle", type=float, default=0, metavar="SECONDS", help="time that problems get to go away")
    parser.add_argument("--settings", default="/etc/ironburst/fabric.json")
    parser.add_argument("--state", default=STATE)
    arguments = parser.parse_args()
    try:
        said = run(arguments)
    except (FabricError, OSError, ValueError, KeyError) as error:
        print("fabric: %s" % error, file=sys.stderr)
        return 2
    if arguments.json:
        print(json.dumps(said))
    else:
        print("\n".join(said["problems"] + said["warnings"] or ["%d ports up, no problem" % said["ports_up"]]))
    return 1 if said["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
