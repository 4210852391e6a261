"""The two small programs on an install medium: what is asked before the disk is written, and what is left behind. Pure.

The question is asked by the installer itself, on the machine, right before it writes. So nothing that a BMC, a network,
a record or a person has mixed up can let it write over another machine's disk, or over an installation that is done.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass

ALREADY, REFUSED = 10, 11
NOTE = "ironburst/install.json"
"""where the note of an installation lies in the EFI system partition; in the host it is /etc/ironburst/install.json"""

_GUARD = r"""
# May this disk be written? Exit code 0, and its path on stdout: yes; 10: it is installed already; 11: no, and why.
sys=${IRONBURST_SYS:-/sys} dev=${IRONBURST_DEV:-/dev}
refuse() { echo "ironburst: $node is not installed: $1" >&2; exit 11; }

have=$(cat "$sys/class/dmi/id/product_serial" 2>/dev/null | tr -d ' ')
[ "$have" = "$serial" ] || refuse "the serial number of this machine is '$have', declared is '$serial'"

target=
for link in "$dev"/disk/by-id/*; do
    case ${link##*/} in
    *-part[0-9]*) continue ;;
    *_"$disk" | *_"$disk"_[0-9] | wwn-"$disk" | nvme-"$disk" | scsi-"$disk" | virtio-"$disk") ;;
    *) continue ;;
    esac
    found=$(readlink -f "$link")
    [ -z "$target" ] || [ "$target" = "$found" ] || refuse "more than one of its disks is '$disk'"
    target=$found
done
[ -n "$target" ] || refuse "it has no disk '$disk'"

note= look=$(mktemp -d)
case $target in *[0-9]) infix=p ;; *) infix= ;; esac
modprobe vfat 2>/dev/null
for part in "$target$infix"[0-9]*; do
    mount -t vfat -o ro "$part" "$look" 2>/dev/null || continue
    [ ! -f "$look/ironburst/install.json" ] || note=$(cat "$look/ironburst/install.json")
    umount "$look"
done
case $note in
'') ;;
*"\"node\": \"$node\", \"mark\": \"$mark\""*) echo "ironburst: $target has $note" >&2; exit 10 ;;
*"\"node\": \"$node\", "*) ;; # an older installation of this node, which is to go
*) refuse "its disk '$disk' is another node's: $note" ;;
esac
"""

_FORGET = r"""
# It may: so it forgets what it was part of (software RAID, LVM). Else the installer stands and asks, or clears the
# other disks of that, too. Here nothing but this disk is written.
block=$sys/class/block name=${target##*/}
apart() ( # what a live system has made of it, from the top
    for above in "$block/$1"/holders/* "$block/$1/$1"*/holders/*; do
        [ -e "$above" ] || continue
        above=${above##*/}
        apart "$above" || exit 1
        case $above in
        md*) mdadm --stop "$dev/$above" ;;
        *) dmsetup remove "$(cat "$block/$above/dm/name")" ;;
        esac >/dev/null || { echo "$above"; exit 1; }
    done
)
zero() { # the device $1, from its sector $2 on: not truncated, for tests have files
    dd if=/dev/zero bs=512 seek="$2" count="$3" 1<>"$dev/$1" 2>/dev/null || refuse "its disk '$disk' can't be written"
}
[ -e "$block/$name/size" ] || refuse "its kernel doesn't say how large its disk '$disk' is"
held=$(apart "$name") || refuse "its disk '$disk' is in use: $held can't be stopped"
for each in "$block/$name/$name"* "$block/$name"; do
    [ -e "$each/size" ] || continue
    size=$(cat "$each/size") ends=2048 # 1 MiB: old RAID, ZFS and makers' own have theirs at the end
    [ "$size" -ge "$ends" ] || ends=$size
    zero "${each##*/}" 0 "$ends"
    zero "${each##*/}" $((size - ends)) "$ends"
done
blockdev --rereadpt "$target" 2>/dev/null
udevadm settle 2>/dev/null
echo "$target"
"""

_FINISH = r"""
# The installation is complete: say so on the disk, in the EFI system partition last, for the guard reads it there.
root=$1
mkdir -p "$root/etc/ironburst" "$root/boot/efi/ironburst"
printf '%s\n' "$note" > "$root/etc/ironburst/install.json"
printf '%s\n' "$note" > "$root/boot/efi/ironburst/install.new"
sync
mv "$root/boot/efi/ironburst/install.new" "$root/boot/efi/ironburst/install.json"
sync
"""


@dataclass(frozen=True)
class Target:
    """What may be written, under which mark: the node, the serial number of the machine, and its disk's serial number
    or WWN.
    """

    node: str
    mark: str
    serial: str
    disk: str


def note(target: Target) -> str:
    """What an installed disk says of itself: JSON in one line, the node first, then the mark."""
    return json.dumps({"node": target.node, "mark": target.mark, "serial": target.serial, "disk": target.disk})


def mark_in(text: str, node: str) -> str | None:
    """The mark of a note; None: it is none of this node's."""
    try:
        said = json.loads(text)
    except ValueError:
        return None
    if not isinstance(said, dict) or said.get("node") != node or not isinstance(said.get("mark"), str):
        return None
    return str(said["mark"])


def guard(target: Target) -> str:
    """The program that is run before the disk is written, for any POSIX shell: it asks, and detaches the disk."""
    given = {"node": target.node, "mark": target.mark, "serial": "".join(target.serial.split()), "disk": target.disk}
    return "#!/bin/sh\n" + "\n".join(f"{name}={shlex.quote(text)}" for name, text in given.items()) + _GUARD + _FORGET


def finish(target: Target) -> str:
    """The program that is run last, with the folder where the new system is mounted."""
    return f"#!/bin/sh\nset -e\nnote={shlex.quote(note(target))}" + _FINISH


def guarded(where: str, allowed: str) -> str:
    """Shell lines that run the guard of the file `where`; with leave they run `allowed`, in which $disk is the disk's
    path. An installed machine starts its disk; a refused one stands still, with the reason on its console.
    """
    return (
        f"disk=$(sh {where} 2>/tmp/ironburst.said);\n"
        f"case $? in\n0) {allowed} ;;\n{ALREADY}) reboot -f ;;\n"
        "*) while :; do cat /tmp/ironburst.said >/dev/console; sleep 60; done ;;\nesac\n"
    )
