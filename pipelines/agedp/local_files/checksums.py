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
    """Return a table as a Parquet file (zstd unless given) with its checksum, readable by every Parquet reader.

    `options` are passed to `pyarrow.parquet.write_table`.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, write_page_checksum=True, **{"compression": "zstd", **options})
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
