"""The environment of the fork server and of readers; the first that `sandbox` has it import.

What may hold a secret goes: readers do not need it. What pyarrow reads as it loads is set, which it
has not yet: the system's allocator gives memory back, and counts as the limit does.
"""

import os

for name in [name for name in os.environ if name.startswith(("VNCE_", "PG"))]:
    del os.environ[name]
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
