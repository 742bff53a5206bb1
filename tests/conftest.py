"""Settings for all tests."""

import os

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, few enough for every commit. For a search:
# GRAFT_EXAMPLES=1000 pytest tests/test_properties.py
_examples = os.environ.get("GRAFT_EXAMPLES")
settings.register_profile(
    "graft",
    deadline=None,
    database=None,
    derandomize=_examples is None,
    max_examples=int(_examples or 25),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("graft")

# Many engine starts each: `make proof` runs them, and they want a quiet machine.
_PROOFS = (
    "test_engine_results",
    "test_proof_engine_faults",
    "test_proof_faults",
    "test_proof_ray",
    "test_proof_ray_engine",
    "test_proof_stress",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the engine tests that take minutes as ``proof``."""
    for item in items:
        if item.get_closest_marker("engine") and item.path.stem in _PROOFS:
            item.add_marker("proof")
