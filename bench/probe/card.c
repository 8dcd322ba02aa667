/* Which card, driver and machine the other answers belong to, and which of its processes NVML
 * shows. */
#include "probe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void describe_device(CUdevice device) {
    static const struct {
        const char *key;
        int attribute;
    } attributes[] = {
        {"compute_capability_major", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
        {"compute_capability_minor", CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
        {"multiprocessors", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
        {"concurrent_managed_access", CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
        {"memory_pools", CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    };
    char name[128] = "";
    size_t total = 0;
    CU(cu.cuDeviceGetName(name, sizeof name, device));
    answer_text("gpu", "%s", name);
    CU(cu.cuDeviceTotalMem_v2(&total, device));
    answer_number("total_memory", "bytes", (double)total);
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++) {
        int value = 0;
        if (cu.cuDeviceGetAttribute(&value, attributes[i].attribute, device) == CUDA_SUCCESS)
            answer_number(attributes[i].key, "", value);
    }
}

static void describe_nvml(void) {
    const char *why_not = "";
    if (!nvml_open(&why_not)) {
        answer_skipped("nvml", "%s", why_not);
        return;
    }
    char text[128] = "";
    if (nv.nvmlSystemGetDriverVersion(text, sizeof text) == NVML_SUCCESS)
        answer_text("driver", "%s", text);
    if (nv.nvmlDeviceGetUUID(nv.device, text, sizeof text) == NVML_SUCCESS)
        answer_text("uuid", "%s", text);
    static const struct {
        const char *key;
        int clock;
    } clocks[] = {{"clock_sm", NVML_CLOCK_SM}, {"clock_memory", NVML_CLOCK_MEM}};
    for (size_t i = 0; i < ARRAY_LEN(clocks); i++) {
        unsigned int mhz = 0;
        if (nv.nvmlDeviceGetClockInfo(nv.device, clocks[i].clock, &mhz) == NVML_SUCCESS)
            answer_number(clocks[i].key, "MHz", mhz);
    }
    int mode = 0;
    if (nv.nvmlDeviceGetComputeMode(nv.device, &mode) == NVML_SUCCESS)
        answer_number("compute_mode", "", mode);
    if (nv.nvmlDeviceGetPersistenceMode(nv.device, &mode) == NVML_SUCCESS)
        answer_flag("persistence_mode", mode != 0);
    unsigned int mig = 0, pending = 0;
    if (nv.nvmlDeviceGetMigMode(nv.device, &mig, &pending) == NVML_SUCCESS)
        answer_flag("mig_mode", mig != 0);
    nvmlMemory_v2_t memory = {.version = NVML_MEMORY_V2};
    if (nv.nvmlDeviceGetMemoryInfo_v2(nv.device, &memory) == NVML_SUCCESS) {
        answer_number("nvml_total", "bytes", (double)memory.total);
        answer_number("nvml_reserved", "bytes", (double)memory.reserved);
        answer_number("nvml_used_by_all", "bytes", (double)memory.used);
    }
}

void stage_card(void) {
    cuda_load();
    int version = 0;
    CU(cu.cuDriverGetVersion(&version));
    answer_text("cuda", "%d.%d", version / 1000, version % 1000 / 10);
    CU(cu.cuInit(0));
    CUdevice device;
    CU(cu.cuDeviceGet(&device, 0));
    describe_device(device);
    describe_nvml();
}

/* ---- pids ---- */

enum { MOST_PROCESSES = 64 };

struct list {
    unsigned int count;
    nvmlProcessInfo_t infos[MOST_PROCESSES];
};

static void answer_list(const char *key, nvmlReturn_t result, const struct list *list,
                        pid_t holder) {
    if (result != NVML_SUCCESS) {
        answer_skipped(key, "NVML error %u", result);
        return;
    }
    struct text json = {0}, text = {0};
    text_add(&json, "[");
    for (unsigned int i = 0; i < list->count && i < MOST_PROCESSES; i++) {
        const nvmlProcessInfo_t *info = &list->infos[i];
        const char *whose = (pid_t)info->pid == getpid() ? "this process"
                            : (pid_t)info->pid == holder ? "our other process"
                                                         : "not ours by this number";
        text_add(&json, "%s{\"pid\":%u,\"whose\":\"%s\",\"used\":", i == 0 ? "" : ",", info->pid,
                 whose);
        if (info->usedGpuMemory == NVML_VALUE_NOT_AVAILABLE) text_add(&json, "null}");
        else text_add(&json, "%llu}", (unsigned long long)info->usedGpuMemory);
        text_add(&text, "%s%u (%s, %lld MiB)", i == 0 ? "" : ", ", info->pid, whose,
                 info->usedGpuMemory == NVML_VALUE_NOT_AVAILABLE
                     ? -1LL
                     : (long long)(info->usedGpuMemory / MIB));
    }
    text_add(&json, "]");
    text_add(&text, "%s", list->count == 0 ? "empty" : "");
    answer_json(key, json.bytes, text.bytes);
}

static void answer_utilization(void) {
    nvmlProcessUtilizationSample_t samples[MOST_PROCESSES];
    unsigned int count = MOST_PROCESSES;
    nvmlReturn_t result = nv.nvmlDeviceGetProcessUtilization(nv.device, samples, &count, 0);
    if (result != NVML_SUCCESS) {
        answer_skipped("process_utilization", "NVML error %u", result);
        return;
    }
    answer_number("process_utilization", "samples", count);
}

/* The process's numbers in each pid namespace, outermost first. */
static void answer_own_pids(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, "NSpid:", 6) == 0) answer_text("own_nspid", "%s", strtok(line + 6, "\n"));
    if (status != NULL) fclose(status);
    answer_number("own_pid", "", getpid());
}

void stage_pids(void) {
    const char *why_not = "";
    pid_t holder = start_holder(64 * MIB);
    struct gpu gpu;
    gpu_open_context(&gpu);
    if (!nvml_open(&why_not)) skip("no NVML: %s", why_not);
    answer_own_pids();
    answer_number("other_pid", "", holder);
    sleep_us(100 * 1000);

    struct list list = {.count = MOST_PROCESSES};
    answer_list("compute_v3",
                nv.nvmlDeviceGetComputeRunningProcesses_v3(nv.device, &list.count, list.infos),
                &list, holder);
    list.count = MOST_PROCESSES;
    answer_list("compute_v2",
                nv.nvmlDeviceGetComputeRunningProcesses_v2(nv.device, &list.count, list.infos),
                &list, holder);
    nvmlProcessInfo_v1_t old[MOST_PROCESSES];
    list.count = MOST_PROCESSES;
    nvmlReturn_t result = nv.nvmlDeviceGetComputeRunningProcesses(nv.device, &list.count, old);
    for (unsigned int i = 0; result == NVML_SUCCESS && i < list.count && i < MOST_PROCESSES; i++)
        list.infos[i] = (nvmlProcessInfo_t){old[i].pid, old[i].usedGpuMemory, 0, 0};
    answer_list("compute_v1", result, &list, holder);
    list.count = MOST_PROCESSES;
    answer_list("graphics_v3",
                nv.nvmlDeviceGetGraphicsRunningProcesses_v3(nv.device, &list.count, list.infos),
                &list, holder);
    answer_utilization();
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
}
