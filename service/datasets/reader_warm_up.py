"""A first reading in the fork server; the last that `sandbox` has it import.

It sets up in libraries what would take every reader half a second.
"""

import pyarrow as pa

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import read_dataset
from service.datasets.stored_table import to_parquet

LIMITS = ReadLimits(max_cells=100, max_columns=10, max_name_length=10, max_decoded_bytes=10_000)

pa.set_cpu_count(1)
dataset = read_dataset(b"a,b\n1,<2\n3,NA\n", ReadOptions(), LIMITS)
read_dataset(to_parquet(dataset.table), ReadOptions(), LIMITS)
