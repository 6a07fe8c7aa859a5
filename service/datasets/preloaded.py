"""What the fork server of `sandbox` imports, once, before it forks readers; nobody else does.

What would take each reader half a second: the libraries, and what a first reading sets up. What
may hold a secret leaves the environment: readers do not need it.
"""

import os

for name in [name for name in os.environ if name.startswith(("VNCE_", "PG"))]:
    del os.environ[name]
# Read as pyarrow loads. The system's allocator gives memory back, and counts as the limit does.
os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"

import pyarrow as pa  # noqa: E402

from service.datasets import sandbox  # noqa: E402, F401
from service.datasets.options import ReadLimits, ReadOptions  # noqa: E402
from service.datasets.reading import read_dataset  # noqa: E402
from service.datasets.stored_table import to_parquet  # noqa: E402

LIMITS = ReadLimits(max_cells=100, max_columns=10, max_name_length=10, max_decoded_bytes=10_000)

pa.set_cpu_count(1)
dataset = read_dataset(b"a,b\n1,<2\n3,NA\n", ReadOptions(), LIMITS)
read_dataset(to_parquet(dataset.table), ReadOptions(), LIMITS)
