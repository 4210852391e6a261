#!/bin/sh
# A pull request with the newest versions that the stack STACK allows, and why; nothing where it has them.
set -eu
out=${OUT:-.ci}
here=$(dirname "$0")
mkdir -p "$out"
{
  echo "Newer versions for \`$STACK\`, as \`ironburst lock --upgrade\` says them:"
  echo
  ironburst lock "stacks/Pulumi.$STACK.yaml" --upgrade | sed 's/^/    /'
} >"$out/lock.md"
git diff --quiet -- stacks && exit 0
git switch --quiet -C "lock-$STACK"
git -c user.name=ironburst -c user.email=ironburst@invalid commit --quiet -m "$STACK: newer versions" -- stacks
git push --quiet --force origin "lock-$STACK"
python3 "$here/forge.py" open "lock-$STACK" "$out/lock.md" "$STACK: newer versions"
