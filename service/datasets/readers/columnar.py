"""Parquet and Arrow to columns of doubles; types that are no numbers are refused by name."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from service.datasets.options import ReadLimits, ReadOptions
from service.datasets.readers.cells import LARGEST_EXACT_INTEGER, CellLedger
from service.datasets.readers.names import check_names, label_columns
from service.datasets.readers.parsed import ParsedTable
from service.datasets.readers.refusals import shorten, too_large, unreadable
from service.datasets.readers.tokens import Vocabulary
from service.datasets.schemas import Change
from service.datasets.vocabulary import ChangeCode, DatasetFormat
from service.http.problems import ProblemItem

_BATCH_CELLS = 500_000
# Longer texts are no numbers; cutting them keeps a repeated long text from filling the memory.
_TEXT_BYTES = 400
# A type of somebody's own, written as one of Arrow's, with what it means beside it.
_EXTENSION = b"ARROW:extension:name"
ARROW_FILE_MAGIC = b"ARROW1\0\0"


def read_parquet(file: BinaryIO, options: ReadOptions, limits: ReadLimits) -> ParsedTable:
    """Return the table in a Parquet file; what its footer announces is judged first."""
    with _damage_reported("Parquet"):
        file.seek(0)
        source = pa.PythonFile(file, mode="r")
        metadata = pq.read_metadata(source)
        schema = pq.read_schema(source)
        columns = _Columns(schema, options, limits)
        columns.check_size(metadata.num_rows)
        _check_decoded_bytes(metadata, limits)
        texts = [field.name for field in schema if _is_text(field.type)]
        try:
            # As dictionaries, texts take the room of the different ones only.
            columns.add_all(_parquet_batches(source, len(schema), texts))
        except (pa.ArrowException, OSError):
            # Texts written as differences cannot be; Arrow has no type of its own for saying so.
            if not texts:
                raise
            columns = _Columns(schema, options, limits)
            columns.add_all(_parquet_batches(source, len(schema), []))
        return columns.parsed(DatasetFormat.PARQUET)


def _parquet_batches(
    source: pa.NativeFile, num_columns: int, dictionaries: list[str]
) -> Iterator[pa.RecordBatch]:
    parquet = pq.ParquetFile(source, read_dictionary=dictionaries)
    batch_rows = max(1, _BATCH_CELLS // max(num_columns, 1))
    yield from parquet.iter_batches(batch_rows, use_threads=False)


def read_arrow(file: BinaryIO, options: ReadOptions, limits: ReadLimits) -> ParsedTable:
    """Return the table in an Arrow IPC file (Feather) or stream, batch by batch."""
    with _damage_reported("Arrow"):
        # A file is a stream between a magic number and a footer.
        file.seek(0)
        is_file = file.read(len(ARROW_FILE_MAGIC)) == ARROW_FILE_MAGIC
        file.seek(len(ARROW_FILE_MAGIC) if is_file else 0)
        with pa.ipc.open_stream(pa.PythonFile(file, mode="r")) as reader:
            columns = _Columns(reader.schema, options, limits)
            columns.add_all(_validated(reader))
        return columns.parsed(DatasetFormat.ARROW)


def _validated(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        # Offsets and null counts are taken as written; wrong ones would read anywhere.
        batch.validate(full=True)
        yield batch


class _Columns:
    """The columns of one columnar upload while its batches arrive."""

    def __init__(self, schema: pa.Schema, options: ReadOptions, limits: ReadLimits) -> None:
        self._limits = limits
        self._labels = _label_columns(schema)
        self._fields = [field for field in schema if field.name not in self._labels]
        self._numbers = [i for i, field in enumerate(schema) if field.name not in self._labels]
        self._names = [field.name for field in self._fields]
        check_names(self._names, limits)
        self._ledger = CellLedger(Vocabulary.of(options))
        self._ledger.labels = label_columns(self._names, options)
        for place in self._ledger.labels:
            self._fields[place] = _as_text(self._fields[place])
        _refuse_types(self._fields)
        self._chunks: list[list[pa.Array]] = [[] for _ in self._fields]
        self._num_rows = 0

    def add_all(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Convert the rows of all batches, as many as are allowed."""
        for batch in batches:
            # A column of nulls takes no room until it is converted, however long it is.
            self.check_size(self._num_rows + batch.num_rows)
            for column, (number, field) in enumerate(zip(self._numbers, self._fields, strict=True)):
                self._chunks[column].append(self._convert(batch.column(number), field.type, column))
            self._num_rows += batch.num_rows

    def check_size(self, num_rows: int) -> None:
        """Raise `ProblemError` where so many rows are more cells than are allowed."""
        width = len(self._fields) + len(self._labels)
        if num_rows * width > self._limits.max_cells:
            raise too_large(
                f"The table has {num_rows} rows and {width} columns, {num_rows * width} cells.",
                "max_cells",
                self._limits.max_cells,
            )

    def parsed(self, dataset_format: DatasetFormat) -> ParsedTable:
        """Return what was read."""
        return ParsedTable(
            format=dataset_format,
            names=self._names,
            columns=[pa.chunked_array(chunks, pa.float64()) for chunks in self._chunks],
            ledger=self._ledger,
            changes=list(self._changes()),
        )

    def _convert(self, values: pa.Array, dtype: pa.DataType, column: int) -> pa.Array:
        self._ledger.count_missing(column, "null", values.null_count)
        if _is_text(dtype):
            # Long labels may differ in their ends alone.
            is_label = column in self._ledger.labels
            texts = pc.cast(values, pa.string()) if is_label else _short_texts(values)
            return self._ledger.read(texts, range(column, column + 1), self._num_rows + 1)[0]
        if pa.types.is_boolean(dtype):
            values = pc.cast(values, pa.uint8())
        if pa.types.is_decimal(dtype):
            # By way of text: the direct cast does not give the nearest double.
            values = pc.cast(values, pa.string())
        if pa.types.is_int64(dtype) or pa.types.is_uint64(dtype):
            self._ledger.large_integers[column] += _num_large(values)
        doubles = pc.cast(values, pa.float64(), safe=False)
        return self._ledger.take_numbers(doubles, column, self._num_rows + 1)

    def _changes(self) -> Iterator[Change]:
        if self._labels:
            yield Change(
                code=ChangeCode.INDEX_COLUMN_EXCLUDED,
                message="Columns that the file declares to be row labels are no variables.",
                columns=sorted(self._labels),
                count=len(self._labels),
            )
        for code, message, is_such in (
            (ChangeCode.TEXT_READ_AS_NUMBERS, "Texts were read like CSV cells.", _is_text),
            (
                ChangeCode.BOOLEANS_READ_AS_NUMBERS,
                "true was read as 1, false as 0.",
                pa.types.is_boolean,
            ),
            (
                ChangeCode.ROUNDED_TO_DOUBLE,
                "Decimal numbers were rounded to the nearest double.",
                pa.types.is_decimal,
            ),
        ):
            names = [
                field.name
                for column, field in enumerate(self._fields)
                if is_such(field.type) and column not in self._ledger.labels
            ]
            if names:
                yield Change(code=code, message=message, columns=names, count=len(names))


def _label_columns(schema: pa.Schema) -> set[str]:
    """Return the columns that hold a data frame's index, by pandas' metadata or their name."""
    labels = {name for name in schema.names if name.startswith("__index_level_")}
    described = (schema.metadata or {}).get(b"pandas")
    if described:
        try:
            index = json.loads(described)["index_columns"]
        except (ValueError, KeyError, TypeError) as error:
            raise pa.ArrowInvalid("the metadata written by pandas is damaged") from error
        # A range needs no column and is described by an object instead of a name.
        labels |= {name for name in index if isinstance(name, str)} & set(schema.names)
    return labels


def _is_text(dtype: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(dtype) or pa.types.is_large_string(dtype) or dtype == pa.string_view()
    )


def _as_text(field: pa.Field) -> pa.Field:
    """Return the field of categories that are texts as one of texts, another as it is."""
    is_category = pa.types.is_dictionary(field.type) and _is_text(field.type.value_type)
    return field.with_type(pa.string()) if is_category else field


def _is_number(dtype: pa.DataType) -> bool:
    tests = (
        pa.types.is_floating,
        pa.types.is_integer,
        pa.types.is_decimal,
        pa.types.is_boolean,
        pa.types.is_null,
    )
    return any(test(dtype) for test in tests)


def _refuse_types(fields: Iterable[pa.Field]) -> None:
    refused = [
        field
        for field in fields
        if _EXTENSION in (field.metadata or {})
        or not (_is_number(field.type) or _is_text(field.type))
    ]
    if refused:
        items = [
            ProblemItem(
                message=f"Type {shorten(_type_name(field))} holds no numbers.",
                column=shorten(field.name),
            )
            for field in refused
        ]
        listed = ", ".join(repr(item.column) for item in items[:10])
        raise unreadable(
            f"There are categories, dates, lists or the like in {listed}. Leave such columns out, "
            "or convert them to numbers where that has a meaning.",
            *items,
        )


def _type_name(field: pa.Field) -> str:
    extension = (field.metadata or {}).get(_EXTENSION)
    return str(field.type) if extension is None else extension.decode(errors="replace")


def _short_texts(values: pa.Array) -> pa.Array:
    """Return texts, cut and as plain strings, of an array that may be a dictionary."""
    if isinstance(values, pa.DictionaryArray):
        return _cut(values.dictionary).take(values.indices)
    return _cut(values)


def _cut(texts: pa.Array) -> pa.Array:
    texts = pc.cast(texts, pa.string())
    is_long = pc.greater(pc.binary_length(texts), _TEXT_BYTES)
    # The mark keeps the beginning of a long row of digits from being read as a number.
    short = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(texts, 0, _TEXT_BYTES // 4), "…", ""
    )
    return pc.if_else(is_long, short, texts)


def _num_large(integers: pa.Array) -> int:
    limit = pa.scalar(LARGEST_EXACT_INTEGER, integers.type)
    is_large = pc.greater(integers, limit)
    if pa.types.is_int64(integers.type):
        is_large = pc.or_(is_large, pc.less(integers, pc.negate(limit)))
    return pc.sum(is_large).as_py() or 0


def _check_decoded_bytes(metadata: pq.FileMetaData, limits: ReadLimits) -> None:
    # Columns are not looked at within a row group: pyarrow 26 ends the process where the footer
    # says something impossible of one.
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    num_bytes = sum(group.total_byte_size for group in groups)
    if num_bytes > limits.max_decoded_bytes:
        raise too_large(
            f"The table would unfold to {num_bytes} bytes.",
            "max_decoded_bytes",
            limits.max_decoded_bytes,
        )


@contextmanager
def _damage_reported(format_name: str) -> Iterator[None]:
    try:
        yield
    except MemoryError:  # Arrow's own is also an ArrowException
        raise
    # Damaged files surface as any of these, depending on the byte that is wrong.
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = shorten(str(error).partition("\n")[0])
        raise unreadable(f"The {format_name} file is damaged or cut off: {reason}") from error
