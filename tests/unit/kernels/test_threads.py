"""Work in threads: no library starts further threads, whenever it is loaded."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from threadpoolctl import threadpool_info

from sfumato.kernels.threads import in_threads

SCRIPT = """
from threadpoolctl import threadpool_info
from sfumato.kernels.threads import in_threads

def work(number):
    import sklearn.ensemble  # loads OpenMP, if nothing has before
    return number, sorted({one["num_threads"] for one in threadpool_info()})

print(in_threads(work, range(3), 2))
"""


def test_each_thread_has_one_thread_of_every_library() -> None:
    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=free, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[(0, [1]), (1, [1]), (2, [1])]"


def test_limits_end_with_the_work_and_errors_are_raised() -> None:
    in_threads(str, [1])  # loads what is loaded
    before = [one["num_threads"] for one in threadpool_info()]
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda number: 1 / number, [1, 0])
    assert [one["num_threads"] for one in threadpool_info()] == before
