#!/bin/bash
# srun profile.sh PROGRAM ...: the program under the profiler that the job's comment names (profile=nsys, ncu, torch or dcgm), else as it is.
# Needs: the profiler on the nodes; for nsys, ncu and torch profiled.py in the program, which says which steps (PROFILE_STEPS); writes to PROFILE_TO
# Tried: with stand-ins for nsys, ncu and dcgmi; not on a GPU
set -euo pipefail
asked=/run/ironburst/profiling/$SLURM_JOB_ID # ironburst's prolog wrote it; elsewhere: export PROFILE=nsys
[ ! -r "$asked" ] || PROFILE=$(cat "$asked")
export PROFILE=${PROFILE:-} PROFILE_TO=${PROFILE_TO:-profile-$SLURM_JOB_ID}
[ -z "$PROFILE" ] || mkdir -p "$PROFILE_TO"
case "$PROFILE" in
  # one process a rank: only what is between cudaProfilerStart and cudaProfilerStop
  nsys)
    exec nsys profile --trace=cuda,nvtx,osrt --capture-range=cudaProfilerApi --capture-range-end=stop --kill=none \
      --output "$PROFILE_TO/nsys-rank$SLURM_PROCID" "$@" ;;
  # rank 0 alone, and few kernels: each is run again and again
  ncu)
    [ "$SLURM_PROCID" != 0 ] || exec ncu --profile-from-start off --launch-count "${PROFILE_KERNELS:-20}" --export "$PROFILE_TO/ncu-rank0" "$@"
    exec "$@" ;;
  # ten samples a second of this job's GPUs, by the first process of each node
  dcgm)
    [ "$SLURM_LOCALID" = 0 ] || exec "$@"
    gpus=$(grep -lx "$SLURM_JOB_ID" /run/ironburst/gpu-jobs/* 2> /dev/null | sed 's/.*\///' | paste -sd, -) || gpus=
    # graphics engine, SMs, tensor cores, memory interface; PCIe and NVLink, sent and received
    dcgmi dmon -e 1001,1002,1004,1005,1009,1010,1011,1012 -d 100 ${gpus:+-i "$gpus"} > "$PROFILE_TO/dcgm-$SLURMD_NODENAME.txt" &
    watching=$!
    trap 'kill $watching 2> /dev/null || :' EXIT
    trap : TERM # Slurm sends it to the program, too, which saves and ends
    "$@" || exit $? ;;
  *) exec "$@" ;;
esac
