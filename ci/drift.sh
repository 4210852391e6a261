#!/bin/sh
# Whether the environment STACK is what was last applied: cloud and BMCs (refresh), program (preview), hosts (converge).
# $OUT/plan.md, and exit code 4 where it isn't.
set -eu
export PULUMI_PARALLEL="${PULUMI_PARALLEL:-32}" # the CLI has four a core: BMCs are slow, cores idle
out=${OUT:-build/ci}
mkdir -p "$out"
pulumi refresh --stack "$STACK" --preview-only --non-interactive --json >"$out/refresh.json" || echo "pulumi refresh: exit code $?" >&2
PLAN_OPTIONS="--refresh $out/refresh.json --expect-no-changes" exec "$(dirname "$0")/preview.sh"
