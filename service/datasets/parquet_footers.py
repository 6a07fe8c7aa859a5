"""What a Parquet file announces, told from its footer alone.

A run of equal values takes a few bytes and unfolds to any number of them, and a compressed page
to any size, so both are counted before anything is decoded.
Source: Apache Parquet format, "File format" and "Encodings".
"""

import pyarrow as pa
import pyarrow.parquet as pq

# Bytes that Arrow takes for a value, validity not counted; of a text, the number that stands for
# it, since its characters are counted with the pages.
_VALUE_BYTES = {
    "BOOLEAN": 1,
    "INT32": 4,
    "INT64": 8,
    "INT96": 12,
    "FLOAT": 4,
    "DOUBLE": 8,
    "BYTE_ARRAY": 4,
    # Longer ones hold no numbers: decimals of more digits are not read.
    "FIXED_LEN_BYTE_ARRAY": 32,
}


def measure(metadata: pq.FileMetaData) -> int:
    """Return the size of all row groups once decoded, in bytes.

    Columns are not looked at within a row group: pyarrow 26 ends the process where the footer says
    something impossible of one. Raises `pa.ArrowInvalid` for a type that the format does not have.
    """
    columns = [metadata.schema.column(number) for number in range(metadata.num_columns)]
    row_bytes = sum(_value_bytes(column.physical_type) for column in columns)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return sum(max(group.total_byte_size, group.num_rows * row_bytes) for group in groups)


def _value_bytes(physical_type: str) -> int:
    size = _VALUE_BYTES.get(physical_type)
    if size is None:
        raise pa.ArrowInvalid(f"a column is of type {physical_type}")
    return size
