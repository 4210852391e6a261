#!/bin/sh
# The way into the hall for a runner that doesn't stand there: `up`, `down`. Without SSH_JUMP there is nothing to do.
# SSH_JUMP: as ssh takes it, with the runner's own key or certificate. HALL_NETWORKS: of hosts and BMCs, as in "10.20.0.0/22 10.20.8.0/24".
set -eu
[ -n "${SSH_JUMP:-}" ] || exit 0
pid=${OUT:-build/ci}/jump.pid
mkdir -p "$(dirname "$pid")"
case $1 in
up)
  # shellcheck disable=SC2086 # several networks
  sshuttle --daemon --pidfile "$pid" --remote "$SSH_JUMP" $HALL_NETWORKS
  ;;
down)
  [ ! -f "$pid" ] || kill "$(cat "$pid")"
  ;;
esac
