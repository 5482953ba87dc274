"""Numerical kernels: pure functions of arrays, compiled where speed matters, each citing the paper it implements.

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
SpecialValues = tuple[tuple[float, float], ...] | None
"""The values of a column that many records share, each with the share of its records; none where they are not known."""

NULL = np.uint64(1 << 63)
"""The value that represents a null in a cell's address; no lattice integer or category index is that large."""
