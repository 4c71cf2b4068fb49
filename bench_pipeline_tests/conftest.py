"""Settings of every test: property tests give one answer for one state of the code, on a busy machine too.

``HYPOTHESIS_PROFILE=explore`` looks for new examples instead of the same ones.
"""

import gc
import os

from hypothesis import HealthCheck, settings

# A deadline would be a timed assertion, and so would be the check that examples are made quickly enough.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of every later collection of garbage.

    It never goes away, and looking through it again takes longer than many a test (statsmodels collects at each call).
    """
    gc.collect()
    gc.freeze()
