/*
 * The client: a program that uses a GPU, told line by line what to do, so that a bench can take
 * turns between clients that differ in one thing only.
 *
 * It reads `command argument...` from stdin and answers each with one line of `name=value`. All
 * times are nanoseconds; a loop's time is divided by its turns, so that reading the clock does not
 * count. Any surprise ends it with a line on stderr, and so do five minutes with one command.
 */
#ifndef GPUCAP_BENCH_CLIENT_H
#define GPUCAP_BENCH_CLIENT_H

#include "driver.h"

#include <stdint.h>

/* The driver's functions, looked up by `open`. */
struct driver {
    void *library;
    CUcontext context;
#define MEMBER(name) name##_fn name;
#define DRIVER_FUNCTIONS(X) \
    X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxSetCurrent) X(cuMemAlloc_v2) X(cuMemFree_v2) \
    X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuMemGetInfo_v2) X(cuCtxSynchronize) X(cuLaunchKernel) \
    X(cuStreamCreate) X(cuStreamDestroy_v2) X(cuGetProcAddress_v2)
    DRIVER_FUNCTIONS(MEMBER)
#undef MEMBER
};

extern struct driver driver;

/* One command; the arguments that were not given are 0. */
typedef void (*command_fn)(uint64_t first, uint64_t second);

struct command {
    const char *name;
    command_fn run;
};

extern const struct command memory_commands[], family_commands[], launch_commands[],
    lookup_commands[], share_commands[];

/* Nanoseconds of a clock that never goes back. */
uint64_t now(void);

/* Nanoseconds that this thread has had a processor. */
uint64_t cpu_time(void);

/* Nanoseconds that the ledger's first device has been charged, by all processes; 0 without a ledger. */
uint64_t charged(void);

/* What a thread of a crowd does; only its turns are timed. What it needs for them may be made and ended. */
struct work {
    void *(*begin)(void);
    void (*turns)(void *own, uint64_t count);
    void (*end)(void *own);
};

/* This many threads begin together; the time that one turn keeps a processor is the answer. */
void crowd(uint64_t count, uint64_t turns, const struct work *of_each);

/* company N: N more processes that have called cuInit, and are there until this one ends. Before this one opens the driver. */
void company(uint64_t count, uint64_t second);

/* Ends the program with a message if `holds` is 0. */
void need(int holds, const char *message);

#endif
