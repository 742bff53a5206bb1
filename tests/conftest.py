"""Settings for all tests."""

import os

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
