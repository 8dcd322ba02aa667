/*
 * Keeps the first card busy and asks NVML about it, as it is told on stdin: one command per line, one line of numbers
 * as the answer, the first of them the driver's or NVML's code.
 *
 *   begin           gets a context
 *   work NAME       launches a kernel of the stub and waits for its end
 *   rates           gpu, memory
 *   samples KIND SINCE ROOM     count, then time and value of each
 *   processes SINCE ROOM, list SINCE ROOM, computing ROOM       count, then pid, time or bytes, and share of each
 *   accounts ROOM   count, then each pid
 *   account PID     most memory
 */
#include "driver.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(name, params) static name##_fn call_##name;
CUDA_FUNCTIONS(FIELD)
NVML_FUNCTIONS(FIELD)

enum { ROOM = 64 };
static nvmlDevice_t card;
static CUmodule module;

static CUresult begin(void)
{
    CUcontext context;
    return call_cuInit(0) || call_cuDevicePrimaryCtxRetain(&context, 0) || call_cuCtxSetCurrent(context) ||
           call_cuModuleLoadData(&module, "image");
}

static CUresult work(const char *name)
{
    CUfunction kernel;
    return call_cuModuleGetFunction(&kernel, module, name) ||
           call_cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL) || call_cuCtxSynchronize();
}

static void rates(void)
{
    nvmlUtilization_t rates = { 0, 0 };
    printf("%u", call_nvmlDeviceGetUtilizationRates(card, &rates));
    printf(" %u %u", rates.gpu, rates.memory);
}

static void samples(int kind, uint64_t since, unsigned int room)
{
    nvmlSample_t found[ROOM];
    unsigned int count = room;
    int type = 0;
    nvmlReturn_t code = call_nvmlDeviceGetSamples(card, kind, since, &type, &count, room ? found : NULL);
    printf("%u %u", code, count);
    for (unsigned int i = 0; !code && i < count && i < room; i++)
        printf(" %" PRIu64 " %" PRIu64, found[i].timeStamp, found[i].sampleValue);
}

static void processes(uint64_t since, unsigned int room)
{
    nvmlProcessUtilizationSample_t found[ROOM];
    nvmlReturn_t code = call_nvmlDeviceGetProcessUtilization(card, room ? found : NULL, &room, since);
    printf("%u %u", code, room);
    for (unsigned int i = 0; !code && i < room; i++)
        printf(" %u %" PRIu64 " %u", found[i].pid, found[i].timeStamp, found[i].smUtil);
}

static void list(uint64_t since, unsigned int room)
{
    nvmlProcessUtilizationInfo_v1_t found[ROOM];
    nvmlProcessesUtilizationInfo_t list = { NVML_PROCESSES_UTILIZATION_V1, room, since, room ? found : NULL };
    nvmlReturn_t code = call_nvmlDeviceGetProcessesUtilizationInfo(card, &list);
    printf("%u %u", code, list.processSamplesCount);
    for (unsigned int i = 0; !code && i < list.processSamplesCount; i++)
        printf(" %u %" PRIu64 " %u", found[i].pid, found[i].timeStamp, found[i].smUtil);
}

static void computing(unsigned int room)
{
    nvmlProcessInfo_t found[ROOM];
    nvmlReturn_t code = call_nvmlDeviceGetComputeRunningProcesses_v3(card, &room, found);
    printf("%u %u", code, room);
    for (unsigned int i = 0; !code && i < room; i++)
        printf(" %u %" PRIu64 " %u", found[i].pid, found[i].usedGpuMemory, found[i].gpuInstanceId);
}

static void accounts(unsigned int room)
{
    unsigned int found[ROOM];
    nvmlReturn_t code = call_nvmlDeviceGetAccountingPids(card, &room, found);
    printf("%u %u", code, room);
    for (unsigned int i = 0; !code && i < room; i++)
        printf(" %u", found[i]);
}

static void account(unsigned int pid)
{
    nvmlAccountingStats_t stats = { 0 };
    nvmlReturn_t code = call_nvmlDeviceGetAccountingStats(card, pid, &stats);
    printf("%u %" PRIu64, code, (uint64_t)stats.maxMemoryUsage);
}

int main(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    char line[128], verb[32], name[64];
#define FIND_CUDA(name, params) call_##name = (name##_fn)dlsym(cuda, #name);
    CUDA_FUNCTIONS(FIND_CUDA)
#define FIND_NVML(name, params) call_##name = (name##_fn)dlsym(nvml, #name);
    NVML_FUNCTIONS(FIND_NVML)
    if (!cuda || !nvml || call_nvmlInit_v2() || call_nvmlDeviceGetHandleByIndex_v2(0, &card))
        return 1;
    const char *slice = getenv("BUSY_SLICE"); /* a MIG instance of it */
    if (slice && call_nvmlDeviceGetMigDeviceHandleByIndex(card, (unsigned int)atoi(slice), &card))
        return 1;
    while (fgets(line, sizeof line, stdin)) {
        uint64_t a = 0, b = 0, c = 0;
        sscanf(line, "%31s %63s", verb, name);
        sscanf(line, "%*s %" SCNu64 " %" SCNu64 " %" SCNu64, &a, &b, &c);
#define IS(word) (strcmp(verb, word) == 0)
        if (IS("begin")) printf("%u", begin());
        if (IS("work")) printf("%u", work(name));
        if (IS("rates")) rates();
        if (IS("samples")) samples((int)a, b, (unsigned int)c);
        if (IS("processes")) processes(a, (unsigned int)b);
        if (IS("list")) list(a, (unsigned int)b);
        if (IS("computing")) computing((unsigned int)a);
        if (IS("accounts")) accounts((unsigned int)a);
        if (IS("account")) account((unsigned int)a);
        putchar('\n');
        fflush(stdout);
    }
    return 0;
}
