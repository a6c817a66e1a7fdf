#!/bin/bash
# A task of a Slurm array for each part of a run. Before it, the plan; after it, a job that joins the parts:
#
#   proctor run --dry-run ten_thousand.toml --shards 16 --out plan
#   array=$(sbatch --parsable --array=1-16 slurm.sh ten_thousand.toml)
#   sbatch --dependency="afterok:$array" --wrap 'proctor merge parts/* --out run'
#
#SBATCH --job-name=proctor
#SBATCH --cpus-per-task=1
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=slurm-%a.log
proctor run "$1" --partition auto --plan plan --jobs "$SLURM_CPUS_PER_TASK" --out "parts/$SLURM_ARRAY_TASK_ID"
code=$?
# Slurm repeats a task whose node fails. One whose process was killed goes on where it was, up to three times.
if ((code > 128 && ${SLURM_RESTART_COUNT:-0} < 3)); then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
