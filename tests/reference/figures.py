"""The figures of a run, for oracle.py: whole numbers and fractions until the last division."""
import math
from fractions import Fraction

PICOS = 10**12


def quantiles(values):
    """p50, p95 and p99 in seconds of times in picoseconds, by linear interpolation at p·(n − 1)."""
    values, result = sorted(values), {}
    for percent in (50, 95, 99):
        rank = Fraction(percent, 100) * (len(values) - 1)
        low = math.floor(rank)
        value = values and values[low] + (rank - low) * (values[min(low + 1, len(values) - 1)] - values[low])
        result[f"p{percent}"] = float(value / PICOS) if values else None
    return result


def ttft(request):
    return Fraction(request.times[0] - request.arrival)


def itl(request):
    n = len(request.times)
    return Fraction(request.times[-1] - request.times[0], n - 1) if n > 1 else None


def ratio(a, b):
    return float(Fraction(a) / Fraction(b)) if b else None


def is_good(request, p):
    within = itl(request) is None or itl(request) <= round(p.slo_itl * PICOS)
    return within and ttft(request) <= round(p.slo_ttft * PICOS)


def figures(requests, p):
    """What is said of all requests and of each tenant's."""
    done = [r for r in requests if r.times]
    return {"completed": len(done), "rejected": len(requests) - len(done),
            "good": sum(is_good(r, p) for r in done),
            "ttft": quantiles(map(ttft, done)),
            "itl": quantiles(itl(r) for r in done if itl(r) is not None),
            "reuse": ratio(sum(r.cached for r in done), sum(len(r.prompt) for r in done))}


def summary(requests, rejected, replicas, assignments, tokens, p):
    done = [r for r in requests if r.times]
    assert all(len(r.times) == r.max_tokens for r in done), "what is admitted is finished"
    span = Fraction(max((r.times[-1] for r in done), default=0), PICOS)
    output = sum(len(r.times) for r in done)
    result = figures(requests, p)
    result.update(
        arrived=len(requests), span=float(span), output_tokens=output,
        token_gap=quantiles(Fraction(b - a) for r in done for a, b in zip(r.times, r.times[1:])),
        output_tokens_per_second=ratio(output, span),
        requests_per_second=ratio(len(done), span),
        goodput_per_second=ratio(result["good"], span),
        goodput_fraction=ratio(result["good"], len(requests)),
        prompt_tokens=sum(len(r.prompt) for r in done), cached_tokens=sum(r.cached for r in done),
        assignments=assignments,
        imbalance=ratio(max(assignments) * p.replicas, sum(assignments)),
        token_imbalance=ratio(max(tokens) * p.replicas, sum(tokens)),
        preemptions=sum(r.preemptions for r in replicas),
        recomputed_tokens=sum(r.recomputed for r in replicas),
        evictions=sum(r.evictions for r in replicas),
        peak_kv_utilisation=max(r.peak for r in replicas) / p.blocks,
        rejections=rejected,
        tenants={str(name): figures([r for r in requests if r.tenant == name], p)
                 for name in {r.tenant for r in requests}})
    return result
