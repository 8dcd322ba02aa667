/*
 * What a context and each kind of allocation take from the card, by NVML's count of the whole
 * device: the difference to what was asked for is what a ledger that counts requests does not see.
 */
#include "probe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t used_before;

/* What the card gave out since `used_before`; moves it. */
static void answer_growth(const char *key) {
    uint64_t now = nvml_used();
    answer_number(key, "bytes", (double)now - (double)used_before);
    used_before = now;
}

/* ---- contexts ---- */

static void answer_own_bytes(const char *key) {
    nvmlProcessInfo_t infos[64];
    unsigned int count = ARRAY_LEN(infos);
    nvmlReturn_t result = nv.nvmlDeviceGetComputeRunningProcesses_v3(nv.device, &count, infos);
    if (result != NVML_SUCCESS) {
        answer_skipped(key, "NVML error %u", result);
        return;
    }
    for (unsigned int i = 0; i < count; i++) {
        if ((pid_t)infos[i].pid != getpid()) continue;
        if (infos[i].usedGpuMemory == NVML_VALUE_NOT_AVAILABLE)
            answer_skipped(key, "NVML does not say");
        else answer_number(key, "bytes", (double)infos[i].usedGpuMemory);
        return;
    }
    answer_skipped(key, "this pid is not in NVML's list of %u", count);
}

void stage_context(void) {
    const char *why_not = "";
    cuda_load();
    if (!nvml_open(&why_not)) skip("no NVML: %s", why_not);
    used_before = nvml_used();
    /* Forked before this process has used the driver, which does not survive a fork. */
    pid_t child = start_holder(0);
    answer_growth("context_in_another_process");
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    sleep_us(200 * 1000);
    answer_growth("after_that_process_was_killed");

    CUdevice device;
    CUcontext primary, second;
    size_t available = 0, available_after = 0, total = 0;
    CU(cu.cuInit(0));
    answer_growth("cuInit");
    CU(cu.cuDeviceGet(&device, 0));
    double start = now_ns();
    CU(cu.cuDevicePrimaryCtxRetain(&primary, device));
    answer_number("primary_context_takes", "ms", (now_ns() - start) / 1e6);
    answer_growth("primary_context");
    answer_own_bytes("own_bytes_with_primary_context");
    CU(cu.cuCtxSetCurrent(primary));
    CU(cu.cuMemGetInfo_v2(&available, &total));
    answer_number("total_less_free_by_cuMemGetInfo", "bytes", (double)(total - available));
    answer_number("used_by_nvml", "bytes", (double)used_before);

    CU(cu.cuCtxCreate_v2(&second, CU_CTX_SCHED_AUTO, device));
    answer_growth("second_context_in_this_process");
    CU(cu.cuMemGetInfo_v2(&available_after, &total));
    answer_number("second_context_by_cuMemGetInfo", "bytes",
                  (double)available - (double)available_after);
    CU(cu.cuCtxDestroy_v2(second));
    answer_growth("second_context_destroyed");
    CU(cu.cuCtxSetCurrent(primary));

    struct gpu gpu = {.device = device, .context = primary};
    gpu_load_kernels(&gpu);
    answer_growth("module_loaded");
    launch_empty(&gpu, NULL);
    CU(cu.cuCtxSynchronize());
    answer_growth("first_launch");
    CUstream streams[16];
    for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
        CU(cu.cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        launch_empty(&gpu, streams[i]);
    }
    CU(cu.cuCtxSynchronize());
    answer_growth("sixteen_streams");
    CU(cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * MIB));
    answer_growth("malloc_heap_of_64_mib_set");
    CU(cu.cuDevicePrimaryCtxRelease_v2(device));
    sleep_us(100 * 1000);
    answer_growth("primary_context_released");
    CUcontext again;
    CU(cu.cuDevicePrimaryCtxRetain(&again, device));
    answer_growth("primary_context_again");
}

/* ---- granularity ---- */

enum { MOST = 20000 };

static CUdevice device;
static uint64_t handles[MOST];
static double host_ns[MOST];

/* Rounded up to what the function accepts. */
static size_t vmm_unit;

static CUresult alloc_linear(size_t i, size_t bytes) {
    return cu.cuMemAlloc_v2(&handles[i], bytes);
}
static CUresult free_linear(size_t i) { return cu.cuMemFree_v2(handles[i]); }
static CUresult alloc_async(size_t i, size_t bytes) {
    return cu.cuMemAllocAsync(&handles[i], bytes, CU_STREAM_LEGACY);
}
static CUresult free_async(size_t i) { return cu.cuMemFreeAsync(handles[i], CU_STREAM_LEGACY); }
static CUresult alloc_pitch(size_t i, size_t bytes) {
    size_t pitch, width = bytes < 64 * KIB ? bytes : 64 * KIB;
    return cu.cuMemAllocPitch_v2(&handles[i], &pitch, width, (bytes + width - 1) / width, 4);
}
static CUresult alloc_managed(size_t i, size_t bytes) {
    CUresult result = cu.cuMemAllocManaged(&handles[i], bytes, CU_MEM_ATTACH_GLOBAL);
    /* It takes memory of the card only where the card has touched it. */
    return result == CUDA_SUCCESS ? cu.cuMemsetD8_v2(handles[i], 0, bytes) : result;
}
static CUresult alloc_vmm(size_t i, size_t bytes) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    return cu.cuMemCreate(&handles[i], (bytes + vmm_unit - 1) / vmm_unit * vmm_unit, &prop, 0);
}
static CUresult free_vmm(size_t i) { return cu.cuMemRelease(handles[i]); }
static CUresult alloc_array(size_t i, size_t bytes) {
    CUDA_ARRAY_DESCRIPTOR shape = {.Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    shape.Width = bytes < 16 * KIB ? bytes : 16 * KIB;
    shape.Height = bytes <= shape.Width ? 0 : (bytes + shape.Width - 1) / shape.Width;
    CUarray array = NULL;
    CUresult result = cu.cuArrayCreate_v2(&array, &shape);
    handles[i] = (uintptr_t)array;
    return result;
}
static CUresult free_array(size_t i) { return cu.cuArrayDestroy((CUarray)(uintptr_t)handles[i]); }

static const struct kind {
    const char *name;
    CUresult (*alloc)(size_t, size_t);
    CUresult (*free)(size_t);
    size_t most; /* allocations at a time */
} kinds[] = {
    {"cuMemAlloc", alloc_linear, free_linear, MOST},
    {"cuMemAllocAsync", alloc_async, free_async, MOST},
    {"cuMemAllocPitch", alloc_pitch, free_linear, 2000},
    {"cuMemCreate", alloc_vmm, free_vmm, 64},
    {"cuArrayCreate", alloc_array, free_array, 2000},
    {"cuMemAllocManaged", alloc_managed, free_linear, 16},
};

static const size_t sizes[] = {1, 4 * KIB, 64 * KIB + 1, MIB, 2 * MIB, 2 * MIB + 1, 32 * MIB};

static int by_value(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void free_all(const struct kind *kind, size_t count) {
    for (size_t i = 0; i < count; i++) CU(kind->free(i));
    CU(cu.cuCtxSynchronize());
    CUmemoryPool pool;
    if (kind->alloc == alloc_async && cu.cuDeviceGetMemPool(&pool, device) == CUDA_SUCCESS)
        cu.cuMemPoolTrimTo(pool, 0);
}

/* The least distance between two allocations; handles that are no addresses mean nothing here. */
static uint64_t spacing(size_t count) {
    uint64_t least = UINT64_MAX;
    qsort(handles, count, sizeof *handles, by_value);
    for (size_t i = 1; i < count; i++)
        if (handles[i] - handles[i - 1] < least) least = handles[i] - handles[i - 1];
    return count > 1 ? least : 0;
}

static void measure(const struct kind *kind, size_t bytes) {
    char key[80], json[500], text[200];
    snprintf(key, sizeof key, "%s_%zu", kind->name, bytes);
    size_t count = 256 * MIB / bytes, made = 0;
    count = count < 4 ? 4 : count > samples(kind->most) ? samples(kind->most) : count;
    size_t available = 0, available_after = 0, total;
    uint64_t before = nvml_used(), first = 0;
    CU(cu.cuMemGetInfo_v2(&available, &total));
    CUresult result = CUDA_SUCCESS;
    for (; made < count; made++) {
        double start = now_ns();
        result = kind->alloc(made, bytes);
        if (result != CUDA_SUCCESS) break;
        host_ns[made] = now_ns() - start;
        if (made == 0) {
            CU(cu.cuCtxSynchronize());
            first = nvml_used();
        }
    }
    CU(cu.cuCtxSynchronize());
    if (made == 0) {
        answer_skipped(key, "%s", cuda_error(result));
        return;
    }
    uint64_t after = nvml_used();
    CU(cu.cuMemGetInfo_v2(&available_after, &total));
    double each = ((double)after - (double)before) / (double)made;
    double each_cuda = ((double)available - (double)available_after) / (double)made;
    uint64_t least = spacing(made);
    free_all(kind, made);
    double left = (double)nvml_used() - (double)before, mean_ns = 0;
    for (size_t i = 0; i < made; i++) mean_ns += host_ns[i] / (double)made;
    snprintf(json, sizeof json,
             "{\"n\":%zu,\"nvml_each\":%.8g,\"cuda_each\":%.8g,\"nvml_first\":%.10g,\"spacing\":%"
             "llu,\"left_after_free\":%.10g,"
             "\"host_ns_mean\":%.6g,\"error\":%u}",
             made, each, each_cuda, (double)first - (double)before, (unsigned long long)least, left,
             mean_ns, result);
    snprintf(text, sizeof text,
             "%.8g bytes each (n %zu, first %.4g MiB, spacing %llu, left after free %.4g MiB)",
             each, made, ((double)first - (double)before) / (double)MIB, (unsigned long long)least,
             left / (double)MIB);
    answer_json(key, json, text);
}

void stage_granularity(void) {
    struct gpu gpu;
    const char *why_not = "";
    gpu_open_context(&gpu);
    if (!nvml_open(&why_not)) skip("no NVML: %s", why_not);
    device = gpu.device;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
    size_t recommended = 0;
    vmm_unit = 2 * MIB;
    if (cu.cuMemGetAllocationGranularity(&vmm_unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
        CUDA_SUCCESS)
        answer_number("vmm_minimum", "bytes", (double)vmm_unit);
    if (cu.cuMemGetAllocationGranularity(&recommended, &prop,
                                         CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) == CUDA_SUCCESS)
        answer_number("vmm_recommended", "bytes", (double)recommended);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++) measure(&kinds[k], sizes[s]);
}
