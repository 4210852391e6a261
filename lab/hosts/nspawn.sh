#!/bin/sh
# Supervises one host; runs inside the box. Holds the lock FOLDER/power while the host is on, so "on" ends with this process, however it ends.
# usage: nspawn.sh FOLDER NAME UUID CGROUP SHARED|- "CGROUP-ROOT..."
set -eu
folder=$1 name=$2 uuid=$3 cgroup=$4 shared=$5 roots=$6
exec 9> "$folder/power"
flock --nonblock 9 || { echo "$name is on already"; exit 1; }
echo on > "$folder/started"

touch "$folder/serial"                     # what the host writes to its serial port, as a cloud's console shows it

# systemd >= 256 refuses cgroup v1: give it v2, whatever the machine has
export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 SYSTEMD_NSPAWN_API_VFS_WRITABLE=network
bind="--bind=$shared:/shared"
[ "$shared" != - ] || bind=

status=133                                 # with --keep-unit nspawn ends with 133 when the host asks for a reboot
while [ "$status" = 133 ]; do
    status=0
    (   exec 9>&-
        # its own group in every tree, or all hosts would share one
        for root in $roots; do mkdir -p "$root/$cgroup"; sh -c 'echo $PPID' > "$root/$cgroup/cgroup.procs"; done
        sh -c 'echo $PPID' > "$folder/nspawn.pid"
        # keyrings and device programs: container runtimes of a host want them
        # $bind unquoted: one word or none (a lab's folder has no blanks, see check.py)
        exec systemd-nspawn --quiet --directory="$folder/mnt" --machine="$name" --uuid="$uuid" --register=no --keep-unit \
            --network-namespace-path="/run/netns/$name" --bind-ro="$folder/hw:/lab-hw" --bind="$folder/serial:/dev/ttyS0" $bind --link-journal=no --console=pipe \
            --capability=CAP_NET_ADMIN --system-call-filter="add_key keyctl bpf" --kill-signal=SIGRTMIN+4 --timezone=off --resolv-conf=off --boot
    ) || status=$?
    echo "nspawn of $name ended: $status"
done
for root in $roots; do                     # a host outlives an nspawn that was killed
    [ ! -f "$root/$cgroup/cgroup.kill" ] || echo 1 > "$root/$cgroup/cgroup.kill"
done
