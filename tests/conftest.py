"""What all tests share: our own fixtures, and how Hypothesis looks for counterexamples.

In CI it looks at the same ones always, elsewhere at new ones.
"""

from __future__ import annotations

import os
import signal
from typing import Final

from hypothesis import HealthCheck, settings

__all__: list[str] = []

# Where the package is installed, the first is there already.
pytest_plugins = ["claude_trio_pytest", "pytester"]

# A shared machine makes any example slow now and then: only the tests' own bounds are meant.
PATIENT: Final = settings(
    deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)

settings.register_profile("ci", PATIENT, derandomize=True, database=None)
settings.register_profile("dev", PATIENT)
settings.load_profile("ci" if os.environ.get("CI") else "dev")

# Who starts the tests in the background may have them ignore Ctrl-C, and their children would
# inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
