"""The C++ loops, compiled on the spot for this machine."""

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_name("loops.cpp")
OPTIONS = ["-O3", "-march=native", "-std=c++17", "-shared", "-fPIC"]
TABLE = np.ctypeslib.ndpointer(dtype=np.float64, flags="C_CONTIGUOUS")
LINEAR = [TABLE, ctypes.c_int, ctypes.c_int, TABLE, TABLE, *[ctypes.c_double] * 3, ctypes.c_long, ctypes.c_uint64]
ARMS = [TABLE, TABLE, ctypes.c_int, *[ctypes.c_double] * 3, ctypes.c_long, ctypes.c_uint64]


def compiler() -> str | None:
    """Return the C++ compiler of this machine, if it has one."""
    return shutil.which("clang++") or shutil.which("g++") or shutil.which("c++")


@cache
def library() -> Any:
    """Return the compiled loops."""
    program = compiler()
    if program is None:
        raise SystemExit("the C++ witness needs clang++ or g++")
    target = Path(tempfile.mkdtemp()) / "loops.so"
    subprocess.run([program, *OPTIONS, "-o", str(target), str(SOURCE)], check=True)
    loops = ctypes.CDLL(str(target))
    for name in ("lc_lucb_fixed", "lc_lucb_fixed_root", "lc_lucb_fresh", "safe_lts_fixed", "oplb_fixed", "opb"):
        function = getattr(loops, name)
        function.restype = ctypes.c_double
        function.argtypes = ARMS if name == "opb" else LINEAR
    return loops
