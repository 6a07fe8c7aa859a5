"""Bytes to characters: byte order marks, declared encodings, and exact positions of what fails."""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import TextIOWrapper
from typing import BinaryIO

from service.datasets.refusals import unreadable
from service.datasets.vocabulary import Encoding
from service.http.problems import ProblemItem

_MARKS: tuple[tuple[bytes, Encoding, set[Encoding]], ...] = (
    # The mark, what it says, and how a file with it may be declared.
    # The longer first: UTF-32's little-endian mark begins with UTF-16's.
    (codecs.BOM_UTF32_LE, Encoding.UTF_32, {Encoding.UTF_32}),
    (codecs.BOM_UTF32_BE, Encoding.UTF_32, {Encoding.UTF_32}),
    (codecs.BOM_UTF8, Encoding.UTF_8, {Encoding.UTF_8}),
    (codecs.BOM_UTF16_LE, Encoding.UTF_16, {Encoding.UTF_16, Encoding.UTF_16_LE}),
    (codecs.BOM_UTF16_BE, Encoding.UTF_16, {Encoding.UTF_16, Encoding.UTF_16_BE}),
)
_READ_BYTES = 2**20


@dataclass(frozen=True)
class TextEncoding:
    """How an upload's bytes become characters."""

    name: Encoding
    detected: bool
    has_mark: bool
    # Whether another encoding was declared for bytes that are also valid, non-ASCII UTF-8.
    is_doubtful: bool

    @contextmanager
    def open(self, file: BinaryIO) -> Iterator[TextIOWrapper]:
        """Yield the file as text from its beginning, line ends kept; leave the file open."""
        file.seek(0)
        text = TextIOWrapper(file, encoding=_codec(self.name, self.has_mark), newline="")
        try:
            yield text
        finally:
            text.detach()


def determine(file: BinaryIO, declared: Encoding | None) -> TextEncoding:
    """Return the encoding of a file, having decoded all of it once.

    Raises `ProblemError` with the position of the first byte that does not fit.
    """
    file.seek(0)
    start = file.read(4)
    marked, allowed = next(
        ((name, allowed) for mark, name, allowed in _MARKS if start.startswith(mark)), (None, set())
    )
    if marked and declared and declared not in allowed:
        raise unreadable(
            f"The file begins with the byte order mark of {marked}, and `encoding={declared}` "
            "was declared. Leave `encoding` out.",
            ProblemItem(message=f"The file's mark says {marked}.", parameter="encoding"),
        )
    if marked is None and declared in (Encoding.UTF_16, Encoding.UTF_32):
        raise unreadable(
            f"The file has no byte order mark, so {declared} does not say which byte comes first. "
            "Set `encoding=utf-16-le` or `encoding=utf-16-be`.",
            ProblemItem(message="The file has no byte order mark.", parameter="encoding"),
        )
    name = marked or declared or Encoding.UTF_8
    _check(file, name, has_mark=marked is not None, declared=declared)
    is_doubtful = name is not Encoding.UTF_8 and marked is None and _is_utf_8(file)
    return TextEncoding(name, declared is None, marked is not None, is_doubtful)


def _codec(name: Encoding, has_mark: bool) -> str:
    return "utf-8-sig" if name is Encoding.UTF_8 and has_mark else name.value


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    file.seek(0)
    while block := file.read(_READ_BYTES):
        yield block


def _check(file: BinaryIO, name: Encoding, *, has_mark: bool, declared: Encoding | None) -> None:
    decoder = codecs.getincrementaldecoder(_codec(name, has_mark))("strict")
    num_bytes, num_lines = 0, 1
    try:
        for block in _blocks(file):
            pending = len(decoder.getstate()[0])
            start = num_bytes - pending
            num_lines += decoder.decode(block).count("\n")
            num_bytes += len(block)
        start = num_bytes - len(decoder.getstate()[0])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        position = start + error.start
        line = num_lines + error.object[: error.start].count(b"\n")
        raise _not_decodable(file, name, declared, position, line) from error


def _not_decodable(
    file: BinaryIO, name: Encoding, declared: Encoding | None, position: int, line: int
) -> Exception:
    file.seek(0)
    start = file.read(1024)
    looks_wide = start.count(b"\0") > len(start) // 4
    example = "utf-16-le" if looks_wide else "cp1252"
    advice = (
        f"Set it, for instance `encoding={example}`."
        if declared is None
        else "Set `encoding` to the one that the file was written in."
    )
    return unreadable(
        f"The file is not {name}: the byte at position {position} (counted from 0), in line "
        f"{line}, cannot be decoded. {advice}",
        ProblemItem(message=f"Byte {position} is not valid {name}.", line=line),
    )


def _is_utf_8(file: BinaryIO) -> bool:
    """Whether the bytes are valid UTF-8 with at least one character beyond ASCII."""
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    is_ascii = True
    try:
        for block in _blocks(file):
            decoder.decode(block)
            is_ascii = is_ascii and block.isascii()
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return not is_ascii
