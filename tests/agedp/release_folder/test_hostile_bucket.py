"""A bucket to which others may write: no name of its listing is written outside of the local copy of the release."""

from __future__ import annotations

from datetime import date, timedelta

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFile

from agedp.release_folder.folder_writer import RemoteFolder
from agedp.release_verification import ReleaseFolder
from agedp_data.errors import InputError

FIRST = date(2013, 1, 1)
TABLE = "daily_averages_use"
MONTH = "daily_averages_daily_mean/published_month=2013-01"
REFUSED = (
    f"{TABLE}/../../planted",
    f"{TABLE}/../../../planted",
    f"{TABLE}/../../roster/planted.parquet",
    f"{TABLE}/published_month=../../../planted",
    f"{TABLE}//planted",
    f"{TABLE}/..\\..\\planted",
    f"{TABLE}/C:planted",
    f"{TABLE}/planted\u202egpj.exe",
    f"{TABLE}/{'planted' * 40}",
    f"{TABLE}/{'a/' * 600}planted",
)
HARMLESS = ("../planted", "/planted", TABLE, f"{TABLE}/", "..", f"{TABLE}/published_month=2013-01/a/b/planted")
"""Not of a release, or below it."""


def tree(folder, *, without):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if not path.is_relative_to(without)}


def test_no_object_of_a_bucket_is_written_outside_of_the_copy(bucket, tmp_path):
    import s3fs

    system, prefix = s3fs.S3FileSystem(skip_instance_cache=True), f"{tmp_path.name}/open"
    copy = tmp_path / "house" / "confidential" / "release"
    copy.mkdir(parents=True)
    before, remote = tree(tmp_path, without=copy), RemoteFolder(f"{bucket}/{prefix}", copy)
    for key in (*REFUSED, *HARMLESS):
        place = {"Bucket": bucket.partition("://")[2], "Key": f"{prefix}/{key}"}
        system.call_s3("put_object", **place, Body=b"planted")
        if key in REFUSED:
            with pytest.raises(InputError, match=r"^.output. release: an object has a name that is no") as refused:
                remote.fetch()
            assert "planted" not in str(refused.value)
            assert refused.value.private.isprintable()
        else:
            remote.fetch()
        system.call_s3("delete_object", **place)
        assert tree(tmp_path, without=copy) == before, key


def test_a_run_refuses_a_hostile_object_before_it_draws_and_heals_its_own_tables(house):
    system, root = fsspec.filesystem("memory"), f"/{house.folder.name}/open"
    house.fill([FIRST + timedelta(days=i) for i in range(3)])
    house.write(FIRST, FIRST + timedelta(days=2))
    house.edit(('release = "release"', f'release = "memory:/{root}"\nlayout = "monthly"'))
    house.run(today=date(2013, 1, 2))
    hostile, own, stray = (
        f"{root}/{name}" for name in (REFUSED[0], "my_table/published_month=2013-01/mine", f"{MONTH}/folder/planted")
    )
    for name in (own, stray):
        system.pipe_file(name, b"planted")
    system.store[hostile] = MemoryFile(system, hostile, b"planted")
    with pytest.raises(InputError, match="no plain path below the URL; remove it"):
        house.run(today=date(2013, 1, 4))
    assert len(house.rows()) == 1
    del system.store[hostile]
    house.run(today=date(2013, 1, 4))
    assert len(house.rows()) == 3
    assert system.cat_file(own) == b"planted"
    assert not system.exists(stray)
    ReleaseFolder(house.folder / "confidential" / "release").verify()
