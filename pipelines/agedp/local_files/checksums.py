"""Checksums of confidential files: every changed byte is detected, in any position of the format.

The checksums of the Parquet format cover the pages, but neither their headers nor the footer; a changed bit there can
change values. So a CRC-32 of the complete file is inserted between the last page and the footer. Pages are located by
their offset from the beginning and the footer by its length from the end, so every Parquet reader reads the file.

>>> content = checked_parquet(pa.table({"day": [1, 2, 3]}))
>>> pq.read_table(pa.BufferReader(content))["day"].to_pylist()
[1, 2, 3]

A JSON object contains the checksum of all its other keys. Files of both kinds without a checksum were written by an
earlier version and are accepted.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Iterable, Mapping
from typing import IO, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_MARK: Final = b"AGDP"
_CHECK_BYTES: Final = len(_MARK) + 4
_ENDING: Final = 8  # the length of the footer, in four bytes, and four magic bytes
_KEY: Final = "checksum"


def checked_parquet(table: pa.Table, **options: object) -> bytes:
    """Return a table as a Parquet file (zstd unless given) with its checksum, readable by every Parquet reader.

    `options` are passed to `pyarrow.parquet.write_table`.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True, **{"compression": "zstd", **options})
    content = memoryview(sink.getvalue())
    footer = _footer_offset(content)
    check = _MARK + _crc(content[:footer], content[footer:])
    return b"".join((content[:footer], check, content[footer:]))


def write_checked_parquet(stream: IO[bytes], schema: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write tables to a stream as one Parquet file (zstd) with its checksum; in memory is one table at a time."""
    sink = _ChecksumStream(stream)
    with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, compression="zstd", write_page_checksum=True) as writer:
        for table in tables:
            writer.write_table(table.cast(schema))
        sink.keep_rest()
    sink.write_rest()


class _ChecksumStream(io.RawIOBase):
    """A stream that counts its bytes in a checksum, and keeps the last ones, in which the footer is."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._check, self._size = stream, 0, 0
        self._rest: bytearray | None = None

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, content: Any) -> int:  # noqa: ANN401  (any buffer)
        self._size += len(content)
        self._check = zlib.crc32(content, self._check)
        if self._rest is None:
            return self._stream.write(content)
        self._rest += content
        return len(content)

    def keep_rest(self) -> None:
        """Keep what is written from now on."""
        self._rest = bytearray()

    def write_rest(self) -> None:
        """Write what was kept, with the checksum of everything before the footer."""
        rest = memoryview(bytes(self._rest or b""))
        footer = _footer_offset(rest)
        self._stream.write(b"".join((rest[:footer], _MARK + self._check.to_bytes(4, "big"), rest[footer:])))


def check_parquet(content: bytes) -> None:
    """Compare a Parquet file with its checksum, if it has one.

    Raises:
        ValueError: they differ.
    """
    view = memoryview(content)
    footer = _footer_offset(view)
    check = bytes(view[max(footer - _CHECK_BYTES, 0) : max(footer, 0)])
    if check.startswith(_MARK) and check != _MARK + _crc(view[: footer - _CHECK_BYTES], view[footer:]):
        raise ValueError("the checksum differs")


def _footer_offset(content: memoryview) -> int:
    return len(content) - _ENDING - int.from_bytes(content[-_ENDING : -_ENDING // 2], "little")


def _crc(pages: memoryview, footer: memoryview) -> bytes:
    return zlib.crc32(footer, zlib.crc32(pages)).to_bytes(4, "big")


def checked_json(record: Mapping[str, Any]) -> bytes:
    """Return a JSON object with the checksum of its keys.

    >>> read_checked_json(checked_json({"rows": 144}))
    {'rows': 144}
    """
    return json.dumps({**record, _KEY: _checksum(record)}, sort_keys=True).encode()


def read_checked_json(content: bytes) -> dict[str, Any]:
    """Return the object that `checked_json` encoded.

    Raises:
        ValueError: it is not a JSON object, or its checksum differs.
    """
    record = json.loads(content)
    if not isinstance(record, dict):
        raise ValueError("it is not a JSON object")
    if _KEY in record and record.pop(_KEY) != _checksum(record):
        raise ValueError("the checksum differs")
    return record


def _checksum(record: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())
