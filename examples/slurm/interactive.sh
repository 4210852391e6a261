#!/bin/bash
# A shell on a node with one GPU, for an hour. It may be rented for, never on spot; it ends with the terminal
# Needs: nothing
# Tried: lab, at home and rented, with a command in the shell's place
exec srun --job-name=interactive --gpus-per-node=1 --time=01:00:00 --pty "${@:-bash}"
