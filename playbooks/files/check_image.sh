#!/bin/sh
# What must not be on a disk that becomes the image of many: one line each, of path and reason. It comes after forget_host.sh, and finds what
# that doesn't know: what a base image, an earlier bake of another tool or a person left there. Prints nothing of the secrets themselves.
# usage: check_image.sh [ROOT]     ROOT: where the disk is mounted; none: this machine's own
set -u
root=${1-}

is() { # path reason
    [ ! -e "$1" ] || echo "${1#"$root"}: $2"
}
has() { # pattern reason path...
    pattern=$1 reason=$2
    shift 2
    for path in "$@"; do
        [ ! -e "$path" ] || grep -rIlE -e "$pattern" "$path" 2> /dev/null | while read -r found; do
            echo "${found#"$root"}: $reason"
        done
    done
}

for key in "$root"/etc/ssh/ssh_host_*_key; do is "$key" "a host key"; done
is "$root"/etc/munge/munge.key "the key of munge"
for file in "$root"/etc/kubernetes/bootstrap-kubelet.conf "$root"/etc/kubernetes/kubelet.conf "$root"/etc/kubernetes/admin.conf; do
    is "$file" "a way into a Kubernetes cluster"
done
for home in "$root"/root "$root"/home/*; do
    for file in .ssh/authorized_keys .kube/config .aws/credentials .config/gcloud .netrc; do is "$home/$file" "somebody's own"; done
    has '"auth"' "a password of a registry" "$home/.docker/config.json"
done
has 'PRIVATE KEY-----' "a private key" "$root"/etc/kubernetes "$root"/etc/ironburst "$root"/etc/ssh "$root"/etc/containerd "$root"/etc/docker \
    "$root"/etc/cni "$root"/var/lib/kubelet "$root"/root "$root"/home "$root"/opt/cni
has '(client-key-data|"?token"?): *[^ ]' "a token or key of a cluster" "$root"/etc/kubernetes "$root"/etc/cni "$root"/var/lib/kubelet
has '(^|[^a-z0-9.])[a-z0-9]{6}\.[a-z0-9]{16}([^a-z0-9.]|$)' "a bootstrap token" "$root"/etc/kubernetes "$root"/etc/ironburst/node.env
has '(AKIA|ASIA)[A-Z0-9]{16}|aws_secret_access_key' "a key of AWS" "$root"/etc/ironburst "$root"/etc/kubernetes "$root"/root "$root"/home
[ ! -s "$root"/etc/machine-id ] || echo "/etc/machine-id: this machine's own id"
