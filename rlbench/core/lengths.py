"""How long completions are: lognormal under a cap, as an arithmetic of their mean, cap and spread."""

import math
import random
from functools import lru_cache
from statistics import NormalDist


@lru_cache(maxsize=256)
def completion_lengths(mean: float, cap: int, count: int, sigma: float, seed: int | None = None) -> tuple[int, ...]:
    """`count` lognormal lengths under a cap, whose mean is `mean` (the cap's effect included).

    Without a seed they are the evenly spaced quantiles, in a shuffled order: the expected batch. With one they
    are drawn.
    """
    if mean >= cap or sigma == 0:
        return (max(1, min(cap, round(mean))),) * count
    generator = random.Random(0 if seed is None else seed)
    if seed is None:
        scores = [NormalDist().inv_cdf((i + 0.5) / count) for i in range(count)]
        generator.shuffle(scores)
    else:
        scores = [generator.gauss(0, 1) for _ in range(count)]
    mu = _mu_of_capped_mean(mean / cap, sigma) + math.log(cap)
    return tuple(max(1, min(cap, round(math.exp(mu + sigma * score)))) for score in scores)


@lru_cache(maxsize=1024)
def _mu_of_capped_mean(share: float, sigma: float) -> float:
    """The mu of a lognormal X with E[min(X, 1)] = `share`, by bisection of its closed form."""
    low, high = math.log(share) - sigma**2, math.log(share) + 8 * sigma
    for _ in range(60):
        mu = (low + high) / 2
        low, high = (mu, high) if _capped_mean(mu, sigma) < share else (low, mu)
    return (low + high) / 2


def _capped_mean(mu: float, sigma: float) -> float:
    """E[min(X, 1)] = exp(mu + sigma²/2) · Φ(−mu/sigma − sigma) + Φ(mu/sigma)."""
    normal = NormalDist()
    return math.exp(mu + sigma**2 / 2) * normal.cdf(-mu / sigma - sigma) + normal.cdf(mu / sigma)
