#!/bin/sh
# A pull request with the newest versions that the stack STACK allows, and why; nothing where it has them. $OUT/lock.md
# (build/ci) says it, and which security bulletins the declared driver itself stands in the way of.
set -eu
out=${OUT:-build/ci}
here=$(dirname "$0")
mkdir -p "$out"
code=0
ironburst lock "stacks/Pulumi.$STACK.yaml" --upgrade >"$out/lock.txt" 2>&1 || code=$?
{
  echo "Newer versions for \`$STACK\`, as \`ironburst lock --upgrade\` says them:"
  echo
  sed 's/^/    /' "$out/lock.txt"
} >"$out/lock.md"
[ "$code" = 0 ] || { cat "$out/lock.txt" >&2; exit "$code"; }
git diff --quiet -- stacks && exit 0
title="$STACK: newer versions"
grep -q "security: NVIDIA" "$out/lock.txt" && title="$STACK: newer versions, with security fixes"
git switch --quiet -C "lock-$STACK"
git -c user.name=ironburst -c user.email=ironburst@invalid commit --quiet -m "$title" -- stacks
git push --quiet --force origin "lock-$STACK"
python3 "$here/forge.py" open "lock-$STACK" "$out/lock.md" "$title"
