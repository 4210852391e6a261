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
UNASKED = re.compile(r"^##\s+(\d+) PMA query failures", re.M)
HEADER = re.compile(r'^Data Counters for 0x[0-9a-f]+ "(.*)"$')
# Descriptions: of a switch with a manager of its own `MF0;leaf1:MQM8700/U1`, of a card `dgx01 mlx5_0` or `dgx01 HCA-1`
SWITCH = re.compile(r"^MF0;([^:;]+)[:;]")
CARD = re.compile(r"^(\S+) (HCA-\d+|[a-z]\w*\d)$")
# Gb/s of a lane, as iblinkinfo says, and usable
NOMINAL = {14.0625: 14, 10.3125: 10, 25.78125: 25, 53.125: 50, 106.25: 100, 212.5: 200}
# InfiniBand's counters stop at their highest value
FULL = {
    "SymbolErrorCounter": 65535,
    "LinkErrorRecoveryCounter": 255,
    "LinkDownedCounter": 255,
    "PortRcvErrors": 65535,
    "PortRcvRemotePhysicalErrors": 65535,
    "PortXmitDiscards": 65535,
    "LocalLinkIntegrityErrors": 15,
    "ExcessiveBufferOverrunErrors": 15,
    "VL15Dropped": 65535,
    "PortXmitWait": 4294967295,
}
WORD = 4  # bytes, that PortXmitData and PortRcvData count


class FabricError(Exception):
    """Nothing can be said; the text is one sentence."""


# --- reading: pure


def parse_links(text):
    """`iblinkinfo --line`: {"guid:port": {name, port, peer, peer_port, peer_key, width, lane_gbps, state}} of all
    ports; width 0 where a port is down. peer_key: the other end's key; empty: nothing is there.
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
            "peer_port": int(row.group("peer_port") or 0),
            "peer_key": "%s:%s" % (row.group("peer_guid"), row.group("peer_port")) if row.group("peer_guid") else "",
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


def parse_traffic(text, links):
    """`ibqueryerrors --counters`: {"guid:port": {counter: value}}. It prints the GUID of the node, which need not be
    the port's as in `links`: then the name above it says whose port it is.
    """
    by_name, found, name = {}, {}, ""
    for key, link in links.items():
        by_name.setdefault((link["name"], link["port"]), []).append(key)
    for line in text.splitlines():
        header, port = HEADER.match(line), PORT_ERRORS.match(line)
        name = header.group(1).strip() if header else name
        if not port or port.group("port") == "ALL":
            continue
        key = "0x%016x:%s" % (int(port.group("guid"), 16), port.group("port"))
        its = [key] if key in links else by_name.get((name, int(port.group("port"))), [])
        if len(its) == 1:
            found[its[0]] = {word: int(value) for word, value in COUNTER.findall(port.group("counters"))}
    return found


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
    names = Names(settings.get("names", {}), settings.get("cables", []))
    elsewhere = names.elsewhere(links)
    links, before = names.called(links), names.called(seen.get("links", {}))
    for _, link in sorted(links.items()):
        problems += link_problems(link, settings)
    for key, was in sorted(before.items()):
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
    warnings += full(errors, links)
    return problems, warnings + elsewhere


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


# --- names: pure


def whose(name, guid, names):
    """(node, device) of a node description; device: of a card, else empty. `names`: {guid: name}, declared, for
    switches that have none.
    """
    if guid in names:
        return names[guid], ""
    switch, card = SWITCH.match(name), CARD.match(name)
    return (card.group(1), card.group(2)) if card else (switch.group(1) if switch else name, "")


class Names:
    """Who is at both ends of a link, as the site calls them. `cables`: [{"ends": ["leaf1/1", "dgx01/ib1"], "gbps",
    "what"}], as declared.
    """

    def __init__(self, names, cables):
        self.names, self.cables, self.by_end, self.by_pair = names, cables, {}, {}
        for cable in cables:
            devices = [end.partition("/")[0] for end in cable["ends"]]
            for end in cable["ends"]:
                self.by_end[end] = cable
            self.by_pair.setdefault(frozenset(devices), []).append(cable)
        self.devices = {end.partition("/")[0] for cable in cables for end in cable["ends"]}

    def end(self, name, guid, port):
        """(node, port): leaf1 and 7, or dgx01 and mlx5_0/1."""
        node, device = whose(name, guid, self.names)
        short = node.partition(".")[0]
        node = short if node not in self.devices and short in self.devices else node
        return node, "%s/%s" % (device, port) if device else str(port)

    def cable(self, node, port, peer, peer_port):
        """The declared cable between two ends; None: none is. Ports of switches have the numbers that are declared;
        cards haven't, so there the only cable between the two counts.
        """
        for end in ("%s/%s" % (node, port), "%s/%s" % (peer, peer_port)):
            its = self.by_end.get(end)
            if its and {each.partition("/")[0] for each in its["ends"]} == {node, peer}:
                return its
        between = self.by_pair.get(frozenset((node, peer)), [])
        return between[0] if len(between) == 1 else None

    def of(self, key, link):
        """(labels, declared cable or None) of a link, seen from its port `key`."""
        guid = key.partition(":")[0]
        node, port = self.end(link["name"], guid, link["port"])
        peer, peer_port = "", ""
        if link["peer"]:
            # a state file of before has no port of the other end
            at = link.get("peer_port", 0)
            peer, peer_port = self.end(link["peer"], link.get("peer_key", "").partition(":")[0], at)
        its = self.cable(node, port, peer, peer_port) if peer else None
        ends = its["ends"] if its else sorted("%s/%s" % end for end in ((node, port), (peer, peer_port)))
        text = "%s - %s%s" % (ends[0], ends[1], ", " + its["what"] if its else "")
        return {
            "guid": guid,
            "node": node,
            "port": port,
            "peer": peer,
            "peer_port": peer_port,
            "cable": text if peer else "",
        }, its

    def called(self, links):
        """The links with the site's names in place of descriptions."""
        found = {key: (link, self.of(key, link)[0]) for key, link in links.items()}
        return {
            key: dict(link, name=its["node"], port=its["port"], peer=its["peer"]) for key, (link, its) in found.items()
        }

    def elsewhere(self, links):
        """Sentences about links that don't end where their cable is declared to."""
        out = []
        for key, link in sorted(links.items()):
            labels, its = self.of(key, link)
            declared = self.by_end.get("%s/%s" % (labels["node"], labels["port"]))
            if link["width"] and declared and not its and labels["peer"] in self.devices:
                other = [end for end in declared["ends"] if end.partition("/")[0] != labels["node"]]
                where = (labels["node"], labels["port"], labels["peer"], labels["peer_port"], " ".join(other))
                out.append("%s port %s goes to %s port %s, declared is %s" % where)
        return out


def full(errors, links):
    """Sentences about counters that stand at their highest value: from there on nothing is seen."""
    return [
        "%s of %s is full at %d and counts no more: clear it with perfquery -R" % (counter, where, value)
        for key, counters in sorted(errors.items())
        for where in [place(links[key]) if key in links else key]
        for counter, value in sorted(counters.items())
        if value == FULL.get(counter)
    ]


# --- metrics: pure


def rate_bytes(width, lane):
    """Usable bytes a second of a link."""
    return width * NOMINAL.get(lane, lane) * 1e9 / 8


def line(name, labels, value):
    """A sample. Node descriptions are free text."""
    quoted = [(key, str(labels[key]).replace("\\", "\\\\").replace('"', '\\"')) for key in sorted(labels)]
    return "%s{%s} %s" % (name, ",".join('%s="%s"' % each for each in quoted), "%.17g" % value)


def link_samples(links, seen, names, settings):
    """{metric: lines} of the ports that are up, or were once."""
    out = {}

    def add(name, labels, value):
        out.setdefault(name, []).append(line("ironburst_fabric_" + name, labels, value))

    for key, link in sorted(links.items()):
        known = link if link["width"] else seen.get(key)
        if not known:
            continue
        labels, its = names.of(key, known)
        add("link_up", labels, int(link["state"] == "Active/LinkUp"))
        declared = its["gbps"] * 1e9 / 8 if its else rate_bytes(settings["min_width"], settings["min_lane_gbps"])
        if link["width"]:
            add("link_width_lanes", labels, link["width"])
            add("link_rate_bytes_per_second", labels, rate_bytes(link["width"], link["lane_gbps"]))
            if declared:
                add("link_declared_rate_bytes_per_second", labels, declared)
    return out


def counter_samples(links, errors, traffic, names, judged):
    """{metric: lines}. `links`: of ports that are down as they were; `judged`: counters that are there also where they
    are 0, so that their first rise is seen; None: not every port was asked, so nobody knows what is 0.
    """
    out = {}
    for key in sorted(set(errors) | set(links)):
        link, counters = links.get(key), dict(errors.get(key, {}))
        if not counters and not (link and link["name"] and link["peer"]):
            continue  # nothing was ever plugged in
        guid, _, port = key.partition(":")
        labels = names.of(key, link)[0] if link else {"guid": guid, "port": port}
        if link and judged is not None:
            counters = dict(dict.fromkeys(judged, 0), **counters)
        wait = counters.pop("PortXmitWait", None)
        for counter in sorted(counters):
            sample = line("ironburst_fabric_errors_total", dict(labels, counter=counter), counters[counter])
            out.setdefault("errors_total", []).append(sample)
        sent, received = (traffic.get(key, {}).get(word) for word in ("PortXmitData", "PortRcvData"))
        for name, value, unit in (
            ("transmit_wait_ticks_total", wait, 1),
            ("transmitted_bytes_total", sent, WORD),
            ("received_bytes_total", received, WORD),
        ):
            if value is not None:
                out.setdefault(name, []).append(line("ironburst_fabric_" + name, labels, value * unit))
    return out


HELP = (
    ("ports_up", "gauge", "Ports with a link"),
    ("subnet_managers", "gauge", "Subnet managers that run"),
    ("problems", "gauge", "What ironburst-fabric check complains about"),
    ("time_seconds", "gauge", "When the fabric was looked at"),
    ("link_up", "gauge", "Whether a link that was up once is active"),
    ("link_width_lanes", "gauge", "Lanes of a link"),
    ("link_rate_bytes_per_second", "gauge", "What a link can carry now"),
    ("link_declared_rate_bytes_per_second", "gauge", "What its cable is declared for"),
    ("errors_total", "counter", "A port's error counters by InfiniBand's names"),
    ("transmit_wait_ticks_total", "counter", "Ticks in which data waited; their length is the device's own"),
    ("transmitted_bytes_total", "counter", "Bytes sent, of PortXmitData's words of four"),
    ("received_bytes_total", "counter", "Bytes received, of PortRcvData's words of four"),
)


def samples(looked, problems, settings, seen):
    """Lines of the node exporter's text file. `looked`: look(); `seen`: links that were up once."""
    links, errors, managers, traffic, unasked = looked
    names = Names(settings.get("names", {}), settings.get("cables", []))
    up = [link for link in links.values() if link["width"]]
    counts = (("ports_up", len(up)), ("subnet_managers", len(managers)), ("problems", len(problems)))
    found = {name: ["ironburst_fabric_%s %d" % (name, value)] for name, value in counts}
    found["time_seconds"] = ["ironburst_fabric_time_seconds %d" % time.time()]
    found.update(link_samples(links, seen, names, settings))
    ends = {key: link if link["width"] else seen.get(key, link) for key, link in links.items()}
    found.update(counter_samples(ends, errors, traffic, names, None if unasked else settings["limits"]))
    out = []
    for name, kind, told in HELP:
        if name in found:
            full_name = "ironburst_fabric_" + name
            out += ["# HELP %s %s" % (full_name, told), "# TYPE %s %s" % (full_name, kind)] + found[name]
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


def look(with_traffic=False):
    """(links, errors, managers, traffic, number of ports that gave no counters) as the fabric says now."""
    links = parse_links(ask(["iblinkinfo", "--line"]))
    said = ask(["ibqueryerrors", "--threshold-file", os.devnull])  # no thresholds of its own: every error is told
    unasked = UNASKED.search(said)
    return (
        links,
        parse_errors(said),
        parse_managers(ask(["saquery", "SMIR"])),
        parse_traffic(ask(["ibqueryerrors", "--counters"]), links) if with_traffic else {},
        int(unasked.group(1)) if unasked else 0,
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
            looked = look(os.path.isdir(settings["metrics"]))
            links, errors, managers = looked[:3]
            problems, warnings = judge(links, errors, managers, settings, seen)
            if looked[4]:
                warnings.append("%d questions for counters had no answer: those ports' errors aren't known" % looked[4])
            if not problems or time.monotonic() > until:
                break
        except FabricError:
            if time.monotonic() > until:
                raise
        time.sleep(PAUSE)
    known = dict(seen.get("links", {}), **{key: link for key, link in links.items() if link["width"]})
    write(arguments.state, json.dumps({"links": known, "errors": errors}, sort_keys=True))
    if os.path.isdir(settings["metrics"]):
        text = "\n".join(samples(looked, problems, settings, known)) + "\n"
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
