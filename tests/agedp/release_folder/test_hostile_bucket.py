"""A bucket to which others may write: no name of its listing is written outside of the local copy of the release."""

from __future__ import annotations

import shutil
from datetime import date, timedelta

import pytest

from agedp.release_folder.folder_writer import RemoteFolder
from agedp_data.errors import InputError

FIRST = date(2013, 1, 1)
TABLE = "daily_averages_use"
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


@pytest.fixture
def planted(house, bucket):
    """Let a population be released to a bucket; return the run's house, and what puts an object beside the release."""
    import s3fs

    system, root = s3fs.S3FileSystem(skip_instance_cache=True), f"{bucket.partition('://')[2]}/{house.folder.name}"
    house.fill([FIRST + timedelta(days=i) for i in range(3)])
    house.write(FIRST, FIRST + timedelta(days=2))
    house.edit(('release = "release"', f'release = "s3://{root}"'))
    house.run(today=date(2013, 1, 2))
    name, _, prefix = root.partition("/")

    def put(key):
        system.call_s3("put_object", Bucket=name, Key=f"{prefix}/{key}", Body=b"planted")
        return lambda: system.call_s3("delete_object", Bucket=name, Key=f"{prefix}/{key}")

    return house, f"s3://{root}", put


def test_no_object_is_written_outside_of_the_copy(planted):
    house, url, put = planted
    copy = house.folder / "confidential" / "release"
    before, remote = tree(house.folder, without=copy), RemoteFolder(url, copy)
    for key in (*REFUSED, *HARMLESS):
        remove = put(key)
        if key in REFUSED:
            with pytest.raises(InputError, match=r"^.output. release: an object has a name that is no") as refused:
                remote.fetch()
            assert "planted" not in str(refused.value)
            assert refused.value.private.isprintable()
        else:
            remote.fetch()
        remove()
        assert tree(house.folder, without=copy) == before, key
    assert [path for path in house.folder.parent.rglob("planted") if not path.is_relative_to(copy)] == []


def test_a_run_refuses_such_an_object_before_it_draws(planted):
    house, _, put = planted
    remove = put(REFUSED[0])
    before = len(house.rows())
    with pytest.raises(InputError, match="no plain path below the URL; remove it"):
        house.run(today=date(2013, 1, 4))
    assert len(house.rows()) == before
    remove()
    put(f"{TABLE}/published_month=2013-01/a/b/planted")  # a folder of the user's own
    house.run(today=date(2013, 1, 4))
    assert len(house.rows()) == before + 2
    shutil.rmtree(house.folder / "confidential" / "release")
    house.run(today=date(2013, 1, 4))
