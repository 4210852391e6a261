#!/bin/sh
# What the checkout would do to the environment STACK: $OUT/plan.md (OUT: build/ci), and the exit code of `ironburst plan`.
# BASE: the commit in force. HEAD_SSH: where scontrol answers. DOCUMENT: the published document, for the hosts' drift.
set -eu
export PULUMI_PARALLEL="${PULUMI_PARALLEL:-32}" # the CLI has four a core: BMCs are slow, cores idle
out=${OUT:-build/ci}
file=stacks/Pulumi.$STACK.yaml
mkdir -p "$out/before"
if ! ironburst validate "$file" --no-secrets 2>"$out/errors"; then
  cat "$out/errors" >&2
  { printf '<!-- ironburst plan %s -->\n### `%s` is not valid\n\n' "$STACK" "$STACK"; sed 's/^/    /' "$out/errors"; } >"$out/plan.md"
  exit 2
fi
set --
if [ -n "${BASE:-}" ] && git cat-file -e "$BASE:$file"; then
  git archive "$BASE" stacks | tar -x -C "$out/before" # with what the stack file names beside it
  set -- "$@" --before "$out/before/$file"
fi
# The plan says what failed here, and refuses what it then can't know: so this goes on
pulumi preview --stack "$STACK" --non-interactive --json >"$out/preview.json" || echo "pulumi preview: exit code $?" >&2
if [ -n "${HEAD_SSH:-}" ]; then
  ssh -o BatchMode=yes -o ConnectTimeout=10 "$HEAD_SSH" scontrol show node --json >"$out/nodes.json" || : >"$out/nodes.json"
  set -- "$@" --nodes "$out/nodes.json"
fi
if [ -f "${DOCUMENT:-}" ]; then
  ironburst converge --check --json --document "$DOCUMENT" --inventory "inventory/$STACK" >"$out/converge.json" || echo "converge --check: exit code $?" >&2
  set -- "$@" --converge "$out/converge.json"
fi
ironburst plan "$file" --preview "$out/preview.json" --up-environment "$out/up.env" "$@" ${PLAN_OPTIONS:-} >"$out/plan.md"
