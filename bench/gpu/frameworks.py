"""Stage frameworks: what people run computes the same with the shim as without, and stays in its slice.

Each case is a process `with_<framework>.py CASE` that prints one line of JSON: `result`, numbers that must agree, and
facts that only hold under the limit (`limited`, all of which must be true there). What a case compiles it compiles anew in
both worlds, since the compilers are programs behind the shim too.
"""

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from world import OUT_OF_MEMORY

HERE = Path(__file__).resolve().parent
LIMITS = {"GPU_MEM_LIMIT": "4Gi", "GPU_CORE_PCT": "80"}
NOT_REAL = "the CUDA runtime refuses a driver that is not the real one"
TOLERANCE = 2e-2  # sums of bf16 products, in the order that the card chooses
MOST = 100  # seconds of one process

EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
OF_THE_DRIVER = {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}
NOT_IN_ADVANCE = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
# Framework, case, and its settings; what tells most comes first.
CASES = (
    ("torch", "info", {}),
    ("torch", "eager", {}),
    ("torch", "out_of_memory", {}),
    ("torch", "graph", {}),
    ("jax", "step", {}),
    ("cupy", "pool", {}),
    ("triton", "kernel", {}),
    ("numba", "kernel", {}),
    ("torch", "compiled", {}),
    ("torch", "eager", EXPANDABLE),
    ("torch", "eager", OF_THE_DRIVER),
    ("torch", "out_of_memory", EXPANDABLE),
    ("torch", "out_of_memory", OF_THE_DRIVER),
    ("torch", "transformer", {}),
    ("jax", "step", NOT_IN_ADVANCE),
    ("cupy", "asynchronous", {}),
    ("cupy", "managed", {}),
)
# Without the shim JAX would take three quarters of the whole card in advance.
WITHOUT_THE_SHIM = {"jax": NOT_IN_ADVANCE}
MODULES = {"torch": "torch", "jax": "jax", "cupy": "cupy", "triton": "triton", "numba": "numba.cuda"}
# A profiler sets the card's clocks unless it is told not to.
TOOLS = {"compute-sanitizer": (), "ncu": ("--clock-control", "none")}
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR", "NUMBA_CACHE_DIR")


def run(place, results):
    """The common tool, case by case, then the tools of developers."""
    if place.stub:
        for framework, case, settings in CASES:
            results.skip(label(framework, case, settings), NOT_REAL)
        results.skip("nvidia-smi", "it is looked at over the stub by ci/run clients")
        return
    results.attempt("nvidia-smi", lambda: nvidia_smi(place, results))
    for framework, case, settings in CASES:
        name = label(framework, case, settings)
        if not has(MODULES[framework]):
            results.skip(name, f"{framework} is not installed")
        else:
            results.attempt(name, lambda: compare(place, results, name, framework, case, settings))
    for tool in TOOLS:
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


def said(place, framework, case, settings, limits):
    """The last line of JSON of a case."""
    # Not beside the ledgers: from there no code may be loaded on some machines.
    with TemporaryDirectory(prefix="gpucap-cache-") as caches:
        more = settings | {name: f"{caches}/{name.lower()}" for name in CACHES}
        done = place.must([sys.executable, HERE / f"with_{framework}.py", case], limits, timeout=MOST, more=more)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        raise RuntimeError(f"no answer in: {done.stdout[-400:]}")
    return json.loads(lines[-1])


def compare(place, results, name, framework, case, settings):
    """Both worlds; a case that yields no numbers has compared nothing."""
    worlds = {"without the shim": (settings | WITHOUT_THE_SHIM.get(framework, {}), None), "with it": (settings, LIMITS)}
    found = []
    for world, (its_settings, limits) in worlds.items():
        try:
            found.append(said(place, framework, case, its_settings, limits))
        except RuntimeError as error:
            raise RuntimeError(f"{world}: {error}") from error
    bare, limited = found
    pairs = list(zip(bare["result"], limited["result"]))
    alike = len(bare["result"]) == len(limited["result"]) > 0
    # A number that is none is like no other.
    alike &= all(abs(a - b) <= TOLERANCE * max(1, abs(a)) for a, b in pairs)
    facts = limited.get("limited", {})
    figures = {"numbers": len(pairs), "most_apart": max((abs(a - b) for a, b in pairs), default=0), **facts}
    results.judge(name, alike and all(facts.values()), "the same numbers, and every fact of the slice", figures)


def nvidia_smi(place, results):
    """Its figures are the slice's."""
    if not shutil.which("nvidia-smi"):
        results.skip("nvidia-smi", "it is not installed")
        return
    plain = place.must(["nvidia-smi"], LIMITS)
    results.judge("nvidia-smi", "4096MiB" in plain.stdout, "the table says 4096MiB", {"status": plain.returncode})
    query = ["nvidia-smi", "--query-gpu=memory.total,memory.used,memory.free", "--format=csv,noheader,nounits"]
    fields = place.must(query, LIMITS).stdout.strip().split("\n")[0].split(", ")
    holds = len(fields) == 3 and fields[0] == "4096" and int(fields[1]) + int(fields[2]) == 4096
    results.judge("nvidia-smi --query-gpu", holds, "4096, and used and free make it up", {"said": "/".join(fields)})
    total = place.must([*query[:1], "--query-gpu=memory.total", query[2]], {"GPU_PROFILE": "1g.5gb"}).stdout.strip()
    results.judge("nvidia-smi with GPU_PROFILE=1g.5gb", total == "5120", "5 GiB, whatever card it is", {"said": total})
    page = place.must(["nvidia-smi", "-q", "-d", "MEMORY"], LIMITS).stdout
    results.judge("nvidia-smi -q", "4096 MiB" in page, "the page says 4096 MiB", {"lines": len(page.splitlines())})


def profiler(place, results, tool):
    """Tools that take the driver's calls over themselves: whether the limit holds under them."""
    if not shutil.which(tool):
        results.skip(tool, "it is not installed")
        return
    orders = ("init", "context 0", f"alloc a {5 << 30}", f"alloc b {1 << 20}")
    done = place.ask([tool, *TOOLS[tool], place.programs / "actor"], LIMITS, stdin="\n".join(orders) + "\n")
    lines = [line.split(" ") for line in done.stdout.splitlines()]
    codes = [int(line[0]) for line in lines if len(line) == 3 and all(word.isdigit() for word in line)]
    if done.returncode or len(codes) != len(orders):
        said_last = " ".join((done.stdout + done.stderr).split())[-300:]
        results.skip(tool, f"it ended with {done.returncode} and {len(codes)} answers: {said_last}")
        return
    results.judge(tool, codes == [0, 0, OUT_OF_MEMORY, 0], "5 GiB are refused, 1 MiB is had", {"codes": str(codes)})
