"""Are the declared hosts one site: do they find, know and reach each other? Pure: what each host sees is its answer to
`host_probe`. Ports: docs of Slurm (network.shtml), DCGM and Fabric Manager; see the catalogue's README for sources.
"""

from __future__ import annotations

import hmac
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ironburst.doctor import backups, second_head, topology
from ironburst.doctor.checks import CheckResult, State, run
from ironburst.document import ClusterDocument, Host

SLURMCTLD, SLURMD, SSH = 6817, 6818, 22
# They ask for no password, so they listen on loopback only
LOCAL = {5555: "DCGM's nv-hostengine", 6666: "Fabric Manager"}
MUNGE = "/etc/munge/munge.key"
SKEW_S = 5.0
"""munge takes messages of 300 s, Kerberos too; accounting and file times are wrong long before"""
TUNNEL_MSS = {"vpn": 1406, "transit-gateway": 8460}
"""bytes of data that a packet through AWS's Site-to-Site VPN (MTU 1446) or a transit gateway (8500) carries at most"""
CONVERGE = "run `ironburst converge` on it"


@dataclass(frozen=True)
class HostAnswer:
    """A host's answer, or one sentence why there is none. When it was asked and answered, by the asker's clock: seconds
    since 1970.
    """

    answer: Mapping[str, Any] | None
    error: str
    asked_s: float
    answered_s: float


Answers = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Hosts:
    """What is compared. `munge_digest`: of the secret, with the questions' salt; None: it couldn't be read.
    `links`: kind of the link to AWS, by hall.
    """

    document: ClusterDocument
    said: Mapping[str, HostAnswer]
    munge_digest: str | None
    links: Mapping[str, str]
    now_s: float

    @property
    def answers(self) -> Answers:
        """Of those that gave one."""
        return {name: said.answer for name, said in self.said.items() if said.answer is not None}

    @property
    def head(self) -> Host | None:
        """That runs slurmctld and is managed; None: there is none."""
        return head_of(self.document)


def head_of(document: ClusterDocument) -> Host | None:
    """The managed host with slurmctld."""
    slurm = document.scheduler_of_kind("slurm")
    return next((host for host in document.managed_hosts if slurm and host.name == slurm.head), None)


def people(document: ClusterDocument) -> list[str]:
    """Users who are one person on all hosts: the declared ones, and those of the accounts."""
    declared = {person.name for person in document.users.people}
    return sorted(declared.union(*(account.users for account in document.users.accounts)))


def digest(secret: bytes, salt: str) -> str:
    """As the probe gives it."""
    return hmac.new(bytes.fromhex(salt), secret, sha256).hexdigest()


def questions(document: ClusterDocument, salt: str) -> dict[str, dict[str, Any]]:
    """What each managed host is asked, for host_probe."""
    head = head_of(document)
    slurm = [host for host in document.managed_hosts if document.scheduler_of(host).kind == "slurm"]
    names = {host.name: host.address for host in document.managed_hosts}
    asked = {}
    for host in document.managed_hosts:
        scheduler = document.scheduler_of(host)
        question: dict[str, Any] = {"salt": salt, "names": names, "users": people(document), "disks": ["/"]}
        question |= {"commands": {}} | backups.question(scheduler, host)
        question["folders"] = [scheduler.shared_filesystem] if scheduler.shared_filesystem else []
        if host in slurm:
            question["munge"] = MUNGE
        if head and host == head:
            nodes = [other for other in slurm if other.role == "gpu"]
            far = [other for other in document.managed_hosts if other.kind != host.kind]
            ways = [[other.address, SLURMD] for other in nodes] + [[other.address, SSH] for other in far]
            question |= {"connect": ways, "disks": ["/", "/var"]}
            accounting = ["sacctmgr", "-n", "-P", "show", "cluster", "format=Cluster"]
            question["commands"] |= {"accounting": accounting, "topology": ["sha256sum", *topology.paths()]}
        elif head and host in slurm:
            question["connect"] = [[head.address, SLURMCTLD]]
        question |= second_head.question(scheduler, host)
        asked[host.name] = question
    return asked


def check(hosts: Hosts) -> Iterator[CheckResult]:
    """Each host, and all of them beside each other."""
    checks = (_reached, _names, _clocks, _users, _folders, _munge, _host_keys, _ports, _exposed, _packets, _disks)
    yield from run((*checks, _head, _backups, _second_head), hosts)


def _said(
    check: str, looked_at: str, wrong: Mapping[str, list[str]], fine: str, todo: str, state: State = "fail"
) -> CheckResult:
    """One finding of all hosts. `wrong`: what is seen, and the hosts where."""
    if not wrong:
        return CheckResult(check, looked_at, "ok", fine)
    seen = "; ".join(f"{_some(names)}: {what}" for what, names in sorted(wrong.items())[:3])
    more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    return CheckResult(check, looked_at, state, seen + more, todo)


def _some(names: Sequence[str]) -> str:
    names = list(dict.fromkeys(names))
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _reached(hosts: Hosts) -> Iterator[CheckResult]:
    wrong = defaultdict(list)
    for name, said in hosts.said.items():
        if said.answer is None:
            wrong[said.error].append(name)
    todo = "log in there by hand as Ansible does (user, key, host key, sudo), and mend what that says"
    if any("host key" in error.lower() for error in wrong):
        todo = "if the host was installed anew, `ssh-keygen -R HOST`; if not, find out who answers there"
    yield _said("hosts", "ssh", wrong, f"{len(hosts.said)} hosts answer", todo)


def _names(hosts: Hosts) -> Iterator[CheckResult]:
    forth, back = defaultdict(list), defaultdict(list)
    addresses = {host.name: host.address for host in hosts.document.managed_hosts}
    for asker, answer in hosts.answers.items():
        for name, found in answer["names"].items():
            own = name == asker and any(address.startswith("127.") for address in found or ())
            if found is None:
                forth["the resolver doesn't answer"].append(asker)
            elif addresses[name] not in found and not own:
                told = f"{name} is {', '.join(found)}" if found else f"{name} isn't known"
                forth[f"{told}, declared is {addresses[name]}"].append(asker)
        for name, address in addresses.items():
            called = answer["reverse"].get(address)
            if called is not None and name not in {each.partition(".")[0] for each in called}:
                back[f"{address} is {called[0] if called else 'nobody'}, declared is {name}"].append(asker)
    todo = CONVERGE if hosts.document.names == "hosts" else "mend the records of your DNS, or declare `names: hosts`"
    yield _said("names", "name to address", forth, "every host finds every other", todo)
    yield _said("names", "address to name", back, "every address has its host's name", todo, "warn")


def _clocks(hosts: Hosts) -> Iterator[CheckResult]:
    wrong, adrift = defaultdict(list), defaultdict(list)
    for name, answer in hosts.answers.items():
        said = hosts.said[name]
        ahead, behind = answer["clock"] - said.answered_s, said.asked_s - answer["clock"]
        if max(ahead, behind) > SKEW_S:
            way = "ahead" if ahead > behind else "behind"
            wrong[f"{max(ahead, behind):.0f} s or more {way} of this machine"].append(name)
        elif answer.get("synchronised") is False:
            adrift["systemd says that no time server is followed"].append(name)
    todo = "set up chrony or systemd-timesyncd there: munge refuses what is more than 300 s off"
    yield _said("clock", "time of day", wrong, f"none is more than {SKEW_S:g} s off", todo)
    yield _said("clock", "time server", adrift, "no host says that it follows none", todo, "warn")


def _users(hosts: Hosts) -> Iterator[CheckResult]:
    declared = {person.name: person for person in hosts.document.users.people}
    groups = hosts.document.users.groups
    for name in people(hosts.document):
        numbers: dict[str, list[str]] = defaultdict(list)
        for host, answer in hosts.answers.items():
            found = answer["users"].get(name)
            numbers["isn't known" if found is None else f"uid {found[0]}, gid {found[1]}"].append(host)
        person = declared.get(name)
        if person:
            wanted = f"uid {person.uid}, gid {groups.get(person.group, person.uid)}"
        else:
            wanted = max(
                (each for each in numbers if each != "isn't known"), key=lambda each: len(numbers[each]), default=""
            )
        wrong = {told: where for told, where in numbers.items() if told != wanted}
        todo = f"{CONVERGE}, or mend the directory: files on shared file systems belong to numbers"
        if wrong:
            told = f"declared is {wanted}" if person else f"elsewhere {wanted}" if wanted else "known nowhere"
            yield _said("users", name, {f"{each}; {told}": where for each, where in wrong.items()}, "", todo)
    if people(hosts.document):
        yield CheckResult(
            "users", "numbers", "ok", f"{len(people(hosts.document))} users looked at on {len(hosts.answers)} hosts"
        )


def _folders(hosts: Hosts) -> Iterator[CheckResult]:
    wrong, sources = defaultdict(list), defaultdict(list)
    for name, answer in hosts.answers.items():
        for path, mount in answer["folders"].items():
            if mount is None:
                wrong[f"nothing is mounted at {path}"].append(name)
            elif mount["writable"] is None:
                wrong[f"{path} ({mount['source']}) doesn't answer in 5 s"].append(name)
            elif not mount["writable"]:
                wrong[f"{path} ({mount['source']}) is mounted read-only"].append(name)
            else:
                sources[f"{path} is {mount['source']} ({mount['kind']})"].append(name)
    if not (wrong or sources):
        return
    todo = CONVERGE if hosts.document.filesystem else "mount it there: a job's files aren't where it looks for them"
    yield _said("files", "shared file system", wrong, f"mounted on {len(hosts.answers)} hosts", todo)
    if len(sources) > 1:
        yield _said(
            "files", "one source", sources, "", "mount the same everywhere, or a job finds other files there", "warn"
        )


def _munge(hosts: Hosts) -> Iterator[CheckResult]:
    keys: dict[str, list[str]] = defaultdict(list)
    wrong: dict[str, list[str]] = defaultdict(list)
    for name, answer in hosts.answers.items():
        if hosts.document.scheduler_of(hosts.document.host(name)).kind != "slurm":
            continue
        key = answer["munge"]
        if key is None:
            wrong[f"there is no {MUNGE}"].append(name)
            continue
        keys[key["digest"]].append(name)
        if key["mode"] not in ("400", "600"):
            wrong[f"{MUNGE} has mode {key['mode']}, munged takes 400 or 600"].append(name)
    if not (keys or wrong):
        return
    wanted = hosts.munge_digest or max(keys, key=lambda each: len(keys[each]), default="")
    for found, names in keys.items():
        if found != wanted:
            of = "the secret" if hosts.munge_digest else "most hosts"
            wrong[f"another key than {of} has"] += names
    todo = "run playbooks/munge_key.yml: it changes the key on all hosts together"
    yield _said("munge", "key", wrong, f"one key on {len(hosts.answers)} hosts", todo)
    if hosts.munge_digest is None:
        seen = "the secret can't be read here, so it wasn't compared: rented nodes join with it"
        yield CheckResult("munge", "secret", "unknown", seen, "ask as somebody who may read it")


def _host_keys(hosts: Hosts) -> Iterator[CheckResult]:
    owners: dict[str, list[str]] = defaultdict(list)
    for name, answer in hosts.answers.items():
        for key in answer["host_keys"]:
            owners[key].append(name)
    wrong = {"they have one host key": sorted({name for names in owners.values() if len(names) > 1 for name in names})}
    todo = "remove /etc/ssh/ssh_host_* on all but one of them and run `ssh-keygen -A`: they were copied with an image"
    yield _said("ssh", "host keys", {what: who for what, who in wrong.items() if who}, "each host has its own", todo)


def _ports(hosts: Hosts) -> Iterator[CheckResult]:
    called = {host.address: host.name for host in hosts.document.managed_hosts}
    services = {SLURMCTLD: "slurmctld", SLURMD: "slurmd"}
    wrong, tried = defaultdict(list), 0
    for name, answer in hosts.answers.items():
        for way, link in answer["connect"].items():
            address, _, port = way.rpartition(":")
            if int(port) in services:
                tried += 1
                if error := link.get("error"):
                    wrong[f"{services[int(port)]} of {called.get(address, address)} (port {port}): {error}"].append(
                        name
                    )
    if tried:
        todo = "no answer: open the port in the firewalls between them; refused: start the service there"
        yield _said("ports", "Slurm", wrong, f"{tried} ways are open", todo)


def _exposed(hosts: Hosts) -> Iterator[CheckResult]:
    wrong = defaultdict(list)
    for name, answer in hosts.answers.items():
        for address, port in answer["listens"]:
            if port in LOCAL and not (address.startswith("127.") or address == "::1"):
                wrong[f"{LOCAL[port]} listens on {address}:{port}"].append(name)
    yield _said(
        "ports",
        "local only",
        wrong,
        "DCGM and Fabric Manager take nobody from outside",
        "bind it to 127.0.0.1: it asks for no password",
    )


def _packets(hosts: Hosts) -> Iterator[CheckResult]:
    """Between home and cloud: a tunnel takes smaller packets than both of its ends send."""
    if hosts.head is None or not (answer := hosts.answers.get(hosts.head.name)):
        return
    kind = hosts.links.get(hosts.head.hall or "", "")
    most = TUNNEL_MSS.get(kind)
    called = {host.address: host.name for host in hosts.document.managed_hosts}
    wrong, tried = defaultdict(list), 0
    for way, link in answer["connect"].items():
        address, _, port = way.rpartition(":")
        if int(port) != SSH or most is None or "mss" not in link:
            continue
        tried += 1
        if link["mss"] > most:
            wrong[f"packets with {link['mss']} bytes of data, the {kind} takes {most}"].append(
                called.get(address, address)
            )
    if tried:
        todo = f"clamp the MSS to {most} on the hall's device: else large answers hang where ICMP is dropped"
        yield _said("link", "packet size", wrong, f"at most {most} bytes of data", todo, "warn")


def _disks(hosts: Hosts) -> Iterator[CheckResult]:
    full, soon = defaultdict(list), defaultdict(list)
    for name, answer in hosts.answers.items():
        for path, (free, whole) in answer["disks"].items():
            told = f"{path} has {free / 2**30:.1f} GiB free of {whole / 2**30:.0f}"
            if free < max(2**30, 0.03 * whole):
                full[told].append(name)
            elif free < 0.1 * whole:
                soon[told].append(name)
    todo = "make room: apt and dnf, slurmctld's state and the ledger need it"
    yield _said("disk", "room", full or soon, "every host has room", todo, "fail" if full else "warn")


def _head(hosts: Hosts) -> Iterator[CheckResult]:
    if (head := hosts.head) is None or not (answer := hosts.answers.get(head.name)):
        return
    lines = (line.split() for line in answer["commands"].get("topology", {"output": ""})["output"].splitlines())
    sums = {line[1]: line[0] for line in lines if len(line) == 2}
    kept = f"{CONVERGE}, which writes that one unless slurm_head_settings has a TopologyPlugin of yours"
    yield from topology.compared(hosts.document.topology, sums, kept)
    accounting = answer["commands"].get("accounting", {"status": None, "output": ""})
    if accounting["status"] == 0 and accounting["output"].strip():
        yield CheckResult("accounting", "slurmdbd", "ok", f"knows the cluster {accounting['output'].split()[0]}")
    else:
        seen = "it gives no answer" if accounting["status"] != 0 else "it knows no cluster"
        yield CheckResult(
            "accounting", "slurmdbd", "fail", seen, f"look at `journalctl -u slurmdbd -u mariadb` on {head.name}"
        )


def _backups(hosts: Hosts) -> Iterator[CheckResult]:
    for name, answer in hosts.answers.items():
        yield from backups.compared(name, answer, hosts.now_s)


def _second_head(hosts: Hosts) -> Iterator[CheckResult]:
    slurm = hosts.document.scheduler_of_kind("slurm")
    yield from second_head.compared(slurm, {name: answer.get("state") for name, answer in hosts.answers.items()})
