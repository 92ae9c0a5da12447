"""Where the time of a first simulation goes: processor time of each stage of compiling, on an empty cache.

A process imports stagewise and simulates the problem of README.md for a thousand rounds. The whole time counts its
start, its imports and the simulation. Stages are those of Numba and of LLVM, each without the stages within it.

python benchmarks/compiling.py [--kept]
"""

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

SECONDS: Counter[str] = Counter()
COUNTS: Counter[str] = Counter()
WITHIN: list[float] = []  # seconds of the stages within each open stage


def measure(owner: Any, name: str, label: Callable[..., str]) -> None:
    """Let a function count its processor time under a label, which its arguments decide."""
    function = getattr(owner, name)

    def measured(*arguments: Any, **options: Any) -> Any:
        start = time.thread_time()
        WITHIN.append(0.0)
        try:
            return function(*arguments, **options)
        finally:
            taken, which = time.thread_time() - start, label(*arguments)
            SECONDS[which] += taken - WITHIN.pop()
            COUNTS[which] += 1
            if WITHIN:
                WITHIN[-1] += taken

    setattr(owner, name, measured)


def measure_stages() -> None:
    """Measure the stages of Numba and LLVM."""
    import llvmlite.binding
    from numba.core import codegen, compiler, compiler_machinery, lowering, typeinfer

    library, module = codegen.CPUCodeLibrary, llvmlite.binding.ModuleRef
    measure(compiler.CompilerBase, "compile_extra", lambda *_: "kernels and functions of Numba, the rest")
    measure(compiler_machinery.PassManager, "_runPass", lambda _, __, one, *___: f"Numba's pass {type(one).__name__}")
    measure(typeinfer.TypeInferer, "propagate", lambda *_: "types")
    measure(lowering.BaseLower, "lower", lambda *_: "lowering")
    measure(library, "add_ir_module", lambda *_: "text for LLVM")
    measure(library, "_optimize_functions", lambda *_: "LLVM's passes of functions")
    measure(library, "_optimize_final_module", lambda *_: "LLVM's passes of modules")
    measure(library, "_finalize_final_module", lambda *_: "machine code")
    measure(llvmlite.binding, "parse_assembly", lambda *_: "reading and linking modules")
    for name in ("link_in", "clone", "verify"):
        measure(module, name, lambda *_: "reading and linking modules")


def simulate() -> None:
    """Simulate the problem of README.md."""
    import stagewise as sw

    problem = sw.Problem(
        action_names=["nothing", "digest", "offer"], safe_name="nothing", context=["age", "opens"],
        reward=sw.Reward("click"), limits={"opt_out": sw.Limit(0.02, safe_bound=0.0, model="rates")}, delta=0.05,
    )  # fmt: skip
    world = sw.ContextWorld(
        reward=[[0.0, 0.0, 0.0], [0.10, 0.0, 0.05], [0.12, -0.08, 0.0]],
        cost={"opt_out": [[0.0, 0.0, 0.0], [0.008, 0.0, 0.0], [0.012, 0.0, 0.0]]},
        features="plain",
    )
    sw.simulate(problem, world, rounds=1000)


def main() -> None:
    """Print the whole time and its stages."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kept", action="store_true", help="use the machine code of earlier processes")
    if parser.parse_args().kept:
        simulate()
        print(f"first simulation with kept machine code: {time.process_time():.1f} s")
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STAGEWISE_CACHE"] = folder
        measure_stages()
        simulate()
    print(f"first simulation on an empty cache: {time.process_time():.1f} s")
    for stage, seconds in SECONDS.most_common(12):
        print(f"{seconds:7.2f} s {COUNTS[stage]:6} {stage}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
