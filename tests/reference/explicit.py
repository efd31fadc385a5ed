#!/usr/bin/env python3
"""The explicit trace of tests/reference.rs, and what a few lines of Python say of it.

Python's own hash() of a tuple of ints decides where prefix-affinity goes, and a set of prefixes a
replica stands for its cache, which is never full here. Run without arguments: it writes
explicit.jsonl beside itself and prints, for each fleet size, reuse and assignments.
"""
import json
import os

BLOCK = 16
PREFIX = 64


def draw(state=[20261130]):
    """A linear congruential generator, so that the trace is the same in any Python."""
    state[0] = (state[0] * 6364136223846793005 + 1442695040888963407) % 2**64
    return state[0] >> 33


def make_trace():
    systems = [[draw() % 256 for _ in range(40 + draw() % 90)] for _ in range(7)]
    # Two that part only within their second block, and one that is all of another and more.
    systems.append(systems[0][:20] + [draw() % 256 for _ in range(60)])
    systems.append(systems[1] + [draw() % 256 for _ in range(50)])
    rows, at = [], 0
    for _ in range(60):
        at += draw() % 2000
        system = draw() % len(systems)
        tail = [draw() % 256 for _ in range(draw() % 40)]
        rows.append({"arrival": at / 10000, "tokens": systems[system] + tail,
                     "max_tokens": 1 + draw() % 12, "tenant": f"s{system}"})
    # A prompt of whole blocks, twice (its last token is computed again), and a very short one.
    for tokens in ([9] * 48, [9] * 48, [7]):
        at += 3000
        rows.append({"arrival": at / 10000, "tokens": tokens, "max_tokens": 3})
    return rows


def replay(rows, n, choose):
    caches = [set() for _ in range(n)]
    assignments = [0] * n
    cached = total = 0
    for i, row in enumerate(rows):
        tokens = tuple(row["tokens"])
        replica = choose(i, tokens)
        assignments[replica] += 1
        hit = 0
        while hit < (len(tokens) - 1) // BLOCK and tokens[:(hit + 1) * BLOCK] in caches[replica]:
            hit += 1
        caches[replica] |= {tokens[:(b + 1) * BLOCK] for b in range(len(tokens) // BLOCK)}
        cached += hit * BLOCK
        total += len(tokens)
    return cached, total, assignments


if __name__ == "__main__":
    rows = make_trace()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "explicit.jsonl")
    with open(path, "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    for n in (1, 3, 4, 7):
        robin = replay(rows, n, lambda i, tokens: i % n)
        affinity = replay(rows, n, lambda i, tokens: hash(tokens[:PREFIX]) % n)
        print(f"    ({n}, {robin}, {affinity}),")
