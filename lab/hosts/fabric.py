"""A simulated InfiniBand fabric: ibsim on the head, one HCA a bare-metal host, two leaves and a spine. OpenSM and the
tools are real.

Simulator and subnet manager stand for the fabric's switches and are part of the lab's base image; they run on the head,
so ports are Active while it is on. `host_files` are put on each bare-metal disk at every start: the units on the head,
and on every host wrappers in /usr/local/sbin that let Debian's tools (installed by whoever manages the host) talk to
the simulator.
"""

from collections.abc import Mapping

from lab.hosts.rootfs import SUBNET_MANAGER_HOME

TOOLS = [
    "ibstat",
    "ibstatus",
    "ibnetdiscover",
    "iblinkinfo",
    "ibhosts",
    "ibswitches",
    "perfquery",
    "smpquery",
    "saquery",
    "ibqueryerrors",
    "ibportstate",
    "sminfo",
    "ibping",
    "ibroute",
    "ibtracert",
]
CLIENT = "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so"
COMMANDS = "/run/lab-ibsim.commands"
HOME = "/run/lab-fabric"  # the client library makes a folder of its own where it runs


def topology(hosts: list[str]) -> str:
    """ibsim's file: every link written at both ends; half of the hosts at each leaf, two uplinks a leaf."""
    half = -(-len(hosts) // 2)
    leaves = {"LEAF1": hosts[:half], "LEAF2": hosts[half:]}
    lines = []
    for number, (leaf, members) in enumerate(leaves.items()):
        lines.append(f'Switch {half + 2} "{leaf}"')
        lines += [f'[{port}] "{host}"[1]' for port, host in enumerate(members, 1)]
        lines += [*(f'[{half + up}] "SPINE1"[{2 * number + up}]' for up in (1, 2)), ""]
    lines.append('Switch 4 "SPINE1"')
    for number, leaf in enumerate(leaves):
        lines += [f'[{2 * number + up}] "{leaf}"[{half + up}]' for up in (1, 2)]
    lines.append("")
    for leaf, members in leaves.items():
        for port, host in enumerate(members, 1):
            lines += [f'Ca 1 "{host}"', f'[1] "{leaf}"[{port}]', ""]
    return "\n".join(lines)


def _environment(name: str, server: str) -> dict[str, str]:
    return {"LD_PRELOAD": CLIENT, "SIM_HOST": name, "IBSIM_SERVER_NAME": server, "IBSIM_SERVER_PORT": "7070"}


def host_files(name: str, hosts: Mapping[str, str], head: str = "head") -> dict[str, str]:
    """{path: text} for the disk of bare-metal host `name` of the fabric `hosts` ({name: address})."""
    environment = _environment(name, hosts[head])
    settings = " ".join(f"{key}={value}" for key, value in environment.items())
    wrapper = "\n".join(
        [
            "#!/bin/sh",
            "# simulated fabric (the lab's ibsim), real tool",
            f"mkdir -p {HOME}; cd {HOME}",
            f'exec env {settings} /usr/sbin/@tool@ "$@"',
            "",
        ]
    )
    files = {f"usr/local/sbin/{tool}": wrapper.replace("@tool@", tool) for tool in TOOLS}
    # where the product runs a subnet manager, it too sees the simulator instead of a kernel's InfiniBand
    files["etc/systemd/system/ironburst-opensm.service.d/lab.conf"] = (
        "[Service]\nWorkingDirectory=/tmp\nExecStartPre=-/bin/systemctl stop lab-opensm.service\n"
        + "".join(f"Environment={key}={value}\n" for key, value in environment.items())
    )
    if name == head:
        files["etc/lab/fabric.net"] = topology(sorted(hosts, key=lambda host: (host != head, host)))
        files |= {f"etc/systemd/system/{unit}": text for unit, text in _units(environment).items()}
        for unit in _units(environment):
            files[f"etc/systemd/system/multi-user.target.wants/{unit}"] = f"-> ../{unit}"
    return files


def _units(environment: Mapping[str, str]) -> dict[str, str]:
    """The two units on the head. A FIFO opened for reading and writing keeps the simulator's input open, and takes
    commands.
    """
    home = SUBNET_MANAGER_HOME
    settings = {**environment, "LD_LIBRARY_PATH": f"{home}/usr/lib/x86_64-linux-gnu"}
    restart = "Restart=on-failure\nRestartSec=1\n"
    simulator = (
        "[Unit]\nDescription=InfiniBand fabric (simulated by the lab)\n[Service]\n"
        f"ExecStartPre=/bin/sh -c 'test -p {COMMANDS} || mkfifo -m600 {COMMANDS}'\n"
        f"ExecStart=/bin/sh -c 'exec /usr/bin/ibsim -r -s /etc/lab/fabric.net <>{COMMANDS}'\n"
        "ExecStartPost=/bin/sh -c 'until ss -Hlnu sport = :7070 | grep -q .; do sleep 0.05; done'\nTimeoutStartSec=10\n"
    )
    manager = (
        "[Unit]\nDescription=Subnet manager of the simulated fabric (real opensm)\nRequires=lab-ibsim.service\n"
        "After=lab-ibsim.service\n# stands in only until the product's own is there\n"
        "ConditionPathExists=!/etc/systemd/system/ironburst-opensm.service\n[Service]\nWorkingDirectory=/tmp\n"
        + "".join(f"Environment={key}={value}\n" for key, value in settings.items())
        + f"ExecStart={home}/usr/sbin/opensm -f /var/log/opensm.log\n"
    )
    return {"lab-ibsim.service": simulator + restart, "lab-opensm.service": manager + restart}
