#!/bin/sh
# Takes out of a disk what is one machine's own, before the disk becomes the image of many: keys, names, seeds, logs, the state of cloud-init
# (which then treats each new machine as new: it makes host keys and lets the declared key in). The last thing that is done on a build host:
# nobody can log in afterwards.
# usage: forget_host.sh [ROOT]     ROOT: where the disk is mounted; none: this machine's own
set -eu
root=${1-}

rm -rf "$root"/etc/ssh/ssh_host_* "$root"/etc/munge/munge.key "$root"/etc/ironburst/node.env "$root"/run/ironburst/gate.ok
rm -rf "$root"/etc/kubernetes/*kubelet.conf "$root"/etc/ironburst/cluster.json "$root"/var/lib/kubelet/pki
rm -rf "$root"/var/lib/systemd/random-seed "$root"/var/lib/systemd/credential.secret "$root"/var/lib/dbus/machine-id
rm -rf "$root"/etc/udev/rules.d/70-persistent-net.rules "$root"/etc/netplan/50-cloud-init.yaml
rm -rf "$root"/var/lib/dhcp/*.leases "$root"/var/lib/dhclient/*.leases "$root"/var/lib/NetworkManager/*.lease
for home in "$root"/root "$root"/home/*; do
    rm -rf "$home"/.ssh "$home"/.ansible "$home"/.bash_history "$home"/.cache
done
# what belongs to running services stays until they end
for folder in "$root"/tmp "$root"/var/tmp; do
    [ ! -d "$folder" ] || find "$folder" -mindepth 1 -maxdepth 1 ! -name "systemd-private-*" -exec rm -rf {} +
done
[ ! -d "$root"/var/lib/cloud ] || find "$root"/var/lib/cloud -mindepth 1 -maxdepth 1 ! -name seed -exec rm -rf {} +
for folder in "$root"/var/cache/apt/archives "$root"/var/cache/dnf; do
    [ ! -d "$folder" ] || find "$folder" -type f -name "*.[dr]?[bm]" -delete
done
rm -rf "$root"/var/log/journal/*
[ ! -d "$root"/var/log ] || find "$root"/var/log -type f -exec truncate --size=0 {} +
: > "$root"/etc/machine-id      # empty: systemd makes a new one at the next boot
