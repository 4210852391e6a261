#!/bin/sh
# Bring the environment STACK to what the checkout declares, and publish its document at DOCUMENT.
# The plan is made again: what was true in the pull request, that a node is drained, may be so no more.
# Only the branch's tip goes on: an old run that is started again would bring back what was, a higher ceiling too. The tip
# is asked of `origin` (BRANCH; without it the forge's variable, the branch of the checkout, the default branch).
# ROLLBACK: the whole id of an older commit that is wanted; a revert is better, it stays where the next run finds it.
set -eu
export PULUMI_PARALLEL="${PULUMI_PARALLEL:-32}" # the CLI has four a core: BMCs are slow, cores idle
out=${OUT:-build/ci}
head=$(git rev-parse HEAD)
branch=${BRANCH:-${GITHUB_REF_NAME:-${CI_COMMIT_BRANCH:-$(git symbolic-ref --quiet --short HEAD || :)}}}

tip() {  # of the branch, as origin has it now; a repository without origin has its own alone
  git remote get-url origin >/dev/null 2>&1 || { git rev-parse --verify --quiet "refs/heads/${branch:-main}"; return; }
  if [ -n "${GITHUB_TOKEN:-}" ]; then  # the checkout keeps no credentials; in the environment no argument shows them
    header="Authorization: Basic $(printf 'x-access-token:%s' "$GITHUB_TOKEN" | base64 | tr -d '\n')"
    export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=http.extraHeader GIT_CONFIG_VALUE_0="$header"
  fi
  GIT_TERMINAL_PROMPT=0 git ls-remote --exit-code origin "${branch:+refs/heads/}${branch:-HEAD}" | cut -f1
}

older=
if [ "${ROLLBACK:-}" = "$head" ]; then
  older=--older
elif ! tip=$(tip) || [ -z "$tip" ]; then
  echo "ci/up.sh: the tip of ${branch:-the default branch} can't be asked of origin, so nobody knows whether $head is it: nothing is done" >&2
  exit 3
elif [ "$tip" != "$head" ]; then
  echo "ci/up.sh: $head isn't the tip of ${branch:-the default branch}, which is $tip: run the tip's pipeline, or give ROLLBACK=$head if the older one is wanted; nothing is done" >&2
  exit 3
fi
"$(dirname "$0")/preview.sh"
set -a
. "$out/up.env" # of an up that only reads BMCs the state is written once, at the end
set +a
pulumi up --stack "$STACK" --yes --skip-preview --non-interactive
pulumi stack output cluster --json --stack "$STACK" >"$out/cluster.json"
ironburst publish --to "$DOCUMENT" $older <"$out/cluster.json"
