/* The client's commands that allocate. See client.h. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

enum { BYTES = 4096, WARM_UP = 64 };

static CUdeviceptr *live;
static uint64_t live_count;

static CUdeviceptr allocate(void)
{
    CUdeviceptr pointer;
    need(driver.cuMemAlloc_v2(&pointer, BYTES) == CUDA_SUCCESS, "cuMemAlloc_v2 failed");
    return pointer;
}

static void release(CUdeviceptr pointer)
{
    need(driver.cuMemFree_v2(pointer) == CUDA_SUCCESS, "cuMemFree_v2 failed");
}

static void pair(void)
{
    release(allocate());
}

static void pair_async(void)
{
    CUdeviceptr pointer;
    need(driver.cuMemAllocAsync(&pointer, BYTES, NULL) == CUDA_SUCCESS, "cuMemAllocAsync failed");
    need(driver.cuMemFreeAsync(pointer, NULL) == CUDA_SUCCESS, "cuMemFreeAsync failed");
}

/* The same sequence in every world. */
static uint64_t random_index(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % live_count;
}

static uint64_t place = 88172645463325252u;

/* One of the live allocations, whichever, is replaced by a new one. */
static void pair_random(void)
{
    uint64_t index = random_index(&place);
    release(live[index]);
    live[index] = allocate();
}

static void loop(void (*turn)(void), uint64_t turns)
{
    for (int i = 0; i < WARM_UP; i++) {
        turn();
    }
    uint64_t start_cpu = cpu_time(), start = now();
    for (uint64_t i = 0; i < turns; i++) {
        turn();
    }
    uint64_t end = now(), end_cpu = cpu_time();
    printf("ns=%.3f cpu=%.3f\n", (double)(end - start) / (double)turns,
           (double)(end_cpu - start_cpu) / (double)turns);
}

/* pairs N, async N, random N: the mean of N turns in a row, by the clock and by the
 * time that they kept a processor. */
static void pairs(uint64_t turns, uint64_t second)
{
    (void)second;
    loop(pair, turns);
}

static void async(uint64_t turns, uint64_t second)
{
    (void)second;
    loop(pair_async, turns);
}

static void random_pairs(uint64_t turns, uint64_t second)
{
    (void)second;
    need(live_count > 0, "nothing is live");
    loop(pair_random, turns);
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* each N: the spread over N pairs, each timed by itself with the clock of the processor. */
static void each(uint64_t turns, uint64_t second)
{
    (void)second;
    uint64_t *ticks = malloc(turns * sizeof *ticks);
    need(ticks != NULL, "no memory");
    for (uint64_t i = 0; i < turns; i++) {
        ticks[i] = 0;
        pair();
    }
    unsigned int processor;
    uint64_t start = now(), first = __rdtscp(&processor), before = first;
    for (uint64_t i = 0; i < turns; i++) {
        before = __rdtscp(&processor);
        pair();
        ticks[i] = __rdtscp(&processor) - before;
    }
    double ns = (double)(now() - start) / (double)(__rdtscp(&processor) - first);
    qsort(ticks, turns, sizeof *ticks, by_size);
    printf("median=%.3f p99=%.3f least=%.3f\n", ns * (double)ticks[turns / 2],
           ns * (double)ticks[turns * 99 / 100], ns * (double)ticks[0]);
    free(ticks);
}

/* live N: makes the number of live allocations N. */
static void set_live(uint64_t count, uint64_t second)
{
    (void)second;
    while (live_count > count) {
        release(live[--live_count]);
    }
    if (count > 0) {
        live = realloc(live, count * sizeof *live);
        need(live != NULL, "no memory");
    }
    while (live_count < count) {
        live[live_count++] = allocate();
    }
    printf("live=%lu\n", live_count);
}

static void pairs_of_thread(void *own, uint64_t turns)
{
    (void)own;
    for (uint64_t i = 0; i < turns; i++) {
        pair();
    }
}

/* threads T N: T threads do N pairs each; the time that one pair keeps a processor. */
static void threads(uint64_t count, uint64_t turns)
{
    crowd(count, turns, &(struct work){.turns = pairs_of_thread});
}

/* refuse BYTES N: N allocations of this size, none of which may succeed. */
static void refuse(uint64_t bytes, uint64_t turns)
{
    uint64_t start = now();
    for (uint64_t i = 0; i < turns; i++) {
        CUdeviceptr pointer;
        need(driver.cuMemAlloc_v2(&pointer, bytes) == CUDA_ERROR_OUT_OF_MEMORY, "not refused");
    }
    printf("ns=%.3f\n", (double)(now() - start) / (double)turns);
}

/* take BYTES: one allocation that is given back; what the driver answers. */
static void take(uint64_t bytes, uint64_t second)
{
    (void)second;
    CUdeviceptr pointer;
    CUresult result = driver.cuMemAlloc_v2(&pointer, bytes);
    if (result == CUDA_SUCCESS) {
        release(pointer);
    }
    printf("result=%u\n", result);
}

/* info: cuMemGetInfo_v2. */
static void info(uint64_t first, uint64_t second)
{
    (void)first, (void)second;
    size_t free_bytes, total;
    need(driver.cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS, "cuMemGetInfo_v2 failed");
    printf("free=%zu total=%zu\n", free_bytes, total);
}

/* settle: waits for all work, so that what was freed in a stream is back. */
static void settle(uint64_t first, uint64_t second)
{
    (void)first, (void)second;
    need(driver.cuCtxSynchronize() == CUDA_SUCCESS, "cuCtxSynchronize failed");
    printf("settled=1\n");
}

/* infos N: N calls of cuMemGetInfo_v2 in a row. */
static void infos(uint64_t turns, uint64_t second)
{
    (void)second;
    size_t free_bytes, total;
    uint64_t start = now();
    for (uint64_t i = 0; i < turns; i++) {
        need(driver.cuMemGetInfo_v2(&free_bytes, &total) == CUDA_SUCCESS, "cuMemGetInfo_v2 failed");
    }
    printf("ns=%.3f\n", (double)(now() - start) / (double)turns);
}

const struct command memory_commands[] = {
    {"pairs", pairs},   {"async", async},   {"random", random_pairs},
    {"each", each},     {"live", set_live}, {"threads", threads},     {"refuse", refuse},
    {"take", take},     {"info", info},     {"infos", infos},   {"settle", settle},         {NULL, NULL}};
