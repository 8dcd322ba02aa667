/*
 * The driver as the stages use it: every function looked up by name, missing ones replaced by one
 * that says so; the kernels as PTX text, which the driver itself compiles, so that no CUDA compiler
 * is needed on the card's machine.
 */
#include "probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct cuda cu;
struct nvml nv;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define MISSING(name, params) \
    static CUresult missing_##name params { return CUDA_ERROR_NOT_SUPPORTED; }
CUDA_FUNCTIONS(MISSING)
#undef MISSING
#define MISSING(name, params) \
    static nvmlReturn_t missing_##name params { return NVML_ERROR_NOT_SUPPORTED; }
NVML_FUNCTIONS(MISSING)
#undef MISSING
#pragma GCC diagnostic pop

void cuda_load(void) {
    if (cu.library != NULL) return;
    cu.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (cu.library == NULL) skip("no driver: %s", dlerror());
#define LOOK_UP(name, params) \
    *(void **)&cu.name = dlsym(cu.library, #name); \
    if (cu.name == NULL) cu.name = missing_##name;
    CUDA_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
}

/* NVML's index need not be CUDA's: the UUID joins them. */
static bool find_nvml_device(const char **why_not) {
    CUuuid uuid;
    char text[64] = "GPU-";
    if (cu.library != NULL && cu.cuDeviceGetUuid_v2(&uuid, 0) == CUDA_SUCCESS) {
        size_t at = 4;
        for (int i = 0; i < 16; i++) {
            if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
            at +=
                (size_t)snprintf(text + at, sizeof text - at, "%02x", (unsigned char)uuid.bytes[i]);
        }
        if (nv.nvmlDeviceGetHandleByUUID(text, &nv.device) == NVML_SUCCESS) return true;
        memcpy(text, "MIG-", 4);
        if (nv.nvmlDeviceGetHandleByUUID(text, &nv.device) == NVML_SUCCESS) return true;
    }
    if (nv.nvmlDeviceGetHandleByIndex_v2(0, &nv.device) == NVML_SUCCESS) return true;
    *why_not = "NVML knows no device";
    return false;
}

bool nvml_open(const char **why_not) {
    if (nv.device != NULL) return true;
    nv.library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nv.library == NULL) {
        *why_not = dlerror();
        return false;
    }
#define LOOK_UP(name, params) \
    *(void **)&nv.name = dlsym(nv.library, #name); \
    if (nv.name == NULL) nv.name = missing_##name;
    NVML_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    if (nv.nvmlInit_v2() != NVML_SUCCESS) {
        *why_not = "nvmlInit_v2 failed";
        return false;
    }
    return find_nvml_device(why_not);
}

const char *cuda_error(CUresult result) {
    static char number[32];
    const char *name = NULL;
    if (result == CUDA_SUCCESS) return "CUDA_SUCCESS";
    if (cu.cuGetErrorName(result, &name) == CUDA_SUCCESS && name != NULL) return name;
    snprintf(number, sizeof number, "error %u", result);
    return number;
}

void cuda_check(CUresult result, const char *call) {
    if (result == CUDA_SUCCESS) return;
    int length = (int)strcspn(call, "(");
    if (strncmp(call, "cu.", 3) == 0) {
        call += 3;
        length -= 3;
    }
    bool no_means = result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_NO_DEVICE ||
                    result == CUDA_ERROR_NOT_FOUND;
    if (no_means) skip("%.*s: %s", length, call, cuda_error(result));
    fail("%.*s: %s", length, call, cuda_error(result));
}

void gpu_open_context(struct gpu *gpu) {
    memset(gpu, 0, sizeof *gpu);
    cuda_load();
    CU(cu.cuInit(0));
    CU(cu.cuDeviceGet(&gpu->device, 0));
    CU(cu.cuDevicePrimaryCtxRetain(&gpu->context, gpu->device));
    CU(cu.cuCtxSetCurrent(gpu->context));
}

/*
 * empty  does nothing.
 * spin   one thread reads the SM's clock until `cycles` have passed.
 * watch  one thread reads the card's nanosecond clock for `ns`, and writes down each step greater
 * than `threshold`: such a step is time in which the kernel did not run. out: [0] steps written,
 * [1] smallest step but 0, [2] readings, [3] first and [4] last time, [5] 1 when done; from [8] on
 * pairs of time since the start and step.
 */
static const char kernels[] =
    ".version 6.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry empty() { ret; }\n"
    ".visible .entry spin(.param .u64 cycles) {\n"
    "  .reg .u64 %want, %start, %now;\n"
    "  .reg .pred %more;\n"
    "  ld.param.u64 %want, [cycles];\n"
    "  mov.u64 %start, %clock64;\n"
    "again:\n"
    "  mov.u64 %now, %clock64;\n"
    "  sub.u64 %now, %now, %start;\n"
    "  setp.lt.u64 %more, %now, %want;\n"
    "  @%more bra again;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry watch(.param .u64 out, .param .u64 ns, .param .u64 threshold, .param .u64 "
    "room) {\n"
    "  .reg .u64 %out, %at, %ns, %threshold, %room, %count, %least, %reads;\n"
    "  .reg .u64 %start, %now, %last, %step, %since, %one;\n"
    "  .reg .pred %p;\n"
    "  ld.param.u64 %out, [out];\n"
    "  cvta.to.global.u64 %out, %out;\n"
    "  ld.param.u64 %ns, [ns];\n"
    "  ld.param.u64 %threshold, [threshold];\n"
    "  ld.param.u64 %room, [room];\n"
    "  add.u64 %at, %out, 64;\n"
    "  mov.u64 %count, 0;\n"
    "  mov.u64 %reads, 0;\n"
    "  mov.u64 %least, -1;\n"
    "  mov.u64 %start, %globaltimer;\n"
    "  mov.u64 %last, %start;\n"
    "again:\n"
    "  mov.u64 %now, %globaltimer;\n"
    "  add.u64 %reads, %reads, 1;\n"
    "  sub.u64 %step, %now, %last;\n"
    "  setp.eq.u64 %p, %step, 0;\n"
    "  @%p bra next;\n"
    "  min.u64 %least, %least, %step;\n"
    "  setp.le.u64 %p, %step, %threshold;\n"
    "  @%p bra keep;\n"
    "  setp.ge.u64 %p, %count, %room;\n"
    "  @%p bra keep;\n"
    "  sub.u64 %since, %now, %start;\n"
    "  st.global.u64 [%at], %since;\n"
    "  st.global.u64 [%at+8], %step;\n"
    "  add.u64 %at, %at, 16;\n"
    "  add.u64 %count, %count, 1;\n"
    "keep:\n"
    "  mov.u64 %last, %now;\n"
    "next:\n"
    "  sub.u64 %since, %now, %start;\n"
    "  setp.lt.u64 %p, %since, %ns;\n"
    "  @%p bra again;\n"
    "  st.global.u64 [%out], %count;\n"
    "  st.global.u64 [%out+8], %least;\n"
    "  st.global.u64 [%out+16], %reads;\n"
    "  st.global.u64 [%out+24], %start;\n"
    "  st.global.u64 [%out+32], %now;\n"
    "  mov.u64 %one, 1;\n"
    "  st.global.u64 [%out+40], %one;\n"
    "  ret;\n"
    "}\n";

void gpu_load_kernels(struct gpu *gpu) {
    CU(cu.cuModuleLoadData(&gpu->module, kernels));
    CU(cu.cuModuleGetFunction(&gpu->empty, gpu->module, "empty"));
    CU(cu.cuModuleGetFunction(&gpu->spin, gpu->module, "spin"));
    CU(cu.cuModuleGetFunction(&gpu->watch, gpu->module, "watch"));
    CU(cu.cuStreamCreate(&gpu->stream, CU_STREAM_NON_BLOCKING));
}

void launch_empty(const struct gpu *gpu, CUstream stream) {
    CU(cu.cuLaunchKernel(gpu->empty, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
}

static void spin_cycles(const struct gpu *gpu, CUstream stream, uint64_t cycles) {
    void *params[] = {&cycles};
    CU(cu.cuLaunchKernel(gpu->spin, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL));
}

void launch_spin(const struct gpu *gpu, CUstream stream, double microseconds) {
    spin_cycles(gpu, stream, (uint64_t)(microseconds * gpu->cycles_per_us));
}

static float timed_spin(const struct gpu *gpu, CUevent start, CUevent end, uint64_t cycles) {
    float ms = 0;
    launch_empty(gpu, gpu->stream);
    CU(cu.cuEventRecord(start, gpu->stream));
    spin_cycles(gpu, gpu->stream, cycles);
    CU(cu.cuEventRecord(end, gpu->stream));
    CU(cu.cuStreamSynchronize(gpu->stream));
    CU(cu.cuEventElapsedTime(&ms, start, end));
    return ms;
}

/* An idle card is slow to raise its clock: spin for a while first. */
static void calibrate(struct gpu *gpu) {
    const uint64_t cycles = 20 * 1000 * 1000;
    CUevent start, end;
    CU(cu.cuEventCreate(&start, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&end, CU_EVENT_DEFAULT));
    for (int i = 0; i < 10; i++) timed_spin(gpu, start, end, cycles);
    float once = timed_spin(gpu, start, end, cycles),
          twice = timed_spin(gpu, start, end, 2 * cycles);
    if (!(once > 0)) skip("a kernel took no time: no card ran it");
    gpu->cycles_per_us = (double)cycles / (1000.0 * (double)once);
    gpu->real = twice > 1.8f * once && twice < 2.2f * once;
    CU(cu.cuEventDestroy_v2(start));
    CU(cu.cuEventDestroy_v2(end));
}

void gpu_open_uncalibrated(struct gpu *gpu) {
    gpu_open_context(gpu);
    gpu_load_kernels(gpu);
    launch_empty(gpu, gpu->stream);
    CU(cu.cuStreamSynchronize(gpu->stream));
}

void gpu_open(struct gpu *gpu) {
    gpu_open_context(gpu);
    gpu_load_kernels(gpu);
    calibrate(gpu);
}

_Noreturn void end_like(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) fail("a process of this stage died of signal %d", WTERMSIG(status));
    _exit(WEXITSTATUS(status)); /* it has said why */
}

pid_t start_holder(size_t bytes) {
    int ready[2];
    char byte;
    if (pipe(ready) != 0) fail("pipe");
    pid_t child = fork();
    if (child == 0) {
        struct gpu gpu;
        CUdeviceptr memory;
        gpu_open_context(&gpu);
        if (bytes != 0) CU(cu.cuMemAlloc_v2(&memory, bytes));
        if (write(ready[1], "r", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ready[1]);
    bool well = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    if (!well) end_like(child);
    return child;
}

double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

size_t samples(size_t full) { return getenv("PROBE_QUICK") == NULL ? full : full / 50 + 2; }

void sleep_us(double microseconds) {
    struct timespec pause = {(time_t)(microseconds / 1e6), 0};
    pause.tv_nsec = (long)((microseconds - (double)pause.tv_sec * 1e6) * 1e3);
    nanosleep(&pause, NULL);
}

uint64_t nvml_used(void) {
    nvmlMemory_t memory = {0, 0, 0};
    uint64_t last = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        if (nv.nvmlDeviceGetMemoryInfo(nv.device, &memory) != NVML_SUCCESS) return 0;
        if (memory.used == last) break;
        last = memory.used;
        sleep_us(2000);
    }
    return memory.used;
}

const char *probe_dir(void) {
    const char *dir = getenv("PROBE_DIR");
    return dir != NULL ? dir : ".";
}
