#!/usr/bin/env python3
"""Does warmroute do what oracle.py says? Random workloads, every policy, every figure.

    check_oracle.py WARMROUTE [--cases 60] [--seed 0]

Small alphabets and shared prefixes, pools as small as is legal or smaller, blocks of 1 to 16 tokens,
arrivals at one instant, answers that later prompts repeat, requests that can never be served, steps
that cost nothing, objectives that are met exactly, loads that are seen late or in part. A workload is its seed's.
"""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import replace

sys.dont_write_bytecode = True  # the repository is not the place for it
from figures import PICOS  # noqa: E402
from oracle import CHAPTER_CPU, POLICIES, POSITIONS, Params, ceil_div, simulate  # noqa: E402


def workload(seed):
    """Parameters that are hard on a scheduler, and the lines of a trace."""
    rng = random.Random(seed)
    pick = rng.choice
    size, letters = rng.choice([rng.randint(1, 16), rng.randint(1, 5)]), pick([1, 2, 3, 256])

    def text(most):
        return [rng.randrange(letters) for _ in range(rng.randint(0, most))]

    systems = [text(6 * size) for _ in range(rng.randint(1, 4))]
    systems.append(systems[0] + text(3 * size))
    grains = pick([None, None, [0], [0, 0, 1, 7], [0, 0, 1, 7], [0, 10**9, 3 * 10**6 + 1]])
    cost = tuple(pick(grains) for _ in range(6)) if grains else CHAPTER_CPU
    step = max(1, cost[0] + 2 * size * (cost[1] + cost[2]) + cost[3] + 4 * (cost[4] + 2 * size * cost[5]))
    gap, budget = pick([0, 0.1, 0.5, 1, 2, 8]) * step, pick([1, 2 * size, 5 * size])
    with_output = pick([0, 0, 0.6])
    rows, at = [], 0
    for _ in range(rng.randint(1, 45)):
        at += pick([0, round(gap), rng.randint(0, round(2 * gap))])
        row = {"arrival": at / PICOS, "tokens": pick(systems) + text(2 * size) or [0],
               "max_tokens": rng.randint(1, budget)}
        if rng.random() < with_output:
            row["output"] = text(budget + 1)
            systems.append(row["tokens"] + row["output"])  # a chat's next turn
        if rng.random() < 0.7:
            row["tenant"] = pick(["a", "b", 3])
        rows.append(row)
    need = [ceil_div(len(r["tokens"]) + r["max_tokens"] - 1, size) for r in rows]
    if rng.random() < 0.3:
        impossible = {"tokens": []}, {"max_tokens": 0}, {"max_tokens": POSITIONS}, {"tokens": [1] * POSITIONS}
        for change in impossible:
            rows.insert(rng.randrange(len(rows)), {**pick(rows), **change})
        rows.sort(key=lambda r: r["arrival"])
    if rng.random() < 0.1:
        rng.shuffle(rows)
    blocks = pick([max(need), max(need), max(need) + 1, max(1, max(need) - 1), 2 * max(need), 384])
    params = Params(
        replicas=rng.randint(1, 5), blocks=blocks, block_size=size, max_batch=rng.randint(1, 8),
        prefill_chunk=pick([0, 0, 1, size, 3 * size + 1]),
        devices=pick(["shared", "separate"]), prefix_length=pick([1, size, 64]),
        max_imbalance=pick([0.0, 1.0, 1.5, 2.0, math.inf]), cost=cost,
        **sight(rng, step),
        slo_ttft=rng.randint(1, 20) * step / PICOS, slo_itl=rng.randint(1, 4) * step / PICOS)
    return params, [json.dumps(row) for row in rows]


def sight(rng, step):
    """What routers see: mostly all there is, else late, or several that see their own, or both."""
    period = rng.choice([0, 0, 0, rng.uniform(0.1, 2), 1, rng.uniform(1, 40)]) * step
    return {"signal_period": min(30, round(max(1, period)) / PICOS if period else 0.0),
            "signal_own": rng.choice(["off", "on"]), "routers": rng.choice([1, 1, 1, 2, 3, 9])}


def by_ids(params, lines, rng):
    """The same requests as Mooncake would tell of them: made of a few blocks, without tokens."""
    block = params.block_size * rng.randint(1, 3)
    rows = []
    for row in map(json.loads, lines):
        length = len(row["tokens"])
        ids = [rng.randrange(3) for _ in range(ceil_div(length, block))]
        rows.append(json.dumps({"timestamp": 1000 * row["arrival"], "input_length": length,
                                "output_length": row["max_tokens"], "hash_ids": ids}))
    return replace(params, trace_block=block), rows


def arguments(params):
    """The parameters as warmroute's options."""
    for name, value in vars(params).items():
        if name == "trace_block" and not value:
            continue
        yield "--" + name.replace("_", "-")
        yield ",".join(map(str, value)) if name == "cost" else str(value)


def differences(ours, theirs, path=""):
    """A line for each figure of ours that theirs does not have or has otherwise."""
    if isinstance(ours, dict):
        for name, value in ours.items():
            yield from differences(value, theirs.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(ours, float) and isinstance(theirs, (int, float)):
        if not math.isclose(ours, theirs, rel_tol=1e-12, abs_tol=0):
            yield f"{path}: oracle {ours!r}, warmroute {theirs!r}"
    elif ours != theirs:
        yield f"{path}: oracle {ours!r}, warmroute {theirs!r}"


def check(binary, seed, path):
    """Runs one workload both ways. What differs, and how often the scheduler was pressed."""
    params, lines = workload(seed)
    if seed % 4 == 3:
        params, lines = by_ids(params, lines, random.Random(seed))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    command = [binary, "run", "--backend", "modelled", "--json", "--trace", path, "--policy", "all"]
    if params.trace_block:  # Rows without output are rejected here, not left out.
        command.append("--keep-failed")
    command += arguments(params)
    reports = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    found, events = [], [0, 0]
    for policy, report in zip(POLICIES, reports):
        report["rejections"] = [r["request"] for r in report["rejections"]]
        report["tenants"] = {str(t["tenant"]): t for t in report["tenants"]}
        ours = simulate(lines, params, policy)
        events = [events[0] + ours["preemptions"], events[1] + ours["evictions"]]
        found += [f"seed {seed}, {policy}: {line}" for line in differences(ours, report)]
    return found, events


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", metavar="WARMROUTE", help="the program")
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the first workload's")
    args = parser.parse_args()
    wrong = preemptions = evictions = 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(args.seed, args.seed + args.cases):
            found, events = check(args.binary, seed, os.path.join(folder, "trace.jsonl"))
            preemptions, evictions = preemptions + events[0], evictions + events[1]
            wrong += bool(found)
            for line in found:
                print(line)
    print(f"{args.cases - wrong} of {args.cases} workloads agree under every policy"
          f" ({preemptions} preemptions, {evictions} evictions)")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
