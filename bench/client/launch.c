/* The client's commands that launch. See client.h. */
#include "client.h"

#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>

enum { WARM_UP = 500 };

/* Any function will do: the null driver runs none. */
static char kernel;

static void launch_in(CUstream stream)
{
    CUresult result = driver.cuLaunchKernel((CUfunction)(void *)&kernel, 1, 1, 1, 1, 1, 1, 0, stream,
                                            NULL, NULL);
    need(result == CUDA_SUCCESS, "cuLaunchKernel failed");
}

static CUstream new_stream(void)
{
    CUstream stream;
    need(driver.cuStreamCreate(&stream, 1) == CUDA_SUCCESS, "no stream");
    return stream;
}

static CUstream own_stream(void)
{
    static CUstream stream;
    if (!stream) {
        stream = new_stream();
    }
    return stream;
}

static double mean(CUstream stream, uint64_t turns)
{
    for (int i = 0; i < WARM_UP; i++) {
        launch_in(stream);
    }
    uint64_t start = now();
    for (uint64_t i = 0; i < turns; i++) {
        launch_in(stream);
    }
    return (double)(now() - start) / (double)turns;
}

/* launch N: the mean of N launches in the default stream. */
static void in_default(uint64_t turns, uint64_t second)
{
    (void)second;
    printf("ns=%.3f\n", mean(NULL, turns));
}

/* stream-launch N: the mean of N launches in a stream of the program's own. */
static void in_stream(uint64_t turns, uint64_t second)
{
    (void)second;
    printf("ns=%.3f\n", mean(own_stream(), turns));
}

static int by_size(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* launch-each N: the spread over N launches, each timed by itself with the processor's clock. */
static void each(uint64_t turns, uint64_t second)
{
    (void)second;
    CUstream stream = own_stream();
    uint64_t *ticks = calloc(turns, sizeof *ticks);
    need(ticks != NULL, "no memory");
    mean(stream, WARM_UP);
    unsigned int processor;
    uint64_t start = now(), first = __rdtscp(&processor);
    for (uint64_t i = 0; i < turns; i++) {
        uint64_t before = __rdtscp(&processor);
        launch_in(stream);
        ticks[i] = __rdtscp(&processor) - before;
    }
    double ns = (double)(now() - start) / (double)(__rdtscp(&processor) - first);
    qsort(ticks, turns, sizeof *ticks, by_size);
    printf("median=%.3f p99=%.3f\n", ns * (double)ticks[turns / 2],
           ns * (double)ticks[turns * 99 / 100]);
    free(ticks);
}

static void *begin(void)
{
    return new_stream();
}

static void launches(void *stream, uint64_t turns)
{
    for (uint64_t i = 0; i < turns; i++) {
        launch_in(stream);
    }
}

static void end(void *stream)
{
    need(driver.cuStreamDestroy_v2(stream) == CUDA_SUCCESS, "stream not destroyed");
}

/* launch-threads T N: T threads launch N times each in a stream of their own; the time that one
 * launch keeps a processor. */
static void threads(uint64_t count, uint64_t turns)
{
    crowd(count, turns, &(struct work){.begin = begin, .turns = launches, .end = end});
}

const struct command launch_commands[] = {{"launch", in_default},
                                          {"stream-launch", in_stream},
                                          {"launch-each", each},
                                          {"launch-threads", threads},
                                          {NULL, NULL}};
