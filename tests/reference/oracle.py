#!/usr/bin/env python3
"""What a fleet must do with a trace, said a second time: plain Python, and nothing shared with the Rust.

    oracle.py TRACE [--replicas 4 …]    prints the figures of a trace under each policy, as JSON

check_oracle.py compares it with the program on random workloads.

It was written from the design's words alone (blocks, steps, policies, prices), with the slowest data
structures that say them directly: a cached block's key is the tuple of all tokens up to its end,
what can be evicted is searched for afresh each time, and times and quantiles are whole numbers or
fractions, rounded once at the end. Counts must be equal and times agree to 1e-12 of themselves.

Two things the design leaves open were settled as the program has them, since both can be seen in
the figures: how blocks are numbered ("the lowest id" decides ties among evictions; see Replica.free)
and when the blocks held are counted for their peak (see Replica.start_step).
"""
import argparse
import json
import math
from dataclasses import dataclass, field

from figures import PICOS, summary

POSITIONS = 2048
POLICIES = ("round-robin", "least-requests", "least-tokens", "prefix-affinity")
CHAPTER_CPU = (4_100_000_000, 286_000_000, 36_000, 1_700_000_000, 2_700_000_000, 5_400_000)


@dataclass(frozen=True)
class Params:
    """The command line's parameters, under its names and with its defaults."""

    replicas: int = 4
    blocks: int = 384
    block_size: int = 16
    max_batch: int = 8
    prefill_chunk: int = 0  # prompt tokens in a step at most; 0: all
    devices: str = "shared"
    trace_block: int = 0  # tokens that a hash id stands for; 0: a trace with tokens
    prefix_length: int = 64
    max_imbalance: float = 2.0
    signal_period: float = 0.0  # seconds between two looks at the loads; 0: one for each decision
    signal_own: str = "off"  # does a router add what it sent since the last look?
    routers: int = 1
    slo_ttft: float = 1.0
    slo_itl: float = 0.05
    cost: tuple = CHAPTER_CPU  # prefill base, per token, per pair; decode base, per token, per pair


@dataclass(eq=False)
class Request:
    arrival: int
    prompt: tuple
    max_tokens: int
    tenant: object
    output: tuple  # what the model answers: max_tokens tokens
    tokens: list  # prompt and what was generated so far
    hashed: tuple  # what prefix-affinity takes the beginning of, and tokens that each item stands for
    shared: float = math.inf  # tokens that anybody could share
    table: list = field(default_factory=list)  # the blocks held, in order
    cached: int = 0  # tokens of the prompt that were reused at the first admission
    computed: int = 0  # tokens whose keys and values are in those blocks
    due: int = 0  # tokens that must be computed before its next one is out
    lost: int = None  # the most tokens that were computed when it was preempted
    times: list = field(default_factory=list)  # when each generated token was seen
    replica: int = None  # where it was sent

    @property
    def outstanding(self):
        return len(self.prompt) + self.max_tokens - len(self.times)


@dataclass(eq=False)
class Block:
    id: int
    holders: int = 0
    key: tuple = None  # every token up to and including this block's, once it is published
    released: int = 0  # the step in which the last holder let go


def ceil_div(a, b):
    return -(-a // b)


def read_mooncake(rows, block):
    """A token is the id of its block and its place in it; an answer is nobody's to share."""
    first = min(row["timestamp"] for row in rows)
    requests = []
    for i, row in enumerate(rows):
        length, ids = row["input_length"], tuple(row["hash_ids"])
        prompt = tuple((ids[k // block], k % block) for k in range(length))
        output = tuple(("made up", i, j) for j in range(row["output_length"]))
        arrival = round((row["timestamp"] - first) / 1000 * PICOS)
        requests.append(Request(arrival, prompt, row["output_length"], None, output, list(prompt),
                                (ids, block), length))
    return sorted(requests, key=lambda r: r.arrival)


def read_trace(lines, block):
    rows = [json.loads(line) for line in lines if line.strip()]
    if block:
        return read_mooncake(rows, block)
    requests = []
    for i, row in enumerate(rows):
        prompt = tuple(row["tokens"] if "tokens" in row else row["prompt"].encode())
        budget = row["max_tokens"]
        # Answers that the trace does not give are unlike any other token there is.
        given = tuple(row.get("output") or ())[:max(budget, 0)]
        output = given + tuple(("made up", i, j) for j in range(len(given), budget))
        arrival = round(row["arrival"] * PICOS)
        requests.append(Request(arrival, prompt, budget, row.get("tenant"), output, list(prompt),
                                (prompt, 1)))
    return sorted(requests, key=lambda r: r.arrival)


class Replica:
    def __init__(self, params):
        self.p = params
        # The last to be freed is the next to be used, a request's own from the end of its table on.
        self.free = [Block(i) for i in reversed(range(params.blocks))]
        self.cache = {}  # key → block
        self.waiting, self.running = [], []  # oldest first
        self.prefills, self.decodes = [], []  # of the step under way
        self.steps = self.peak = self.preemptions = self.evictions = 0
        self.recomputed = 0  # tokens

    def outstanding(self):
        return sum(r.outstanding for r in self.waiting + self.running)

    # Blocks

    def unheld(self):
        return [b for b in self.cache.values() if b.holders == 0]

    def take(self):
        """A block to hold: a free one, else the least recently used that nobody needs; else None."""
        if not self.free:
            extended = {key[:-self.p.block_size] for key in self.cache}
            leaves = [b for b in self.unheld() if b.key not in extended]
            if not leaves:
                return None
            victim = min(leaves, key=lambda b: (b.released, -len(b.key), b.id))
            del self.cache[victim.key]
            victim.key = None
            self.evictions += 1
            self.free.append(victim)
        block = self.free.pop()
        block.holders = 1
        return block

    def release(self, block):
        block.holders -= 1
        if block.holders == 0:
            block.released = self.steps
            if block.key is None:
                self.free.append(block)

    def release_all(self, request):
        for block in reversed(request.table):
            self.release(block)
        request.table = []
        request.computed = 0

    def publish(self, request):
        """Caches the request's full blocks; where a key is cached already, shares that block."""
        size = self.p.block_size
        for i in range(min(request.computed, request.shared) // size):
            key = tuple(request.tokens[:(i + 1) * size])
            own = request.table[i]
            if own.key is None:
                known = self.cache.get(key)
                if known is None:
                    own.key = key
                    self.cache[key] = own
                else:
                    known.holders += 1
                    request.table[i] = known
                    self.release(own)

    # Steps

    def start_step(self):
        """All that a step does before its tokens are out; the picoseconds until then."""
        self.steps += 1
        preempted = self.make_room()
        self.decodes = [r for r in self.running if r.computed >= r.due]
        self.budget = self.p.prefill_chunk or math.inf
        base, per_token, per_pair, decode_base, per_sequence, per_context = self.p.cost
        self.prefills = [r for r in self.running if r.computed < r.due]
        pieces = [self.prefill(request) for request in self.prefills]
        while not preempted and self.budget and self.waiting and len(self.running) < self.p.max_batch:
            if not self.admit(self.waiting[0]):
                break
            request = self.waiting.pop(0)
            self.running.append(request)
            self.prefills.append(request)
            pieces.append(self.prefill(request))
        price = sum(base + per_token * len(piece) + per_pair * sum(i + 1 for i in piece) for piece in pieces)
        if self.decodes:
            contexts = sum(r.computed + 1 for r in self.decodes)
            price += decode_base + per_sequence * len(self.decodes) + per_context * contexts
        # Held while the step runs, or, where someone had to be preempted, all there were just before.
        held = self.p.blocks - len(self.free) - len(self.unheld())
        self.peak = max(self.peak, self.p.blocks if preempted else held)
        return max(1, price)

    def make_room(self):
        """A slot for every running request's next token, oldest first. Was anyone preempted?"""
        preempted = False
        for request in list(self.running):
            while request in self.running and request.computed == len(request.table) * self.p.block_size:
                block = self.take()
                if block is not None:
                    request.table.append(block)
                    continue
                newest = self.running.pop()
                newest.lost = max(newest.lost or 0, newest.computed)
                self.release_all(newest)
                self.waiting.insert(0, newest)
                self.preemptions += 1
                preempted = True
        return preempted

    def admit(self, request):
        """Gives a request its blocks if there are enough of them. Were there?"""
        size, n = self.p.block_size, len(request.tokens)
        matched = []
        while len(matched) < (n - 1) // size:
            block = self.cache.get(tuple(request.tokens[:(len(matched) + 1) * size]))
            if block is None:
                break
            matched.append(block)
        # One that was preempted must get past its next token, or it may be preempted at once.
        room = n if request.lost is None else min(n + 1, len(request.prompt) + request.max_tokens - 1)
        needed = ceil_div(room, size) - len(matched)
        available = len(self.free) + len([b for b in self.unheld() if b not in matched])
        if needed > available:
            return False
        for block in matched:
            block.holders += 1
        request.table = matched + [self.take() for _ in range(needed)]
        request.computed, request.due = len(matched) * size, n
        if request.lost is None:
            request.cached = request.computed
        return True

    def prefill(self, request):
        """Computes what the step has tokens for and shares it at once: which positions were computed."""
        start = request.computed
        request.computed = min(request.due, start + self.budget)
        self.budget -= request.computed - start
        self.publish(request)
        self.recomputed += len([i for i in range(start, request.computed) if i < (request.lost or 0)])
        return range(start, request.computed)

    def end_step(self, now):
        for request in self.decodes:
            request.computed += 1
            self.publish(request)
        for request in self.decodes + [r for r in self.prefills if r.computed == r.due]:
            request.tokens.append(request.output[len(request.times)])
            request.times.append(now)
            if len(request.times) == request.max_tokens:
                self.running.remove(request)
                self.release_all(request)


class Router:
    """Decides for its share of the requests. A load is (requests, tokens)."""

    def __init__(self, params, policy):
        self.p, self.policy = params, policy
        self.sent = []  # the requests that it routed
        self.shown = [(0, 0)] * params.replicas  # at the last look
        self.since = []  # the requests that it routed after that

    def look(self, replicas):
        def load(i, replica):
            if self.p.routers == 1:
                return len(replica.waiting) + len(replica.running), replica.outstanding()
            # The others' requests are not seen, nor how far its own are before they are done.
            own = [r for r in self.sent if r.replica == i and len(r.times) < r.max_tokens]
            return len(own), sum(len(r.prompt) + r.max_tokens for r in own)
        self.shown = [load(i, replica) for i, replica in enumerate(replicas)]
        self.since = []

    def route(self, request):
        loads = list(self.shown)
        for r in self.since if self.p.signal_own == "on" else []:
            count, tokens = loads[r.replica]
            loads[r.replica] = count + 1, tokens + len(r.prompt) + r.max_tokens
        request.replica = select(self.policy, self.p, len(self.sent), request, loads)
        self.sent.append(request)
        self.since.append(request)
        return request.replica


def select(policy, params, turn, request, loads):
    n = len(loads)
    if policy == "round-robin":
        return turn % n
    loads = [count if policy == "least-requests" else tokens for count, tokens in loads]
    if policy == "prefix-affinity":
        items, tokens_each = request.hashed
        preferred = hash(items[:ceil_div(params.prefix_length, tokens_each)]) % n
        mean = sum(loads) / n
        if mean == 0 or not loads[preferred] > params.max_imbalance * mean:
            return preferred
    return loads.index(min(loads))


def can_serve(request, p):
    most = len(request.prompt) + request.max_tokens
    return (request.max_tokens >= 1 and request.prompt and most <= POSITIONS
            and ceil_div(most - 1, p.block_size) <= p.blocks)


def simulate(lines, p, policy):
    requests = read_trace(lines, p.trace_block)
    replicas = [Replica(p) for _ in range(p.replicas)]
    routers = [Router(p, policy) for _ in range(p.routers)]
    ends = [None] * p.replicas  # of the steps under way
    period = round(p.signal_period * PICOS)
    last, turn, arrived, refresh = -1, 0, 0, 0
    rejected, assignments, tokens = [], [0] * p.replicas, [0] * p.replicas
    while True:
        pending = [t for t in ends if t is not None]
        if arrived < len(requests):
            pending.append(requests[arrived].arrival)
        if not pending:
            break
        now = min(pending + [refresh] if period else pending)
        for i, replica in enumerate(replicas):
            if ends[i] == now:
                ends[i] = None
                replica.end_step(now)
        if period and now == refresh:
            for router in routers:
                router.look(replicas)
            refresh += period
        while arrived < len(requests) and requests[arrived].arrival == now:
            request = requests[arrived]
            if can_serve(request, p):
                router = routers[turn % p.routers]
                turn += 1
                if not period:
                    router.look(replicas)
                i = router.route(request)
                assignments[i] += 1
                tokens[i] += len(request.prompt) + request.max_tokens
                replicas[i].waiting.append(request)
            else:
                rejected.append(arrived)
            arrived += 1
        for i in [(last + 1 + k) % p.replicas if p.devices == "shared" else k for k in range(p.replicas)]:
            taken = any(ends) if p.devices == "shared" else ends[i] is not None
            if not taken and (replicas[i].waiting or replicas[i].running):
                ends[i] = now + replicas[i].start_step()
                last = i
    return summary(requests, rejected, replicas, assignments, tokens, p)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", help="JSON lines, as warmroute run --trace reads them")
    for name, value in vars(Params()).items():
        kind = (lambda text: tuple(map(int, text.split(",")))) if name == "cost" else type(value)
        parser.add_argument("--" + name.replace("_", "-"), type=kind, default=value)
    args = vars(parser.parse_args())
    with open(args.pop("trace"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    params = Params(**args)
    print(json.dumps({policy: simulate(lines, params, policy) for policy in POLICIES}, indent=2))


if __name__ == "__main__":
    main()
