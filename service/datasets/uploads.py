"""Bodies of uploads: bounded and hashed while they arrive, never held in memory."""

import hashlib
import re
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, cast

from fastapi import Request
from starlette.requests import ClientDisconnect

from service.datasets.readers.sniffing import recognise
from service.datasets.vocabulary import DatasetFormat
from service.http.content_coding import refuse_content_coding
from service.http.problems import ProblemCode, ProblemError, ProblemItem

# Larger bodies continue on the disk.
_SPOOL_BYTES = 2**20
# What curl says where it is told nothing, of tables of every format.
_CURL_TYPE = "application/x-www-form-urlencoded"
_HEAD_BYTES = 64
_DIGESTS = {"sha-256": "sha256", "sha-512": "sha512"}
# One member of a structured dictionary of byte sequences: RFC 9530, RFC 8941.
_MEMBER = re.compile(r"\s*([a-z0-9*_.-]+)=:([A-Za-z0-9+/=]*):\s*")


@dataclass(frozen=True)
class Upload:
    """A body that has arrived whole."""

    file: BinaryIO
    sha256: str
    size: int


@asynccontextmanager
async def receive(request: Request, limit: int) -> AsyncIterator[Upload]:
    """Yield a request's body as a temporary file, which is gone afterwards.

    Raises `ProblemError`: 415 for a content coding, a form, or lines that `curl -d` has joined; 413
    at once if the announced length is above `limit` bytes, else as soon as more has arrived; 400
    for a body that ends early; 422 for one that is not what its `Content-Digest` or `Repr-Digest`
    says.
    """
    refuse_content_coding(request)
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type.startswith("multipart/"):
        raise _not_raw("A form is no table")
    expected = _expected_digests(request)
    announced = _announced_length(request, limit)
    hashes = {name: hashlib.new(name) for name in {"sha256", *(name for name, _ in expected)}}
    size, has_line_end = 0, False
    with SpooledTemporaryFile(_SPOOL_BYTES) as file:
        try:
            async for chunk in request.stream():
                size += len(chunk)
                if size > limit:
                    raise _too_large(limit)
                for running in hashes.values():
                    running.update(chunk)
                file.write(chunk)
                has_line_end = has_line_end or b"\n" in chunk or b"\r" in chunk
        except ClientDisconnect as error:
            raise _cut_off(size, announced) from error
        if announced is not None and size != announced:
            raise _cut_off(size, announced)
        for name, digest in expected:
            if hashes[name].digest() != digest:
                raise _damaged()
        file.seek(0)
        head = file.read(_HEAD_BYTES)
        if content_type == _CURL_TYPE and not has_line_end and _may_be_csv(head):
            raise _not_raw("The body has no line ends, which `curl -d` takes out")
        # A SpooledTemporaryFile has all methods of a binary file and not its type.
        yield Upload(cast(BinaryIO, file), hashes["sha256"].hexdigest(), size)


def _may_be_csv(head: bytes) -> bool:
    """Return whether a file that begins so may be CSV."""
    return bool(head.strip()) and recognise(head) is DatasetFormat.CSV


def _not_raw(what: str) -> ProblemError:
    return ProblemError(
        ProblemCode.UNSUPPORTED_MEDIA_TYPE,
        f"{what}: send the raw bytes of the file, as `curl --data-binary @FILE` does.",
    )


def _announced_length(request: Request, limit: int) -> int | None:
    text = request.headers.get("content-length", "")
    if not text.isdigit():
        return None
    if int(text) > limit:
        raise _too_large(limit)
    return int(text)


def _expected_digests(request: Request) -> list[tuple[str, bytes]]:
    """Return (algorithm, digest) of what the client says; algorithms not known are passed over."""
    found = []
    for header in ("content-digest", "repr-digest"):
        for part in request.headers.get(header, "").split(","):
            if not part.strip():
                continue
            member = _MEMBER.fullmatch(part)
            if member is None:
                raise ProblemError(
                    ProblemCode.VALIDATION_FAILED,
                    f"The header {header} must look like sha-256=:BASE64: (RFC 9530).",
                    errors=[ProblemItem(message="Cannot be read.", parameter=header)],
                )
            if member[1] in _DIGESTS:
                found.append((_DIGESTS[member[1]], _decode(member[2])))
    return found


def _decode(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""  # the digest of nothing that can be sent


def _too_large(limit: int) -> ProblemError:
    return ProblemError(
        ProblemCode.PAYLOAD_TOO_LARGE,
        f"An upload may hold {limit} bytes at most, set by VNCE_MAX_BODY_BYTES. Nothing was "
        "stored.",
        # The rest of the body is not read, so the connection cannot be used again.
        headers={"Connection": "close"},
    )


def _cut_off(size: int, announced: int | None) -> ProblemError:
    of_all = "" if announced is None else f" of {announced}"
    return ProblemError(
        ProblemCode.INVALID_REQUEST,
        f"The body ended after {size}{of_all} bytes; nothing was stored.",
        headers={"Connection": "close"},
    )


def _damaged() -> ProblemError:
    return ProblemError(
        ProblemCode.VALIDATION_FAILED,
        "The body is not what its digest says: it was damaged or cut off on the way. Nothing was "
        "stored; send it again.",
        errors=[ProblemItem(message="Does not fit the body.", parameter="content-digest")],
    )
