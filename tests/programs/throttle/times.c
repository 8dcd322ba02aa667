/*
 * times SEED STEPS LEDGER [END]: gives the first card work in every way that there is, in an order that the seed says, and
 * compares the GPU time that it has had with what the ledger charges, now and then when nothing is in flight. END is
 * `exit`: ends with work in flight; `on`: never ends, and prints a line after each step. Prints:
 *   calls, failed   calls of the driver, those that answered with an error
 *   found           the GPU time of the card's clock before the first launch, of all processes
 *   busy, charged   the same at the end, and what the ledger charges
 *   short, over     the most by which less than nine tenths of it was charged, or more than thirteen, between two moments
 *                   with nothing in flight
 *
 * Each call stands in a line on stderr, with its thread and the answer; comparisons as well, and with TIMES_TRACE in the
 * environment both times after each call. Linked with -lcuda.
 */
#include "route.h"

#include "gpucap.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

enum { THREADS = 3 };

/* A thread that makes calls when it is told to. The first one is the program's own. */
static struct thread {
    uint64_t state;
    CUcontext current; /* null: whatever is current may have ended */
    pthread_t id;
    int runs;
    sem_t begin, done;
    void (*work)(void);
} threads[THREADS];
static _Thread_local struct thread *self = threads;

static atomic_uint calls, failed;
static const struct gpucap_ledger *ledger;
static uint64_t (*busy_of_all)(unsigned int);
static uint64_t shortest, longest, began;
static int is_traced;

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static uint64_t below(uint64_t bound)
{
    self->state = self->state * 6364136223846793005u + 1442695040888963407u;
    return (self->state >> 33) % bound;
}

static void note(const char *format, ...)
{
    char line[256];
    va_list words;
    va_start(words, format);
    vsnprintf(line, sizeof line, format, words);
    va_end(words);
    fprintf(stderr, "%4" PRIu64 " ms, thread %d: %s\n", (now_ns() - began) / 1000000, (int)(self - threads), line);
}

static uint64_t charged(void)
{
    uint64_t sum = 0;
    for (int device = 0; device < GPUCAP_LEDGER_DEVICES; device++)
        sum += ledger->devices[device].busy;
    return sum;
}

static CUresult judged(const char *name, CUresult result)
{
    /* A stream or event is asked before it is done; memory stays registered, though its context has ended. */
    const CUresult not_ready = 600, already_registered = 712;
    calls++;
    failed += result != 0 && result != not_ready && result != already_registered;
    note(result ? "%s: %u" : "%s", name, result);
    if (is_traced && ledger)
        note("busy %.3f ms, charged %.3f", (double)busy_of_all(0) / 1e6, (double)charged() / 1e6);
    return result;
}
#define DO(name, ...) judged(#name, name(__VA_ARGS__))

/* Nothing is in flight: what was done and charged since that was so the last time. */
static void compare(void)
{
    static uint64_t known, busy;
    uint64_t all_known = charged(), all_busy = busy_of_all(0);
    uint64_t new_known = all_known - known, new_busy = all_busy - busy;
    uint64_t least = new_busy - new_busy / 10, most = new_busy + new_busy / 10 * 3;
    if (least > new_known && least - new_known > shortest)
        shortest = least - new_known;
    if (new_known > most && new_known - most > longest)
        longest = new_known - most;
    (known = all_known, busy = all_busy);
    note("--- busy %.3f ms, charged %.3f; of all %.3f, %.3f", (double)new_busy / 1e6, (double)new_known / 1e6,
         (double)all_busy / 1e6, (double)all_known / 1e6);
}

#include "times_calls.h"

#include "times_ends.h"

static void step(void)
{
    static void (*const ways[])(void) = { work, work, work, work, work, work, work, wait_for, wait_for, wait_for, order, order,
                                          hold, stream, stream, code, graph, graph, graph, context, primary, green, sudden,
                                          sudden, child };
    have_context();
    ANY(ways)();
}

static void *serve(void *thread)
{
    self = thread;
    for (;;) {
        sem_wait(&self->begin);
        if (!self->work)
            return NULL;
        self->work();
        sem_post(&self->done);
    }
}

/* Has another thread make calls; with `work` NULL it ends. */
static void tell(struct thread *thread, void (*work)(void))
{
    if (!thread->runs) {
        thread->current = NULL;
        sem_init(&thread->begin, 0, 0);
        sem_init(&thread->done, 0, 0);
        if (pthread_create(&thread->id, NULL, serve, thread))
            exit(6);
        thread->runs = 1;
    }
    thread->state = below(1u << 30) * 2654435761u + 1;
    thread->work = work;
    sem_post(&thread->begin);
}

static void await(struct thread *thread)
{
    sem_wait(&thread->done);
}

static void end_thread(struct thread *thread)
{
    if (!thread->runs)
        return;
    tell(thread, NULL);
    pthread_join(thread->id, NULL);
    thread->runs = 0;
}

/* One step, by whichever thread; or some work by all of them at once. */
static void some_step(void)
{
    struct thread *other = &threads[1 + below(THREADS - 1)];
    switch (below(16)) {
    case 0: case 1: case 2:
        tell(other, step);
        await(other);
        break;
    case 3:
        have_context();
        for (int i = 1; i < THREADS; i++)
            tell(&threads[i], burst);
        burst();
        for (int i = 1; i < THREADS; i++)
            await(&threads[i]);
        break;
    case 4: end_thread(other); break;
    default: step(); break;
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    began = now_ns();
    is_traced = getenv("TIMES_TRACE") != NULL;
    self->state = strtoull(argv[1], NULL, 10) * 2654435761u + 1;
    uint64_t steps = strtoull(argv[2], NULL, 10), made = 0;
    const char *end = argc > 4 ? argv[4] : "wait";
    void *stub = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
    *(void **)&busy_of_all = some(dlsym(stub, "stubBusy"), "stubBusy");
    if (DO(cuInit, 0))
        return 4;
    have_context();
    uint64_t found = busy_of_all(0);
    work();
    int file = open(argv[3], O_RDONLY);
    ledger = mmap(NULL, GPUCAP_LEDGER_SIZE, PROT_READ, MAP_SHARED, file, 0);
    if (ledger == MAP_FAILED)
        return 3;
    for (; made < steps || strcmp(end, "on") == 0; made++) {
        some_step();
        if (strcmp(end, "on") == 0)
            puts("on"), fflush(stdout);
        else if (made % 24 == 23)
            wait_for_all();
    }
    if (strcmp(end, "exit") == 0)
        exit(0);
    for (int i = 1; i < THREADS; i++)
        end_thread(&threads[i]);
    wait_for_all();
    printf("calls=%u\nfailed=%u\nfound=%" PRIu64 "\nbusy=%" PRIu64 "\ncharged=%" PRIu64 "\nshort=%" PRIu64 "\nover=%" PRIu64
           "\n", calls, failed, found, busy_of_all(0), charged(), shortest, longest);
    return 0;
}
