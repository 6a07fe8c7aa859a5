"""The service's environment has no numpy: pyarrow must not need it."""

import subprocess
import sys

SCRIPT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "pandas", "torch"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())

import io
import pyarrow as pa
import pyarrow.parquet as pq
from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.reading import read_dataset
from service.datasets.stored_table import from_parquet, to_parquet

table = pa.table({"a": [1.5, None, 3.0], "t": ["<0.5", "2", None], "n": [1, 2, None]})
parquet, arrow = io.BytesIO(), io.BytesIO()
pq.write_table(table, parquet)
with pa.ipc.new_file(arrow, table.schema) as writer:
    writer.write_table(table)
csv = b"a,t,n\\n1.5,<0.5,1\\n,2,2\\n3.0,,\\n" * 1
json = b'{"a": [1.5, null, 3.0], "t": ["<0.5", "2", null], "n": [1, 2, null]}'
limits = ReadLimits(1000, 10, 50, 100_000)
tables = [
    read_dataset(content, ReadOptions(na_values=["-9"]), limits).table
    for content in (csv, json, parquet.getvalue(), arrow.getvalue())
]
assert all(from_parquet(to_parquet(other)).equals(tables[0]) for other in tables)
assert "numpy" not in sys.modules
print("read")
"""


def test_every_format_is_read_without_numpy():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "read\n", done.stderr
