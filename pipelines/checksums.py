"""Checksums of confidential files: one changed byte is noticed, whatever it means to the format.

A Parquet file's own checksums cover the pages and neither their headers nor the footer; a changed bit there can turn
into other values. So a CRC-32 of the whole file is put between the last page and the footer. Pages are found by their
place from the beginning and the footer by its length from the end, so every reader of Parquet reads the file.

>>> content = checked_parquet(pa.table({"day": [1, 2, 3]}))
>>> pq.read_table(pa.BufferReader(content))["day"].to_pylist()
[1, 2, 3]

A JSON object holds the checksum of its other keys. Files of both kinds that have none were written by an earlier
version, and are read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

_MARK: Final = b"AGDP"
_CHECK_BYTES: Final = len(_MARK) + 4
_ENDING: Final = 8  # the length of the footer, in four bytes, and four magic bytes
_KEY: Final = "checksum"


def checked_parquet(table: pa.Table, **options: object) -> bytes:
    """Return a table as a Parquet file (zstd) with its checksum."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True, **options)
    content = memoryview(sink.getvalue())
    footer = _footer_offset(content)
    check = _MARK + _crc(content[:footer], content[footer:])
    return b"".join((content[:footer], check, content[footer:]))


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
    """Return what `checked_json` was given.

    Raises:
        ValueError: it is no JSON object, or another one than was written.
    """
    record = json.loads(content)
    if not isinstance(record, dict):
        raise ValueError("it is no JSON object")
    if _KEY in record and record.pop(_KEY) != _checksum(record):
        raise ValueError("the checksum differs")
    return record


def _checksum(record: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())
