"""Pure functions of arrays, compiled where it matters, each with the paper and equation it implements.

Compiled code is built without fused or reordered floating-point operations, so that a copy has the same bytes on
every machine whose arithmetic follows IEEE 754.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

NULL = np.uint64(1 << 63)
"""The value that stands for a null in a cell's address: no lattice integer or category index reaches it."""
