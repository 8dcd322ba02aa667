/*
 * argv: WHAT ROUNDS PRICE BYTES. Two threads do the same at once, again and again, and after each round the first one
 * checks what the shim says is in use. WHAT is `limit`: both set the heap of one context, up and down again;
 * `context`: one destroys the context of the round before while the other makes one and allocates BYTES in it; or
 * `code`: both load a module, which takes BYTES, then both unload theirs. A context costs PRICE.
 */
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USED(X) \
    X(cuInit) X(cuCtxCreate_v2) X(cuCtxDestroy_v2) X(cuCtxSetCurrent) X(cuCtxSetLimit) X(cuMemAlloc_v2) \
    X(cuMemGetInfo_v2) X(cuModuleLoadData) X(cuModuleUnload)
#define POINTER(name) static name##_fn call_##name;
USED(POINTER)

#define HEAP 2 /* CU_LIMIT_MALLOC_HEAP_SIZE */
#define HEAP_AT_START ((size_t)8 << 20)

static atomic_size_t arrived;
static size_t rounds, price, bytes;
static size_t wrong, failed; /* the first thread's */
static size_t failed_beside; /* the second's */
static CUcontext kept, made;

/* The two go on as close together as they can: a barrier of the library would wake one after the other. */
static void meet(void)
{
    size_t goal = (atomic_fetch_add(&arrived, 1) / 2 + 1) * 2;
    while (atomic_load(&arrived) < goal)
        sched_yield();
}

static void check(size_t expected)
{
    size_t free_bytes = 0, all = 0;
    if (call_cuMemGetInfo_v2(&free_bytes, &all))
        failed++;
    else if (all - free_bytes != expected && wrong++ == 0)
        fprintf(stderr, "%zu bytes are in use, not %zu\n", all - free_bytes, expected);
}

static void set_limits(int first)
{
    size_t *fails = first ? &failed : &failed_beside;
    *fails += call_cuCtxSetCurrent(kept) != 0;
    for (size_t round = 0; round < rounds; round++) {
        size_t more = round % 2 ? 0 : bytes;
        meet();
        *fails += call_cuCtxSetLimit(HEAP, HEAP_AT_START + more) != 0;
        meet();
        if (first)
            check(price + more);
    }
}

static void change_contexts(int first)
{
    for (size_t round = 0; round < rounds; round++) {
        CUdeviceptr pointer;
        meet();
        /* Now earlier, now later in the other's call. */
        for (volatile size_t spin = first ? 0 : round % 4096; spin; spin--)
            continue;
        if (first)
            failed += call_cuCtxDestroy_v2(kept) != 0;
        else
            failed_beside += call_cuCtxCreate_v2(&made, 0, 0) || call_cuMemAlloc_v2(&pointer, bytes);
        meet();
        if (first) {
            kept = made;
            failed += call_cuCtxSetCurrent(kept) != 0;
            check(price + bytes);
        } else {
            failed_beside += call_cuCtxSetCurrent(NULL) != 0;
        }
    }
}

static void load_code(int first)
{
    size_t *fails = first ? &failed : &failed_beside;
    *fails += call_cuCtxSetCurrent(kept) != 0;
    for (size_t round = 0; round < rounds; round++) {
        CUmodule module;
        meet();
        for (volatile size_t spin = first ? 0 : round % 4096; spin; spin--)
            continue;
        *fails += call_cuModuleLoadData(&module, ".version") != 0;
        meet();
        if (first)
            check(price + 2 * bytes);
        meet();
        *fails += call_cuModuleUnload(module) != 0;
        meet();
        if (first)
            check(price);
    }
}

static void (*body)(int first);

static void *work(void *first)
{
    body(first != NULL);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t beside;
    if (argc != 5)
        return 2;
    body = strcmp(argv[1], "limit") == 0 ? set_limits : strcmp(argv[1], "code") == 0 ? load_code : change_contexts;
    rounds = strtoul(argv[2], NULL, 10), price = strtoul(argv[3], NULL, 10), bytes = strtoul(argv[4], NULL, 10);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
#define FIND(name) if (!library || !(call_##name = (name##_fn)dlsym(library, #name))) return 3;
    USED(FIND)
    if (call_cuInit(0) || call_cuCtxCreate_v2(&kept, 0, 0))
        return 1;
    if (pthread_create(&beside, NULL, work, NULL))
        return 2;
    work(&beside);
    pthread_join(beside, NULL);
    if (call_cuCtxDestroy_v2(kept))
        failed++;
    printf("wrong=%zu\nfailed=%zu\n", wrong, failed + failed_beside);
    return 0;
}
