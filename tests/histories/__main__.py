"""Print the stories of a notion, one a line: `python -m tests.histories NOTION FIRST COUNT DAYS`."""

from __future__ import annotations

import json
import sys

from tests.histories.stories import story, told

if __name__ == "__main__":
    notion, (first, count, days) = sys.argv[1], map(int, sys.argv[2:])
    for seed in range(first, first + count):
        print(json.dumps(told(story(notion, str(seed), length=days))))
