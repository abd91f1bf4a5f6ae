"""pyarrow converts without pandas after its search was ended, and knows pandas again when a frame is asked for."""

from __future__ import annotations

import subprocess
import sys

from tests.source_path import source_path

_CODE = """
import sys
from agedp_flows.cli.run_commands import end_pandas_search
end_pandas_search()
import numpy as np, pyarrow as pa, pyarrow.compute as pc
table = pa.table({"day": pa.array(np.arange(3)), "text": ["a", "b", None]})
assert pc.sum(table["day"]).as_py() == 3
assert "pandas" not in sys.modules
assert table.to_pandas()["day"].tolist() == [0, 1, 2]
import pandas as pd
assert pa.array(pd.Series([1.0, None])).null_count == 1
end_pandas_search()
assert pa.array(pd.Series([1.0, None])).null_count == 1
"""


def test_pandas_is_imported_for_a_frame_only():
    ended = subprocess.run(
        [sys.executable, "-c", _CODE], env={"PYTHONPATH": source_path()}, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
