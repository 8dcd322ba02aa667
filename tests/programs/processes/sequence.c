/*
 * argv: SEED CALLS LIMIT LEDGER PEER. Gets and gives back memory of card 0 in every way that there is, in an order that
 * the seed says, and compares after each call what the driver has handed out with the limit and with what the ledger says
 * of this process. Ends with everything given back. With CALLS 0 it never ends, and prints a line now and then.
 *
 * With SEQUENCE_BUSY in the environment there is a launch after each call.
 *
 * PEER is a directory in which such processes leave names of their memory for one another. Prints:
 *   calls, done, refused     calls, those that succeeded, those for which there was no room
 *   peak                     the most that the card ever had out
 *   short                    the most that the ledger was ever short of what this process held
 *   held, left               bytes that are held in the end, and that are charged
 *
 * Where the driver keeps a trace of its calls, this program's own stand there too: `PID >NAME` before each one, and
 * `PID <CODE` after it.
 */
#include "driver.h"
#include "gpucap.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIELD(name, params) static name##_fn call_##name;
CUDA_FUNCTIONS(FIELD)
static uint64_t (*call_stubHeld)(unsigned int), (*call_stubPeak)(unsigned int);

static uint64_t state, limit, done, refused, shortest;
static int trace = -1, is_busy;
static const struct gpucap_ledger *ledger;
static const char *peers;

static uint64_t below(uint64_t bound)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % bound;
}

/* Mostly small, now and then as large as the limit allows, or larger. */
static uint64_t some_bytes(void)
{
    switch (below(8)) {
    case 0: return 1 + below(limit + limit / 8);
    case 1: return 1 + below(limit / 2);
    case 2: return 1 + below(4096);
    case 3: return limit / (1 + below(8));
    default: return 1 + below(limit / 16);
    }
}

/* What the ledger says that this process holds of the first card. */
static uint64_t charged(void)
{
    for (int slot = 0; ledger && slot < GPUCAP_LEDGER_SLOTS; slot++) {
        uint64_t owner = ledger->owners[slot].owner;
        if (GPUCAP_LEDGER_OWNER_STATE(owner) != 2 || GPUCAP_LEDGER_OWNER_PID(owner) != (uint64_t)getpid())
            continue;
        const struct gpucap_ledger_book *book = &ledger->books[0][slot];
        uint64_t op = book->op;
        return GPUCAP_LEDGER_OP_IS_EMPTYING(op) ? 0 : book->amounts[GPUCAP_LEDGER_OP_SEQUENCE(op) & 1];
    }
    return 0;
}

static void begin(const char *name)
{
    if (trace >= 0)
        dprintf(trace, "%d >%s\n", getpid(), name);
}

/* Takes the driver's answer to a call, and looks whether the ledger still has all of it. */
static CUresult judged(const char *name, CUresult result)
{
    if (trace >= 0)
        dprintf(trace, "%d <%u\n", getpid(), result);
    done += result == 0;
    refused += result == 2;
    uint64_t held = call_stubHeld(0), known = charged();
    if (held > known && held - known > shortest) {
        shortest = held - known;
        fprintf(stderr, "%s (%u): holds %" PRIu64 ", charged %" PRIu64 "\n", name, result, held, known);
    }
    if (getenv("SEQUENCE_TRACE"))
        fprintf(stderr, "%s %u held %" PRIu64 " charged %" PRIu64 " peak %" PRIu64 "\n", name, result, held, known,
                call_stubPeak(0));
    return result;
}
#define DO(name, ...) (begin(#name), judged(#name, call_##name(__VA_ARGS__)))

#include "sequence_end.h"

static void open_all(const char *path)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name, params) call_##name = (name##_fn)dlsym(cuda, #name);
    CUDA_FUNCTIONS(FIND)
    *(void **)&call_stubHeld = dlsym(cuda, "stubHeld");
    *(void **)&call_stubPeak = dlsym(cuda, "stubPeak");
    is_busy = getenv("SEQUENCE_BUSY") != NULL;
    const char *traced = getenv("STUB_GPU_TRACE");
    if (traced && *traced)
        trace = open(traced, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (DO(cuInit, 0) && DO(cuInit, 0)) /* one refusal is no reason to give up */
        exit(4);
    int file = open(path, O_RDONLY);
    ledger = mmap(NULL, GPUCAP_LEDGER_SIZE, PROT_READ, MAP_SHARED, file, 0);
    if (ledger == MAP_FAILED)
        exit(3);
}

int main(int argc, char **argv)
{
    if (argc != 6)
        return 2;
    state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
    uint64_t calls = strtoull(argv[2], NULL, 10), call = 0;
    limit = strtoull(argv[3], NULL, 10);
    peers = argv[5];
    open_all(argv[4]);
    retain();
    CUdeviceptr first;
    if (DO(cuMemAllocAsync, &first, 1, NULL) == 0) /* shows in which steps the driver reserves */
        DO(cuMemFreeAsync, first, NULL);
    for (; calls == 0 || call < calls; call++) {
        step();
        if (calls == 0 && call % 16 == 15)
            puts("on"), fflush(stdout);
    }
    finish();
    printf("calls=%" PRIu64 "\ndone=%" PRIu64 "\nrefused=%" PRIu64 "\npeak=%" PRIu64 "\nshort=%" PRIu64 "\nheld=%" PRIu64
           "\nleft=%" PRIu64 "\n", call, done, refused, call_stubPeak(0), shortest, call_stubHeld(0), charged());
    return 0;
}
