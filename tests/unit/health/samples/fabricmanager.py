"""What systemctl, journalctl and its log say of the fabric manager."""

from __future__ import annotations

CONFIGURED = (
    "Successfully configured all the available NVSwitches to route GPU NVLink traffic. NVLink Peer-to-Peer support "
    "will be enabled once the GPUs are successfully registered with the NVLink fabric."
)
COMMAND = "/usr/bin/nv-fabricmanager -c /usr/share/nvidia/nvswitch/fabricmanager.cfg"
STATUS = """\
● nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; {preset}: enabled)
     Active: active (running) since Sat 2026-11-21 08:02:15 UTC; 1h 12min ago
    Process: 2114 ExecStart={start} (code=exited, status=0/SUCCESS)
   Main PID: 2116 (nv-fabricmanage)
      Tasks: 18 (limit: 629145)
     Memory: 20.2M
        CPU: 1.861s
     CGroup: /system.slice/nvidia-fabricmanager.service
             └─2116 {command}

"""


def fm_status(modern: bool) -> str:
    preset, start = "vendor preset", COMMAND
    if modern:
        preset, start = "preset", "/usr/bin/nvidia-fabricmanager-start.sh --mode start"
    return STATUS.format(preset=preset, start=start, command=COMMAND) + fm_journal(modern)


def fm_journal(modern: bool) -> str:
    unit = "nvidia-fabricmanager.service - NVIDIA fabric manager service" if modern else "NVIDIA fabric manager service"
    script, manager = "nvidia-fabricmanager-start.sh[2114]", "nv-fabricmanager[2116]"
    told = [
        ("systemd[1]", f"Starting {unit}..."),
        (script, "Detected Pre-NVL5 system"),
        (manager, "Connected to 1 node."),
        (manager, CONFIGURED),
        (script, 'Started "Nvidia Fabric Manager"'),
        ("systemd[1]", f"Started {unit}."),
    ]
    return "".join(
        f"Nov 21 08:02:{9 + n:02d} node01 {who}: {text}\n"
        for n, (who, text) in enumerate(told)
        if modern or who != script
    )


def fm_log() -> str:
    told = [
        "Fabric Manager version is : 580.95.05",
        CONFIGURED,
        "multicast group 0 is allocated.",
        "successfully setup multicast team for request id 8331980469606044544.",
    ]
    return "".join(f"[Nov 21 2026 08:02:{9 + n:02d}] [INFO] [tid {1800 + n}] {text}\n" for n, text in enumerate(told))
