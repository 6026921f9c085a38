"""rlbench: which small open language model gives the most reinforcement-learning reward per dollar."""

__version__ = "0.1.0"
__all__ = ["__version__", "load_results"]


def __getattr__(name: str) -> object:
    # `import rlbench` stays free of pydantic and pandas; only who asks for results pays for them.
    if name == "load_results":
        from rlbench.store import load_results

        return load_results
    raise AttributeError(f"module 'rlbench' has no attribute {name!r}")
