"""Stage frameworks: what people run computes the same with the shim as without, and stays in its slice.

Each case is a process `with_<framework>.py CASE` that prints one line of JSON: `result`, numbers that must agree, and
facts that only hold under the cap (`capped`, all of which must be true there).
"""

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
LIMITS = {"GPU_MEM_LIMIT": "4Gi", "GPU_CORE_PCT": "80"}
NOT_REAL = "the CUDA runtime refuses a driver that is not the real one"
TOLERANCE = 2e-2  # sums of bf16 products, in the order that the card chooses

# Framework, case, and its settings.
CASES = (
    ("torch", "eager", {}),
    ("torch", "eager", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    ("torch", "eager", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
    ("torch", "graph", {}),
    ("torch", "compiled", {}),
    ("torch", "transformer", {}),
    ("torch", "out_of_memory", {}),
    ("torch", "out_of_memory", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    ("torch", "out_of_memory", {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}),
    ("torch", "info", {}),
    ("jax", "step", {}),
    ("jax", "step", {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}),
    ("cupy", "pool", {}),
    ("cupy", "asynchronous", {}),
    ("cupy", "managed", {}),
    ("triton", "kernel", {}),
    ("numba", "kernel", {}),
)
# Without the shim JAX would take three quarters of the whole card in advance.
WITHOUT_THE_SHIM = {"jax": {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".04"}}
MODULES = {"torch": "torch", "jax": "jax", "cupy": "cupy", "triton": "triton", "numba": "numba.cuda"}


def run(place, results):
    """Case by case, then the tools."""
    if place.stub:
        for framework, case, settings in CASES:
            results.skip(label(framework, case, settings), NOT_REAL)
        results.skip("nvidia-smi", "it is looked at over the stub by ci/run clients")
        return
    for framework, case, settings in CASES:
        name = label(framework, case, settings)
        if not has(MODULES[framework]):
            results.skip(name, f"{framework} is not installed")
        else:
            results.attempt(name, lambda: compare(place, results, name, framework, case, settings))
    results.attempt("nvidia-smi", lambda: nvidia_smi(place, results))
    for tool in ("compute-sanitizer", "ncu"):
        results.attempt(tool, lambda: profiler(place, results, tool))


def label(framework, case, settings):
    """The row's name."""
    return " ".join([framework, case, *settings.values()])


def has(module):
    """Whether a module can be found, without loading it."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def said(place, results, framework, case, settings, limits):
    """The last line of JSON of a case."""
    words = ["env", *(f"{name}={value}" for name, value in settings.items())]
    words += [sys.executable, HERE / f"with_{framework}.py", case]
    done = place.ask(words, limits, timeout=max(5, min(120, results.left())))
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        raise RuntimeError(f"ended with {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(lines[-1])


def compare(place, results, name, framework, case, settings):
    """Both worlds; a case that yields no numbers has compared nothing."""
    bare = said(place, results, framework, case, settings | WITHOUT_THE_SHIM.get(framework, {}), None)
    capped = said(place, results, framework, case, settings, LIMITS)
    pairs = list(zip(bare["result"], capped["result"]))
    alike = len(bare["result"]) == len(capped["result"]) > 0
    alike &= all(abs(a - b) <= TOLERANCE * max(1, abs(a)) for a, b in pairs)
    facts = capped.get("capped", {})
    figures = {"numbers": len(pairs), "most_apart": max((abs(a - b) for a, b in pairs), default=0), **facts}
    results.judge(name, alike and all(facts.values()), "the same numbers, and every fact of the slice", figures)


def nvidia_smi(place, results):
    """Its figures are the slice's."""
    if not shutil.which("nvidia-smi"):
        results.skip("nvidia-smi", "it is not installed")
        return
    plain = place.ask(["nvidia-smi"], LIMITS)
    results.judge("nvidia-smi", "4096MiB" in plain.stdout, "the table says 4096MiB", {"status": plain.returncode})
    query = ["nvidia-smi", "--query-gpu=memory.total,memory.used,memory.free", "--format=csv,noheader,nounits"]
    fields = place.ask(query, LIMITS).stdout.strip().split("\n")[0].split(", ")
    holds = len(fields) == 3 and fields[0] == "4096" and int(fields[1]) + int(fields[2]) == 4096
    results.judge("nvidia-smi --query-gpu", holds, "4096, and used and free make it up", {"said": "/".join(fields)})
    page = place.ask(["nvidia-smi", "-q", "-d", "MEMORY"], LIMITS).stdout
    results.judge("nvidia-smi -q", "4096 MiB" in page, "the page says 4096 MiB", {"lines": len(page.splitlines())})


def profiler(place, results, tool):
    """Tools that take the driver's calls over themselves: whether a program ends well under both."""
    if not shutil.which(tool):
        results.skip(tool, "it is not installed")
        return
    done = place.ask([tool, place.programs / "worker", "first"], LIMITS, timeout=60)
    if done.returncode:
        results.skip(tool, f"it ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-200:]}")
    else:
        results.judge(tool, "allocation" in done.stdout, "the program gets its memory", {})
