"""The machine instructions of the unrolled GPU loops, counted by kind; needs no GPU.

pip install nvidia-cuda-nvcc-cu12 nvidia-cuda-nvdisasm      (ptxas and nvdisasm; or any CUDA toolkit on the PATH)
python benchmarks/gpu_profile.py
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path

import numba
import numpy as np
from numba import cuda as target

from gpu import CASES
from stagewise.simulation.compiled_run import build_inputs
from stagewise.simulation.gpu.registers import Call, build_call
from stagewise.simulation.oracle import build_oracle
from stagewise.simulation.run import empty_trace

KINDS = {
    "float64": r"D(FMA|MUL|ADD)\b",
    "compared": r"(DSETP|ISETP|FSETP|PLOP3)",
    "selected": r"F?SEL",
    "moved": r"(IMAD\.MOV|IMAD\.U32|MOV|UMOV|LDC|ULDC|CS2R|R2UR)",
    "rough inverses": r"MUFU",
    "branches": r"(BRA|CALL|BSSY|BSYNC|RET)",
}


class Hopper:
    """Stands in for a device: the compiler asks what it can do."""

    compute_capability = (9, 0)


def tool(name: str) -> str:
    """Return where ptxas or nvdisasm is."""
    found = shutil.which(name)
    packed = sorted(Path(sysconfig.get_path("purelib")).glob(f"nvidia/*/bin/{name}"))
    if found is None and not packed:
        sys.exit(f"{name} is missing: pip install nvidia-cuda-nvcc-cu12 nvidia-cuda-nvdisasm")
    return found or str(packed[0])


def instructions(call: Call, costs: int) -> tuple[Counter[str], int]:
    """Return how often each machine instruction stands in a loop, and the registers of a thread."""
    batch = (np.arange(4), np.arange(8), np.int64(0), np.int64(10))
    arguments = (*call.arguments, *batch, *empty_trace(batch[0], costs, runs=(8,))[1:])
    kinds = tuple(numba.typeof(np.array(a) if isinstance(a, np.ndarray) else a) for a in arguments)
    text, _ = target.compile_ptx(call.play.py_func, kinds, cc=(9, 0))
    most = call.play.targetoptions.get("max_registers") or 255
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder, "loop.ptx"), Path(folder, "loop.cubin")
        source.write_text(text)
        assemble = [tool("ptxas"), "-arch=sm_90", "-v", f"-maxrregcount={most}", str(source), "-o", str(binary)]
        said = subprocess.run(assemble, capture_output=True, text=True, check=True).stderr
        listing = subprocess.run(
            [tool("nvdisasm"), "-c", str(binary)], capture_output=True, text=True, check=True
        ).stdout
    found = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+\s+)?([A-Z][A-Z0-9_.]+)", listing)
    return Counter(name for name in found if name != "NOP"), int(re.findall(r"Used (\d+) registers", said)[0])


def main() -> None:
    """Print the table."""
    for name, module in list(sys.modules.items()):
        if name.startswith("numba") and hasattr(module, "get_current_device"):
            module.get_current_device = lambda: Hopper
    print(f"| loop | instructions | {' | '.join(KINDS)} | registers |")
    print("|---" * (3 + len(KINDS)) + "|")
    for name, (policy, world, _) in CASES.items():
        arbiter = build_oracle(policy, world)
        call = build_call(policy, arbiter, build_inputs(policy, arbiter, False))
        if call is not None:
            counted, used = instructions(call, world.costs)
            parts = [sum(n for op, n in counted.items() if re.match(kind, op)) for kind in KINDS.values()]
            print(f"| {name} | {sum(counted.values()):,} | {' | '.join(map(str, parts))} | {used} |", flush=True)


if __name__ == "__main__":
    main()
