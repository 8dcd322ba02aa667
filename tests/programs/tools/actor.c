/*
 * A process that does as it is told: one command per line on stdin, one line of numbers on stdout, the first of them
 * the driver's answer. Tests tell several such processes what to do and in which order, without any waiting.
 *
 * Values that the driver gives out (addresses, handles) are kept under a letter, `a` to `z`; sizes are in bytes.
 */
#include "driver.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/prctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIELD(name, params) static name##_fn call_##name;
CUDA_FUNCTIONS(FIELD)
NVML_FUNCTIONS(FIELD)

static uint64_t slots[26];
static uint64_t extra; /* the second number of an answer, if a command has one */

static void open_driver(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!cuda || !nvml) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
#define FIND_CUDA(name, params) call_##name = (name##_fn)dlsym(cuda, #name);
    CUDA_FUNCTIONS(FIND_CUDA)
#define FIND_NVML(name, params) call_##name = (name##_fn)dlsym(nvml, #name);
    NVML_FUNCTIONS(FIND_NVML)
}

#include "actor_rows.h"
#include "actor_share.h"
#include "actor_graph.h"

/* Says that the stack of this process begins `bytes` below where it does. Everything else stays as /proc has it. */
static int move_stack(uint64_t bytes)
{
    char text[2048] = "";
    FILE *stat = fopen("/proc/self/stat", "r");
    if (!stat || !fgets(text, sizeof text, stat) || fclose(stat))
        return -1;
    uint64_t fields[64] = { 0 };
    int field = 3; /* proc_pid_stat(5) counts from 1, and the name ends with the last parenthesis */
    for (char *word = strtok(strrchr(text, ')') + 1, " "); word && field < 64; word = strtok(NULL, " "))
        fields[field++] = strtoull(word, NULL, 10);
    struct prctl_mm_map map = {
        .start_code = fields[26], .end_code = fields[27], .start_stack = fields[28] - bytes,
        .start_data = fields[45], .end_data = fields[46], .start_brk = fields[47],
        .brk = (uint64_t)(uintptr_t)sbrk(0), .arg_start = fields[48], .arg_end = fields[49],
        .env_start = fields[50], .env_end = fields[51], .exe_fd = (uint32_t)-1,
    };
    return prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
}

static CUresult context(int ordinal)
{
    CUcontext primary;
    CUresult result = call_cuDevicePrimaryCtxRetain(&primary, ordinal);
    return result ? result : call_cuCtxSetCurrent(primary);
}

/* Copies from memory of card 1 to memory of card 0, once both have opened their memory to one another. */
static CUresult copy_between_cards(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    CUcontext primary[2];
    CUresult result = 0;
    for (int card = 0; !result && card < 2; card++)
        result = call_cuDevicePrimaryCtxRetain(&primary[card], card);
    if (!result)
        result = call_cuCtxEnablePeerAccess(primary[1], 0);
    if (!result)
        result = call_cuMemcpyPeer(to, primary[0], from, primary[1], bytes);
    for (int card = 0; card < 2; card++)
        call_cuDevicePrimaryCtxRelease_v2(card);
    return result;
}

static CUresult pitch(uint64_t *slot, size_t width, size_t height)
{
    size_t row = 0;
    CUresult result = call_cuMemAllocPitch_v2(slot, &row, width, height, 4);
    extra = row;
    return result;
}

static CUresult array(uint64_t *slot, size_t width, size_t height)
{
    CUDA_ARRAY_DESCRIPTOR form = { .Width = width, .Height = height, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1 };
    return call_cuArrayCreate_v2((CUarray *)slot, &form);
}

/* Of one level. */
static CUresult mipmap(uint64_t *slot, size_t width, size_t height)
{
    CUDA_ARRAY3D_DESCRIPTOR form = { .Width = width, .Height = height, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1 };
    return call_cuMipmappedArrayCreate((CUmipmappedArray *)slot, &form, 1);
}

static CUresult create(uint64_t *slot, size_t bytes, int device)
{
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
    return call_cuMemCreate(slot, bytes, &prop, 0);
}

static CUresult create_on_host(uint64_t *slot, size_t bytes, int type)
{
    CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = { type, 0 } };
    return call_cuMemCreate(slot, bytes, &prop, 0);
}

/* Maps the handle in `from` at an address of its own. */
static CUresult map(uint64_t *slot, uint64_t handle, size_t bytes)
{
    CUresult result = call_cuMemAddressReserve(slot, bytes, 0, 0, 0);
    return result ? result : call_cuMemMap(*slot, bytes, 0, handle, 0);
}

static CUresult sync_event(void)
{
    CUevent event;
    CUresult result = call_cuEventCreate(&event, 2);
    if (!result)
        result = call_cuEventRecord(event, NULL);
    if (!result)
        result = call_cuEventSynchronize(event);
    call_cuEventDestroy_v2(event);
    return result;
}

static CUresult info(uint64_t *total)
{
    size_t free_bytes = 0, all = 0;
    CUresult result = call_cuMemGetInfo_v2(&free_bytes, &all);
    extra = free_bytes;
    *total = all;
    return result;
}

static CUresult info_in_32_bits(uint64_t *total)
{
    unsigned int free_bytes = 0, all = 0;
    CUresult result = call_cuMemGetInfo(&free_bytes, &all);
    extra = free_bytes;
    *total = all;
    return result;
}

static CUresult total_in_32_bits(uint64_t *total, int device)
{
    unsigned int bytes = 0;
    CUresult result = call_cuDeviceTotalMem(&bytes, device);
    *total = bytes;
    return result;
}

/* A card by its place, or with `slice` from 1 on one of its MIG instances. */
static nvmlReturn_t nvml_device(nvmlDevice_t *device, unsigned int index, unsigned int slice)
{
    nvmlReturn_t result = call_nvmlInit_v2();
    if (!result)
        result = call_nvmlDeviceGetHandleByIndex_v2(index, device);
    if (!result && slice)
        result = call_nvmlDeviceGetMigDeviceHandleByIndex(*device, slice - 1, device);
    return result;
}

#include "actor_code.h"

static CUresult nvml(uint64_t *total, unsigned int index, unsigned int slice)
{
    nvmlDevice_t device;
    nvmlMemory_t memory = { 0 };
    nvmlReturn_t result = nvml_device(&device, index, slice);
    if (!result)
        result = call_nvmlDeviceGetMemoryInfo(device, &memory);
    if (!result && memory.free != memory.total - memory.used)
        return 9998;
    extra = memory.used;
    *total = memory.total;
    return result;
}

static CUresult nvml_v2(uint64_t *total, unsigned int index)
{
    nvmlDevice_t device;
    nvmlMemory_v2_t memory = { .version = NVML_MEMORY_V2 };
    nvmlReturn_t result = nvml_device(&device, index, 0);
    if (!result)
        result = call_nvmlDeviceGetMemoryInfo_v2(device, &memory);
    if (!result && (memory.reserved || memory.free != memory.total - memory.used))
        return 9998;
    extra = memory.used;
    *total = memory.total;
    return result;
}

/* The UUID of a card or MIG instance as two numbers. */
static CUresult uuid(uint64_t *high, unsigned int index, unsigned int slice)
{
    nvmlDevice_t device;
    char text[96] = "";
    nvmlReturn_t result = nvml_device(&device, index, slice);
    if (!result)
        result = call_nvmlDeviceGetUUID(device, text, sizeof text);
    uint64_t half[2] = { 0, 0 };
    int digits = 0;
    for (char *at = text + 4; !result && *at; at++)
        if (*at != '-') {
            char digit[2] = { *at, 0 };
            half[digits / 16 % 2] = half[digits / 16 % 2] << 4 | strtoull(digit, NULL, 16);
            digits++;
        }
    *high = half[0], extra = half[1];
    return result;
}

/*
 * The child goes on with the commands; when it ends, so does the answer: its exit code, or 1000 + its signal. With
 * WNOWAIT no process waits for the end, and the child stays a zombie.
 */
static CUresult fork_here(int options)
{
    siginfo_t end = { 0 };
    pid_t child = fork();
    if (child == 0)
        return 0;
    waitid(P_PID, (id_t)child, &end, WEXITED | options);
    return (end.si_code == CLD_EXITED ? 0 : 1000) + (unsigned int)end.si_status;
}

static CUresult obey(const char *verb, uint64_t *slot, uint64_t *from, uint64_t first, uint64_t second)
{
    size_t total = 0;
    int count = 0;
    CUresult result;
    if (obey_row(&result, verb, slot, first)) return result;
    if (obey_share(&result, verb, slot, from, first, second)) return result;
    if (obey_graph(&result, verb, slot, from, first, second)) return result;
    if (obey_code(&result, verb, slot, first)) return result;
#define IS(word) (strcmp(verb, word) == 0)
    if (IS("init")) return call_cuInit(0);
    if (IS("context")) return context((int)first);
    if (IS("release")) return call_cuDevicePrimaryCtxRelease_v2((int)first);
    if (IS("release1")) return call_cuDevicePrimaryCtxRelease((int)first);
    if (IS("reset")) return call_cuDevicePrimaryCtxReset_v2((int)first);
    if (IS("reset1")) return call_cuDevicePrimaryCtxReset((int)first);
    if (IS("limit")) return call_cuCtxSetLimit((int)first, second);
    if (IS("copy-between-cards")) return copy_between_cards(*slot, *from, first);
    if (IS("current")) return call_cuCtxGetCurrent((CUcontext *)slot);
    if (IS("as-context")) return call_cuCtxFromGreenCtx((CUcontext *)slot, (void *)*from);
    if (IS("function")) return row_cuModuleGetFunction(slot, *from, first);
    if (IS("alloc")) return call_cuMemAlloc_v2(slot, first);
    if (IS("free")) return call_cuMemFree_v2(*slot);
    if (IS("free-at")) return call_cuMemFree_v2(first);
    if (IS("pitch")) return pitch(slot, first, second);
    if (IS("managed")) return call_cuMemAllocManaged(slot, first, 1);
    if (IS("async")) return call_cuMemAllocAsync(slot, first, NULL);
    if (IS("stream")) return call_cuStreamCreate((CUstream *)slot, 1);
    if (IS("end-stream")) return call_cuStreamDestroy_v2((CUstream)*slot);
    if (IS("async-in")) return call_cuMemAllocAsync(slot, first, (CUstream)*from);
    if (IS("from-pool")) return call_cuMemAllocFromPoolAsync(slot, first, (CUmemoryPool)*from, NULL);
    if (IS("free-async")) return call_cuMemFreeAsync(*slot, NULL);
    if (IS("array")) return array(slot, first, second);
    if (IS("mipmap")) return mipmap(slot, first, second);
    if (IS("free-array")) return call_cuArrayDestroy((CUarray)*slot);
    if (IS("create")) return create(slot, first, (int)second);
    if (IS("map")) return map(slot, *from, first);
    if (IS("create-on-host")) return create_on_host(slot, first, (int)second);
    if (IS("reserve")) return call_cuMemAddressReserve(slot, first, 0, 0, 0);
    if (IS("map-at")) return call_cuMemMap(*slot + second, first, 0, *from, 0);
    if (IS("retain")) return call_cuMemRetainAllocationHandle(slot, (void *)*from);
    if (IS("unmap")) return call_cuMemUnmap(*slot, first);
    if (IS("drop")) return call_cuMemRelease(*slot);
    if (IS("info")) return info(slot);
    if (IS("info1")) return info_in_32_bits(slot);
    if (IS("nvml")) return nvml(slot, (unsigned int)first, (unsigned int)second);
    if (IS("nvml2")) return nvml_v2(slot, (unsigned int)first);
    if (IS("uuid")) return uuid(slot, (unsigned int)first, (unsigned int)second);
    if (IS("count")) return result = call_cuDeviceGetCount(&count), *slot = (uint64_t)count, result;
    if (IS("total1")) return total_in_32_bits(slot, (int)first);
    if (IS("total")) return result = call_cuDeviceTotalMem_v2(&total, (int)first), *slot = total, result;
    if (IS("sync")) return call_cuCtxSynchronize();
    if (IS("sync-stream")) return call_cuStreamSynchronize(NULL);
    if (IS("sync-event")) return sync_event();
    if (IS("fork")) return fork_here(0);
    if (IS("fork-zombie")) return fork_here(WNOWAIT);
    if (IS("exit")) exit((int)first);
    if (IS("vanish")) _exit((int)first);
    if (IS("kill")) raise((int)first);
    if (IS("move-stack")) return (CUresult)move_stack(first);
    if (IS("exec")) execl("/proc/self/exe", "actor", (char *)NULL);
#undef IS
    return 9999;
}

int main(void)
{
    char line[256], verb[32];
    open_driver();
    setvbuf(stdin, NULL, _IONBF, 0); /* a forked child reads on where its parent stopped */
    while (fgets(line, sizeof line, stdin)) {
        char to[2] = "a", from[2] = "a";
        uint64_t numbers[2] = { 0, 0 };
        int words = sscanf(line, "%31s", verb), used = (int)strlen(verb);
        if (words != 1)
            continue;
        /* VERB [LETTER [LETTER]] [NUMBER [NUMBER]] */
        int step = 0;
        if (sscanf(line + used, " %1[a-z]%n", to, &step) == 1)
            used += step;
        step = 0;
        if (sscanf(line + used, " %1[a-z]%n", from, &step) == 1)
            used += step;
        sscanf(line + used, "%" SCNu64 "%" SCNu64, &numbers[0], &numbers[1]);
        extra = 0;
        uint64_t *slot = &slots[to[0] - 'a'];
        CUresult result = obey(verb, slot, &slots[from[0] - 'a'], numbers[0], numbers[1]);
        printf("%u %" PRIu64 " %" PRIu64 "\n", result, *slot, extra);
        fflush(stdout);
    }
    return 0;
}
