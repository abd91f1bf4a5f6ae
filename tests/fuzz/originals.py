"""Sound files to spoil: every layout in the publishers' exact format; and the project's own reading of a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

from agedp.store.file_identity import read_header
from agedp_data.datasets.csv_parsing import parse_lines
from agedp_data.datasets.filesystem import list_input_files, read_lines, split_into_chunks
from agedp_data.datasets.registry import layout_of
from agedp_data.datasets.synthetic.ausgrid import write_ausgrid
from agedp_data.datasets.validation import NamedColumns, ReadingRules
from tests.agedp_data.datasets.parsing import Settled, settle
from tests.fuzz import plain_reader
from tests.fuzz.plain_reader import Long, Read

_FOUR = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) "
_LONDON = {
    "publisher": (_FOUR, "Std,", "", "%Y-%m-%d %H:%M:%S.0000000", "\r\n"),
    "older": (_FOUR + ",Acorn,Acorn_grouped", "ToU,", ",ACORN-C,Affluent", "%Y-%m-%d %H:%M:%S.0000000", "\r\n"),
    "sample": (_FOUR + ",Acorn,Acorn_grouped", "Std,", ",ACORN-,ACORN-", "%d/%m/%Y %H:%M:%S", "\r\n"),
    "kaggle": ("LCLid,tstp,energy(kWh/hh)", "", "", "%Y-%m-%d %H:%M:%S", "\n"),
    "extract": ("LCLid,DateTime,KWH/hh (per half hour)", "", "", "%Y-%m-%d %H:%M:%S", "\n"),
}
SHAPE = Long("meter", "read at", "Wh", plain_reader.dotted, 1, ("NA", "-9"), end=False)
NAMED = NamedColumns("meter", "read at", "%d.%m.%Y %H:%M", "start", "UTC", "UTC", "Wh", "Wh", ("NA", "-9"))
ISO_SHAPE = Long("id", "time", "kWh", partial(plain_reader.iso, offsets=True), 1000, ("", "Null"), end=True)
ISO_NAMED = NamedColumns("id", "time", "iso", "end", "UTC", "UTC", "kWh", "kWh", ("Null", ""))


@dataclass(frozen=True)
class Original:
    """A sound file, how it is described to the project, and who reads it a second time."""

    dataset: str
    data: bytes
    rules: ReadingRules
    read: Callable[[bytes], Read]


def _london(form: str) -> bytes:
    header, before, after, stamp, end = _LONDON[form]
    lines = [header]
    for home in ("MAC000002", "MAC000003"):
        for step in range(1, 26):
            at = datetime(2013, 2, 28, 18) + step * timedelta(minutes=30)
            energy = ["Null", " 0.143 ", " 0 ", " 1.4529999 ", " 0.5"][step * 7 % 5] if step % 9 else " 0.201 "
            lines.append(f"{home},{before}{at.strftime(stamp)},{energy}{after}")
        lines.append(lines[-3])
    lines.append(f"MAC000002,{before}{datetime(2012, 12, 19, 12, 37, 27).strftime(stamp)},Null{after}")
    return (end.join(lines) + end).encode()


def _long() -> bytes:
    lines = ["note,Wh,read at,meter"]
    for home in ("k1", "k,2", "\u00e93"):
        for step in range(20):
            at = datetime(2013, 10, 26, 20) + step * timedelta(minutes=30)
            energy = ["NA", "143", "-9", "0", "1200.4"][step * 3 % 5]
            name = f'"{home}"' if "," in home else home
            lines.append(f"x{step},{energy},{at:%d.%m.%Y %H:%M},{name}")
    return ("\n".join(lines) + "\n").encode()


def _iso() -> bytes:
    lines = ["id,time,kWh"]
    for home in ("h1", "h2"):
        for step in range(12):
            at = datetime(2013, 2, 28, 21) + step * timedelta(minutes=30)
            stamps = [f"{at}", f"{at:%Y-%m-%dT%H:%M}", f"{at}Z", f"{at + timedelta(hours=1)}+01:00", f"{at}.000-0000"]
            lines.append(f"{home},{stamps[step % 5]},0.{step:03d}")
    lines.append("h2,2013-02-29T00:30Z,0.5")
    return ("\n".join(lines) + "\n").encode()


def _ausgrid(year: int) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder)
        first = date(year, 10, 5 if year == 2012 else 1)  # the clock goes forward on the first Sunday
        write_ausgrid(path, households=3, first_day=first, days=4, seed=3)
        return next(path.glob("*.csv")).read_bytes()


@cache
def originals() -> dict[str, Original]:
    """All of them, by name."""
    found = {
        f"london {form}": Original("london", _london(form), ReadingRules(), plain_reader.london) for form in _LONDON
    }
    for year in (2010, 2011, 2012):
        found[f"ausgrid {year}"] = Original("ausgrid", _ausgrid(year), ReadingRules(), plain_reader.ausgrid)
    found["long"] = Original("long", _long(), ReadingRules(columns=NAMED), lambda data: plain_reader.long(data, SHAPE))
    found["long iso"] = Original(
        "long", _iso(), ReadingRules(columns=ISO_NAMED), lambda data: plain_reader.long(data, ISO_SHAPE)
    )
    return found


def read_file(path: Path, original: Original, *, chunk_bytes: int) -> Settled:
    """Read one file as the project does, in chunks, without the store."""
    layout = layout_of(original.dataset, original.rules.columns)
    source = list_input_files([str(path)]).sources[0]
    header, start = read_header(source, layout)
    if header is None:
        return Settled(0, 0, 0, {})
    chunks = split_into_chunks(source, start=start, chunk_bytes=chunk_bytes)
    batches = (data for chunk in chunks for data in read_lines(chunk, batch_bytes=chunk_bytes))
    parsed = (parse_lines(data, layout=layout, header=header, rules=original.rules) for data in batches)
    return settle(layout, original.rules, parsed)
