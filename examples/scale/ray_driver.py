"""Runs the parts of a scenario as tasks of Ray, and joins them.

Usage: ray_driver.py SCENARIO FOLDER [PARTS]

All machines must see SCENARIO and FOLDER, and have `proctor`. A part that was killed, or whose machine is lost, is started
again and goes on where it was.
"""

import subprocess
import sys
from pathlib import Path

import ray


def proctor(*words):
    subprocess.run(["proctor", *map(str, words)], check=True)


@ray.remote(num_cpus=1, max_retries=5, retry_exceptions=[subprocess.CalledProcessError])
def run_part(scenario, folder, part, parts):
    out = folder / "parts" / str(part)
    proctor("run", scenario, "--partition", f"cost:{part}/{parts}", "--plan", folder / "plan", "--jobs", 1, "--out", out)
    return part, out


def main(scenario, folder, parts=16):
    scenario, folder, parts = Path(scenario).resolve(), Path(folder).resolve(), int(parts)
    proctor("run", scenario, "--dry-run", "--shards", parts, "--out", folder / "plan")
    ray.init()
    running = [run_part.remote(scenario, folder, part, parts) for part in range(1, parts + 1)]
    outs = []
    while running:
        done, running = ray.wait(running)
        for part, out in ray.get(done):
            print(f"part {part} of {parts} is done", flush=True)
            outs.append(out)
    proctor("merge", *outs, "--out", folder / "run")


if __name__ == "__main__":
    main(*sys.argv[1:])
