"""Imported before NumPy, here and in the commands that tests start: BLAS computes in one thread. Its threads wait for
one another by spinning, which takes ten times as long where other programs want the CPUs, too."""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"
