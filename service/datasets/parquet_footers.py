"""What a Parquet file announces, told from its footer alone.

A run of equal values takes a few bytes and unfolds to any number of them, and a compressed page
to any size, so both are counted before anything is decoded.
Source: Apache Parquet format, "File format" and "Encodings".
"""

from collections.abc import Iterator

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
    """Return the size of all columns once decoded, in bytes."""
    return sum(
        max(chunk.total_uncompressed_size, chunk.num_values * _VALUE_BYTES[chunk.physical_type])
        for chunk in _chunks(metadata)
    )


def without_dictionaries(metadata: pq.FileMetaData) -> set[str]:
    """Return the columns with a page of an encoding that Arrow cannot read as a dictionary."""
    return {
        chunk.path_in_schema
        for chunk in _chunks(metadata)
        if any(encoding.startswith("DELTA_") for encoding in chunk.encodings)
    }


def _chunks(metadata: pq.FileMetaData) -> Iterator[pq.ColumnChunkMetaData]:
    for group in range(metadata.num_row_groups):
        row_group = metadata.row_group(group)
        for column in range(row_group.num_columns):
            yield row_group.column(column)
