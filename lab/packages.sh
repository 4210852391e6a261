#!/bin/sh
# Debian packages that the lab needs on the machine itself, and those named as arguments; installs only what is missing.
set -eu
missing=
for package in systemd-container mmdebstrap iproute2 apt-utils openssh-client gpg gpg-agent procps util-linux dpkg-dev xz-utils nftables "$@"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ]; then
  echo "the lab needs these Debian packages, and installing them needs root:$missing" >&2
  exit 2
fi
echo "installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $missing > /dev/null
