#!/bin/sh
# Lock the frameworks anew after a change of a .in file: exact versions and hashes of everything, from the index that uv is set up for.
# usage: lock.sh [UV]   (files/*.in -> files/*.txt; no index is named in them)
set -eu
cd "$(dirname "$0")"
for from in *.in; do
    to=${from%.in}.txt
    "${1:-uv}" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header "$from" -o "$to.new"
    { echo "# Made by files/lock.sh from $from: do not edit. Python 3.11 and newer."; cat "$to.new"; } > "$to"
    rm "$to.new"
done
