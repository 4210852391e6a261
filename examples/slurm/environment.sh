#!/bin/bash
# An environment of Python packages on shared storage, which rented nodes have, too. In your home it would be missing there
# Needs: uv (https://docs.astral.sh/uv), and a folder that the site shares
# Tried: on the machine that makes it, with one small package; not in the lab, whose hosts reach no package index
set -euo pipefail

folder=${1:?say where: a folder on shared storage, /shared/$USER/env}
shift
export UV_CACHE_DIR=$folder/.cache UV_PYTHON_INSTALL_DIR=$folder/.python UV_LINK_MODE=copy
uv venv --python "${PYTHON:-3.12}" "$folder" # the interpreter, too, must be there on a rented node
uv pip install --python "$folder/bin/python" "${@:-torch}"
echo "in a job: source $folder/bin/activate"
