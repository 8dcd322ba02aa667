/*
 * What calls cost: on the host, each call timed by itself; on the card, by the time that a row of
 * kernels takes with and without events between them. The meter's price is made of these.
 */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 4000 };

static struct gpu gpu;
static CUevent timing, other_timing, plain;
static CUgraphExec graph;
static CUdeviceptr word;
static double times[MOST];

/* ---- calls, as the host sees them ---- */

static void step_nothing(void) {}
static void step_launch(void) { launch_empty(&gpu, gpu.stream); }
static void step_record(void) { CU(cu.cuEventRecord(timing, gpu.stream)); }
static void step_record_plain(void) { CU(cu.cuEventRecord(plain, gpu.stream)); }
static void step_query(void) { cu.cuEventQuery(timing); }
static void step_stream_query(void) { cu.cuStreamQuery(gpu.stream); }
static void step_elapsed(void) {
    float ms;
    CU(cu.cuEventElapsedTime(&ms, timing, other_timing));
}
static void step_is_capturing(void) {
    int status;
    CU(cu.cuStreamIsCapturing(gpu.stream, &status));
}
static void step_get_current(void) {
    CUcontext context;
    CU(cu.cuCtxGetCurrent(&context));
}
static void step_memset(void) { CU(cu.cuMemsetD32Async(word, 0, 1, gpu.stream)); }
static void step_graph(void) { CU(cu.cuGraphLaunch(graph, gpu.stream)); }
static void step_alloc_free(size_t bytes) {
    CUdeviceptr memory;
    CU(cu.cuMemAlloc_v2(&memory, bytes));
    CU(cu.cuMemFree_v2(memory));
}
static void step_alloc_small(void) { step_alloc_free(64 * KIB); }
static void step_alloc_large(void) { step_alloc_free(32 * MIB); }
static void step_alloc_async(void) {
    CUdeviceptr memory;
    CU(cu.cuMemAllocAsync(&memory, 64 * KIB, gpu.stream));
    CU(cu.cuMemFreeAsync(memory, gpu.stream));
}
static void step_info(void) {
    size_t available, total;
    CU(cu.cuMemGetInfo_v2(&available, &total));
}
static void step_nvml_memory(void) {
    nvmlMemory_t memory;
    nv.nvmlDeviceGetMemoryInfo(nv.device, &memory);
}
static void step_nvml_processes(void) {
    static nvmlProcessInfo_t infos[64];
    unsigned int count = ARRAY_LEN(infos);
    nv.nvmlDeviceGetComputeRunningProcesses_v3(nv.device, &count, infos);
}

/* Times each call by itself. Every `rest` calls the stream is emptied, so that no call waits for
 * room in it. */
static void time_each(const char *key, size_t count, size_t rest, void (*step)(void)) {
    CU(cu.cuStreamSynchronize(gpu.stream));
    for (size_t i = 0; i < count; i++) {
        if (i % rest == 0) CU(cu.cuStreamSynchronize(gpu.stream));
        double start = now_ns();
        step();
        times[i] = now_ns() - start;
    }
    CU(cu.cuStreamSynchronize(gpu.stream));
    answer_spread(key, "ns", times, count);
}

/* The same calls while the stream is busy with a kernel that outlasts them all. */
static void time_behind_spin(const char *key, size_t count, void (*step)(void)) {
    CU(cu.cuStreamSynchronize(gpu.stream));
    launch_spin(&gpu, gpu.stream, 20000);
    for (size_t i = 0; i < count; i++) {
        double start = now_ns();
        step();
        times[i] = now_ns() - start;
    }
    CU(cu.cuStreamSynchronize(gpu.stream));
    answer_spread(key, "ns", times, count);
}

static bool make_graph(void) {
    CUgraph captured;
    if (cu.cuStreamBeginCapture_v2(gpu.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) != CUDA_SUCCESS)
        return false;
    for (int i = 0; i < 10; i++) launch_empty(&gpu, gpu.stream);
    if (cu.cuStreamEndCapture(gpu.stream, &captured) != CUDA_SUCCESS) return false;
    return cu.cuGraphInstantiateWithFlags(&graph, captured, 0) == CUDA_SUCCESS;
}

static void time_calls(void) {
    size_t n = samples(2000);
    time_each("host_clock_read", n, MOST, step_nothing);
    time_each("host_launch_empty", n, 200, step_launch);
    time_each("host_record_timing_event", n, 200, step_record);
    time_each("host_record_plain_event", n, 200, step_record_plain);
    time_each("host_query_done_event", n, MOST, step_query);
    time_each("host_query_idle_stream", n, MOST, step_stream_query);
    CU(cu.cuEventRecord(timing, gpu.stream));
    CU(cu.cuEventRecord(other_timing, gpu.stream));
    CU(cu.cuStreamSynchronize(gpu.stream));
    time_each("host_elapsed_time", n, MOST, step_elapsed);
    time_each("host_is_capturing", n, MOST, step_is_capturing);
    time_each("host_get_current_context", n, MOST, step_get_current);
    time_each("host_memset_4_bytes", n, 200, step_memset);
    if (make_graph()) time_each("host_launch_graph_of_10", n / 4 + 1, 50, step_graph);
    else answer_skipped("host_launch_graph_of_10", "no graph could be made");
    time_behind_spin("host_launch_empty_behind_spin", samples(200), step_launch);
    time_behind_spin("host_record_timing_event_behind_spin", samples(200), step_record);
    CU(cu.cuStreamSynchronize(gpu.stream));
    launch_spin(&gpu, gpu.stream, 20000);
    CU(cu.cuEventRecord(timing, gpu.stream));
    for (size_t i = 0; i < samples(2000); i++) {
        double start = now_ns();
        step_query();
        times[i] = now_ns() - start;
    }
    answer_spread("host_query_pending_event", "ns", times, samples(2000));

    time_each("host_alloc_free_64_kib", samples(1000), MOST, step_alloc_small);
    time_each("host_alloc_free_32_mib", samples(200), MOST, step_alloc_large);
    CUdeviceptr memory;
    if (cu.cuMemAllocAsync(&memory, 64 * KIB, gpu.stream) == CUDA_SUCCESS) {
        CU(cu.cuMemFreeAsync(memory, gpu.stream));
        time_each("host_alloc_free_async_64_kib", samples(1000), 100, step_alloc_async);
    } else {
        answer_skipped("host_alloc_free_async_64_kib", "cuMemAllocAsync failed");
    }
    time_each("host_mem_get_info", samples(500), MOST, step_info);
    const char *why_not = "";
    if (!nvml_open(&why_not)) {
        answer_skipped("host_nvml_memory_info", "%s", why_not);
        return;
    }
    time_each("host_nvml_memory_info", samples(200), MOST, step_nvml_memory);
    time_each("host_nvml_running_processes_v3", samples(50), MOST, step_nvml_processes);
}

/* ---- rows of kernels, as the card sees them ---- */

/* Launches `count` kernels of `microseconds` with `between` after each `every`th; the card's time
 * per kernel. */
static double time_row(size_t count, double microseconds, size_t every, void (*between)(void)) {
    CUevent start, end;
    CU(cu.cuEventCreate(&start, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&end, CU_EVENT_DEFAULT));
    CU(cu.cuStreamSynchronize(gpu.stream));
    CU(cu.cuEventRecord(start, gpu.stream));
    for (size_t i = 0; i < count; i++) {
        if (microseconds > 0) launch_spin(&gpu, gpu.stream, microseconds);
        else launch_empty(&gpu, gpu.stream);
        if (every != 0 && i % every == 0) between();
    }
    CU(cu.cuEventRecord(end, gpu.stream));
    CU(cu.cuStreamSynchronize(gpu.stream));
    float ms;
    CU(cu.cuEventElapsedTime(&ms, start, end));
    CU(cu.cuEventDestroy_v2(start));
    CU(cu.cuEventDestroy_v2(end));
    return (double)ms * 1e6 / (double)count;
}

static void step_pair(void) {
    step_record();
    CU(cu.cuEventRecord(other_timing, gpu.stream));
}

static void time_rows(void) {
    static const struct {
        const char *key;
        size_t every;
        void (*between)(void);
    } patterns[] = {
        {"no_events", 0, NULL},
        {"plain_event_each", 1, step_record_plain},
        {"timing_event_each", 1, step_record},
        {"two_timing_events_each", 1, step_pair},
        {"timing_event_per_64", 64, step_record},
    };
    static const double lengths[] = {0, 10, 100};
    for (size_t l = 0; l < ARRAY_LEN(lengths); l++) {
        for (size_t p = 0; p < ARRAY_LEN(patterns); p++) {
            char key[80];
            size_t repeats = samples(7);
            for (size_t r = 0; r < repeats; r++)
                times[r] =
                    time_row(samples(1000), lengths[l], patterns[p].every, patterns[p].between);
            snprintf(key, sizeof key, "card_per_kernel_%gus_%s", lengths[l], patterns[p].key);
            answer_spread(key, "ns", times, repeats);
        }
    }
}

void stage_launch(void) {
    gpu_open(&gpu);
    answer_flag("kernels_follow_their_length", gpu.real);
    answer_number("sm_clock", "cycles/us", gpu.cycles_per_us);
    CU(cu.cuEventCreate(&timing, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&other_timing, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    CU(cu.cuMemAlloc_v2(&word, 4));
    time_calls();
    time_rows();
}
