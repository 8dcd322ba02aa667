/*
 * Three sets of rules that a meter must not break: which stream waits for which (its own events must
 * not add a wait), which calls a capture forbids to the capturing thread and to others (its own
 * calls must not spoil a capture), and what a thread without a context may ask.
 */
#include "probe.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct gpu gpu;
static CUstream blocking, other;
static CUevent event, done_event;

/* ---- order ---- */

/* Whether an event recorded on `on` waits for a kernel that runs on `busy`. */
static const char *waits(CUstream busy, CUstream on) {
    CU(cu.cuCtxSynchronize());
    launch_spin(&gpu, busy, 20000);
    CU(cu.cuEventRecord(done_event, busy));
    CU(cu.cuEventRecord(event, on));
    double start = now_ns();
    CUresult first = CUDA_ERROR_NOT_READY;
    while (first == CUDA_ERROR_NOT_READY && cu.cuEventQuery(done_event) == CUDA_ERROR_NOT_READY &&
           now_ns() - start < 1e9)
        first = cu.cuEventQuery(event);
    CU(cu.cuCtxSynchronize());
    return first == CUDA_SUCCESS ? "does not wait" : "waits";
}

static void answer_order(void) {
    const struct {
        const char *name;
        CUstream stream;
    } streams[] = {
        {"legacy", CU_STREAM_LEGACY},
        {"per_thread", CU_STREAM_PER_THREAD},
        {"blocking", blocking},
        {"non_blocking", gpu.stream},
    };
    for (size_t busy = 0; busy < ARRAY_LEN(streams); busy++) {
        for (size_t on = 0; on < ARRAY_LEN(streams); on++) {
            char key[80];
            if (busy == on) continue;
            snprintf(key, sizeof key, "event_on_%s_behind_kernel_on_%s", streams[on].name,
                     streams[busy].name);
            answer_text(key, "%s", waits(streams[busy].stream, streams[on].stream));
        }
    }
}

/* ---- capture ---- */

static CUresult act_record_on_other(void) { return cu.cuEventRecord(event, other); }
static CUresult act_record_on_legacy(void) { return cu.cuEventRecord(event, NULL); }
static CUresult act_query_event(void) { return cu.cuEventQuery(done_event); }
static CUresult act_query_stream(void) { return cu.cuStreamQuery(other); }
static CUresult act_elapsed(void) {
    float ms;
    return cu.cuEventElapsedTime(&ms, done_event, done_event);
}
static CUresult act_create_event(void) {
    CUevent made;
    return cu.cuEventCreate(&made, CU_EVENT_DEFAULT);
}
static CUresult act_ask_capturing(void) {
    int status;
    return cu.cuStreamIsCapturing(gpu.stream, &status);
}
static CUresult act_ask_legacy(void) {
    int status;
    return cu.cuStreamIsCapturing(NULL, &status);
}
static CUresult act_launch_on_other(void) {
    return cu.cuLaunchKernel(gpu.empty, 1, 1, 1, 1, 1, 1, 0, other, NULL, NULL);
}
static CUresult act_alloc(void) {
    CUdeviceptr memory;
    CUresult result = cu.cuMemAlloc_v2(&memory, 4096);
    if (result == CUDA_SUCCESS) cu.cuMemFree_v2(memory);
    return result;
}
static CUresult act_synchronize_other(void) { return cu.cuStreamSynchronize(other); }
static CUresult act_synchronize_event(void) { return cu.cuEventSynchronize(done_event); }
static CUresult act_info(void) {
    size_t available, total;
    return cu.cuMemGetInfo_v2(&available, &total);
}

struct action {
    const char *name;
    CUresult (*act)(void);
    CUresult result;
};

static void *act_in_thread(void *data) {
    struct action *action = data;
    if (cu.cuCtxSetCurrent(gpu.context) == CUDA_SUCCESS) action->result = action->act();
    return NULL;
}

/* One action inside one capture of its own: what it answers, and what the capture does then. */
static void try_action(int mode, struct action *action, bool in_thread, struct text *json,
                       struct text *refused) {
    CUgraph graph = NULL;
    CU(cu.cuCtxSynchronize());
    CU(cu.cuStreamBeginCapture_v2(gpu.stream, mode));
    launch_empty(&gpu, gpu.stream);
    if (in_thread) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, act_in_thread, action) != 0) fail("pthread_create");
        pthread_join(thread, NULL);
    } else {
        action->result = action->act();
    }
    CUresult end = cu.cuStreamEndCapture(gpu.stream, &graph);
    if (graph != NULL) cu.cuGraphDestroy(graph);
    text_add(json, "%s\"%s\":[%u,%u]", json->length > 1 ? "," : "", action->name, action->result,
             end);
    if (action->result == CUDA_SUCCESS && end == CUDA_SUCCESS) return;
    text_add(refused, "%s%s %u/%u", refused->length != 0 ? ", " : "", action->name, action->result,
             end);
}

/* All actions in one mode: their results, each with that of the end of its capture. */
static void try_actions(const char *key, int mode, struct action *actions, size_t count,
                        bool in_thread) {
    struct text json = {0}, refused = {0};
    text_add(&json, "{");
    for (size_t i = 0; i < count; i++) try_action(mode, &actions[i], in_thread, &json, &refused);
    text_add(&json, "}");
    answer_json(key, json.bytes, refused.length != 0 ? refused.bytes : "nothing is refused");
    free(json.bytes);
    free(refused.bytes);
}

static void answer_capture(void) {
    static const struct {
        const char *name;
        int mode;
    } modes[] = {
        {"global", CU_STREAM_CAPTURE_MODE_GLOBAL},
        {"thread_local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
        {"relaxed", CU_STREAM_CAPTURE_MODE_RELAXED},
    };
    static struct action actions[] = {
        {"record_event_on_other_stream", act_record_on_other, 0},
        {"record_event_on_legacy", act_record_on_legacy, 0},
        {"query_event", act_query_event, 0},
        {"query_other_stream", act_query_stream, 0},
        {"elapsed_time", act_elapsed, 0},
        {"create_event", act_create_event, 0},
        {"is_capturing", act_ask_capturing, 0},
        {"is_capturing_legacy", act_ask_legacy, 0},
        {"launch_on_other_stream", act_launch_on_other, 0},
        {"synchronize_other_stream", act_synchronize_other, 0},
        {"synchronize_event", act_synchronize_event, 0},
        {"alloc", act_alloc, 0},
        {"mem_get_info", act_info, 0},
    };
    for (size_t m = 0; m < ARRAY_LEN(modes); m++) {
        for (int in_thread = 0; in_thread <= 1; in_thread++) {
            char key[80];
            snprintf(key, sizeof key, "capture_%s_%s", modes[m].name,
                     in_thread ? "other_thread" : "same_thread");
            try_actions(key, modes[m].mode, actions, ARRAY_LEN(actions), in_thread);
        }
    }
}

/* ---- threads without a context ---- */

static void *ask_without_context(void *data) {
    CUresult *results = data;
    results[0] = act_query_event();
    results[1] = act_elapsed();
    return NULL;
}

static void answer_without_context(void) {
    CUresult results[2] = {0, 0};
    pthread_t thread;
    if (pthread_create(&thread, NULL, ask_without_context, results) != 0) fail("pthread_create");
    pthread_join(thread, NULL);
    answer_text("query_event_without_context", "%u", results[0]);
    answer_text("elapsed_time_without_context", "%u", results[1]);
}

void stage_streams(void) {
    gpu_open(&gpu);
    CU(cu.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    CU(cu.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    CU(cu.cuEventCreate(&event, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&done_event, CU_EVENT_DEFAULT));
    answer_order();
    CU(cu.cuEventRecord(done_event, other));
    CU(cu.cuCtxSynchronize());
    answer_without_context();
    answer_capture();
}
