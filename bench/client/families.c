/*
 * The client's commands for each family of memory: how it is taken and how it is given back. See
 * client.h. `family F` chooses one; the others work with that one.
 */
#include "client.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define USED(X) \
    X(cuMemAllocPitch_v2) X(cuMemAllocManaged) X(cuMemAllocFromPoolAsync) X(cuDeviceGetDefaultMemPool) \
    X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap) X(cuArray3DCreate_v2) X(cuArrayDestroy) \
    X(cuMipmappedArrayCreate) X(cuMipmappedArrayDestroy) X(cuMemHostAlloc) X(cuMemFreeHost)
#define POINTER(name) static name##_fn call_##name;
USED(POINTER)

enum { BYTES = 4096, PAGE = 2 << 20, WARM_UP = 64 };

static CUmemoryPool pool;
static const CUmemAllocationProp on_card = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                             .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
static const CUDA_ARRAY3D_DESCRIPTOR form = { .Width = BYTES,
                                              .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                              .NumChannels = 1 };

static CUresult take_pitched(uint64_t *item)
{
    size_t pitch;
    return call_cuMemAllocPitch_v2(item, &pitch, 500, 8, 4);
}

static CUresult take_managed(uint64_t *item)
{
    return call_cuMemAllocManaged(item, BYTES, CU_MEM_ATTACH_GLOBAL);
}

static CUresult take_async(uint64_t *item)
{
    return driver.cuMemAllocAsync(item, BYTES, NULL);
}

static CUresult take_from_pool(uint64_t *item)
{
    return call_cuMemAllocFromPoolAsync(item, BYTES, pool, NULL);
}

/* Where a handle is mapped. The null driver's handles lie BYTES apart, so these lie a page apart; it
 * asks for no reservation. */
static CUdeviceptr place(uint64_t handle)
{
    return handle * (PAGE / BYTES);
}

static CUresult take_physical(uint64_t *item)
{
    CUresult result = call_cuMemCreate(item, PAGE, &on_card, 0);
    return result ? result : call_cuMemMap(place(*item), PAGE, 0, *item, 0);
}

static CUresult give_physical(uint64_t item)
{
    CUresult result = call_cuMemUnmap(place(item), PAGE);
    return result ? result : call_cuMemRelease(item);
}

static CUresult take_array(uint64_t *item)
{
    return call_cuArray3DCreate_v2((CUarray *)item, &form);
}

static CUresult give_array(uint64_t item)
{
    return call_cuArrayDestroy((CUarray)item);
}

static CUresult take_mipmapped(uint64_t *item)
{
    return call_cuMipmappedArrayCreate((CUmipmappedArray *)item, &form, 1);
}

static CUresult give_mipmapped(uint64_t item)
{
    return call_cuMipmappedArrayDestroy((CUmipmappedArray)item);
}

static CUresult take_host(uint64_t *item)
{
    return call_cuMemHostAlloc((void **)item, BYTES, 0);
}

static CUresult give_host(uint64_t item)
{
    return call_cuMemFreeHost((void *)item);
}

static CUresult give_linear(uint64_t item)
{
    return driver.cuMemFree_v2(item);
}

static CUresult give_async(uint64_t item)
{
    return driver.cuMemFreeAsync(item, NULL);
}

/* In the order of bench/src/families.rs. */
static const struct family {
    CUresult (*take)(uint64_t *item);
    CUresult (*give)(uint64_t item);
} families[] = {
    { take_pitched, give_linear },     { take_managed, give_linear },
    { take_async, give_async },        { take_from_pool, give_async },
    { take_physical, give_physical },  { take_array, give_array },
    { take_mipmapped, give_mipmapped }, { take_host, give_host },
};

static const struct family *chosen;
static uint64_t *kept;
static uint64_t kept_count;

/* family F: from here on this one. */
static void family(uint64_t index, uint64_t second)
{
    (void)second;
    need(index < sizeof families / sizeof *families, "no such family");
    need(kept_count == 0, "another family has something");
#define LOOK_UP(name) \
    call_##name = (name##_fn)dlsym(driver.library, #name); \
    need(call_##name != NULL, "no " #name);
    USED(LOOK_UP)
#undef LOOK_UP
    need(call_cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS, "no pool");
    chosen = &families[index];
    printf("family=%lu\n", index);
}

static uint64_t take_one(void)
{
    uint64_t item;
    need(chosen->take(&item) == CUDA_SUCCESS, "the family cannot be taken");
    return item;
}

static void give_one(uint64_t item)
{
    need(chosen->give(item) == CUDA_SUCCESS, "the family cannot be given back");
}

/* turn N: the mean of N pairs in a row, by the clock and by the time that they kept a processor. */
static void turn(uint64_t turns, uint64_t second)
{
    (void)second;
    for (int i = 0; i < WARM_UP; i++) {
        give_one(take_one());
    }
    uint64_t start_cpu = cpu_time(), start = now();
    for (uint64_t i = 0; i < turns; i++) {
        give_one(take_one());
    }
    uint64_t end = now(), end_cpu = cpu_time();
    printf("ns=%.3f cpu=%.3f\n", (double)(end - start) / (double)turns,
           (double)(end_cpu - start_cpu) / (double)turns);
}

/* keep N: makes the number of those that are held N. */
static void keep(uint64_t count, uint64_t second)
{
    (void)second;
    while (kept_count > count) {
        give_one(kept[--kept_count]);
    }
    if (count > 0) {
        kept = realloc(kept, count * sizeof *kept);
        need(kept != NULL, "no memory");
    }
    while (kept_count < count) {
        kept[kept_count++] = take_one();
    }
    printf("kept=%lu\n", kept_count);
}

static void pairs(void *own, uint64_t turns)
{
    (void)own;
    for (uint64_t i = 0; i < turns; i++) {
        give_one(take_one());
    }
}

/* crowd T N: T threads do N pairs each; the time that one pair keeps a processor. */
static void threads(uint64_t count, uint64_t turns)
{
    crowd(count, turns, &(struct work){.turns = pairs});
}

const struct command family_commands[] = {
    {"family", family}, {"turn", turn}, {"keep", keep}, {"crowd", threads}, {NULL, NULL}};
