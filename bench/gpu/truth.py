"""Stage truth: every way to look a function up ends at the shim on this driver, and under limits that have no say each
intercepted function answers as without it.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from subprocess import TimeoutExpired

CAP = "4Gi"  # that of tests/programs/route.h
CUDA_ROUTES = ("open_look", "linked", "linked_table", "dlsym_of_libc", "proc_address", "proc_address_v2")
NVML_ROUTES = ("open_nvml", "nvml_linked", "nvml_dlsym_of_libc")
# What a case of the conformance tests takes for granted.
BEFORE = ("call cuInit 0", "call nvmlInit_v2", "call cuDevicePrimaryCtxRetain &h 0", "call cuCtxSetCurrent h")
# Limits of the card's size, so that only the way through the shim differs.
NO_SAY = {"GPU_MEM_LIMIT": "100%", "GPU_CORE_PCT": "100", "GPUCAP_CONTEXT_MEM": "0"}

# What a process holds, and so what is left, is the slice's behind the shim and the card's without it: there only the
# codes must agree, and the figures are those of stage memory.
SHOW_THE_SLICE = ("nvmlDeviceGet", "cuMemGetInfo")
ENDLESS = "endless"


def run(place, results):
    """Routes first: without them nothing else means anything."""
    for name in CUDA_ROUTES:
        results.attempt(name, lambda: cuda_route(place, results, name))
    for name in NVML_ROUTES:
        results.attempt(name, lambda: nvml_route(place, results, name))
    results.attempt("conformance", lambda: conformance(place, results))


def said(place, name, limits):
    """The lines `key=value` of a route's program."""
    done = place.ask([place.programs / name], limits)
    if done.returncode:
        raise RuntimeError(f"{name} ended with {done.returncode}: {done.stderr.strip()}")
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


def cuda_route(place, results, name):
    """One byte beyond the cap is refused with the shim and had without; what fits is had in both."""
    bare, capped = said(place, name, None), said(place, name, {"GPU_MEM_LIMIT": CAP})
    free = {"init": "0", "over": "0", "small": "0", "large": "0"}
    holds = all(bare.get(key) == value for key, value in free.items())
    holds &= all(capped.get(key) == value for key, value in (free | {"over": "2"}).items())
    figures = {"where": capped.get("where"), "over": capped.get("over"), "over_bare": bare.get("over")}
    results.judge(f"look-up: {name}", holds, "over the cap: 2 with the shim, 0 without; else 0", figures)


def nvml_route(place, results, name):
    """NVML's total is the slice's with the shim, the card's without."""
    bare, capped = said(place, name, None), said(place, name, {"GPU_MEM_LIMIT": CAP})
    totals = {"bare": int(bare.get("total", 0)), "capped": int(capped.get("total", 0))}
    holds = totals["capped"] == 4 << 30 and totals["bare"] > 4 << 30
    results.judge(f"look-up: {name}", holds, "total is 4 GiB with the shim, more without", totals)


def cases(place):
    """Row and commands of each case, as the archive carries them."""
    found = {}
    for line in (place.artifacts / "cases.txt").read_text(encoding="utf-8").splitlines():
        symbol, command = line.split("\t", 1)
        found.setdefault(symbol, []).append(command)
    # On the stub all of them run elsewhere (ci/run conformance): here only the way they are run is tried.
    return dict(list(found.items())[::10]) if place.stub else found


def conformance(place, results):
    """Several at once, as most of the time goes into contexts; what differs then is asked again alone, since figures of
    the whole card are not the same while others come and go.
    """
    found = cases(place)
    with ThreadPoolExecutor(4) as pool:
        pairs = list(pool.map(lambda script: both(place, script), found.values()))
    for (symbol, script), (bare, capped) in zip(found.items(), pairs):
        if bare != capped:
            bare, capped = both(place, script)
        what = f"conformance: {symbol}"
        if bare[-1] == ENDLESS:
            results.fail(what, "does not end without the shim either: the case is not one for this card")
            continue
        codes_only = symbol.startswith(SHOW_THE_SLICE)
        if codes_only:
            bare, capped = ([line.split(" ")[0] for line in lines] for lines in (bare, capped))
        # An answer begins with its code, but for what only fills a buffer.
        figures = {"lines": len(bare), "refused_by_the_driver": sum(not line.startswith(("0", " ")) for line in bare)}
        if bare != capped:
            figures["differs"] = next([a, b] for a, b in zip_longest(bare, capped) if a != b)
        bound = "the same codes as without the shim" if codes_only else "as without the shim"
        results.judge(what, bare == capped and len(bare) > 1, bound, figures)


def both(place, script):
    """Without the shim, then with it."""
    return [obey(place, script, limits) for limits in (None, NO_SAY)]


def obey(place, script, limits):
    """What the caller answers to the commands of a case, addresses left out."""
    try:
        done = place.ask([place.programs / "caller"], limits, timeout=20, stdin="\n".join([*BEFORE, *script]) + "\n")
    except TimeoutExpired:
        return [ENDLESS]
    answered = done.stdout.splitlines()[len(BEFORE) :]
    return [" ".join(comparable(word) for word in line.split(" ")) for line in answered] + [str(done.returncode)]


def comparable(word):
    """Addresses differ from run to run."""
    try:
        return "address" if int(word, 16) >= 1 << 40 and word != "1111111111111111" else word
    except ValueError:
        return word
