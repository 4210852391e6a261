#!/bin/sh
# Bring the environment STACK to what the checkout declares, and publish its document at DOCUMENT.
# The plan is made again: what was true in the pull request, that a node is drained, may be so no more.
set -eu
out=${OUT:-build/ci}
"$(dirname "$0")/preview.sh"
pulumi up --stack "$STACK" --yes --skip-preview --non-interactive
pulumi stack output cluster --json --stack "$STACK" >"$out/cluster.json"
ironburst publish --to "$DOCUMENT" <"$out/cluster.json"
