/*
 * What an event pair around a kernel contains, on an empty stream and behind pending work, and how
 * well an event's time can be laid onto the host's clock. A pair on an empty stream is believed to
 * contain the way of the launch to the card.
 */
#include "probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 600 };

static struct gpu gpu;
static CUevent anchor, start, end;
static double anchor_ns; /* host time of the anchor event */
static CUdeviceptr word;

enum work { NOTHING, MEMSET, KERNEL };

static void submit(enum work work, double microseconds) {
    if (work == MEMSET) CU(cu.cuMemsetD32Async(word, 0, 1, gpu.stream));
    if (work == KERNEL && microseconds > 0) launch_spin(&gpu, gpu.stream, microseconds);
    if (work == KERNEL && microseconds <= 0) launch_empty(&gpu, gpu.stream);
}

static double elapsed_ns(CUevent from, CUevent to) {
    float ms = 0;
    CU(cu.cuEventElapsedTime(&ms, from, to));
    return (double)ms * 1e6;
}

/*
 * An event between two host stamps; the narrowest of several brackets is the anchor. An elapsed
 * time is a float of milliseconds, so an anchor is good to 60 ns for a second only.
 */
static void set_anchor(bool say) {
    double widths[50], best = INFINITY;
    CUevent candidate;
    CU(cu.cuEventCreate(&candidate, CU_EVENT_DEFAULT));
    for (size_t i = 0; i < ARRAY_LEN(widths); i++) {
        CU(cu.cuStreamSynchronize(gpu.stream));
        double before = now_ns();
        CU(cu.cuEventRecord(candidate, gpu.stream));
        CU(cu.cuEventSynchronize(candidate));
        double after = now_ns();
        widths[i] = after - before;
        if (widths[i] >= best) continue;
        best = widths[i];
        anchor_ns = (before + after) / 2;
        CUevent swap = anchor;
        anchor = candidate;
        candidate = swap;
    }
    CU(cu.cuEventDestroy_v2(candidate));
    if (say) answer_spread("anchor_bracket", "ns", widths, ARRAY_LEN(widths));
}

struct samples {
    double pair[MOST], after_return[MOST], launch[MOST];
    size_t count, start_was_pending;
};

static void sample(struct samples *s, enum work work, double microseconds, bool behind_spin) {
    CU(cu.cuStreamSynchronize(gpu.stream));
    if (behind_spin) launch_spin(&gpu, gpu.stream, 200);
    else sleep_us(30);
    double before = now_ns();
    CU(cu.cuEventRecord(start, gpu.stream));
    submit(work, microseconds);
    double returned = now_ns();
    s->start_was_pending += cu.cuEventQuery(start) == CUDA_ERROR_NOT_READY;
    CU(cu.cuEventRecord(end, gpu.stream));
    CU(cu.cuStreamSynchronize(gpu.stream));
    s->pair[s->count] = elapsed_ns(start, end);
    s->after_return[s->count] = anchor_ns + elapsed_ns(anchor, end) - returned;
    s->launch[s->count] = returned - before;
    s->count++;
}

static void sample_all(const char *name, enum work work, double microseconds) {
    static struct samples s;
    char key[80];
    for (int behind_spin = 0; behind_spin <= 1; behind_spin++) {
        s.count = s.start_was_pending = 0;
        set_anchor(false);
        size_t wanted = samples(MOST - 100);
        for (size_t i = 0; i < wanted; i++) sample(&s, work, microseconds, behind_spin);
        const char *where = behind_spin ? "behind_spin" : "idle";
        snprintf(key, sizeof key, "pair_%s_%s", name, where);
        answer_spread(key, "ns", s.pair, s.count);
        snprintf(key, sizeof key, "start_pending_at_return_%s_%s", name, where);
        answer_number(key, "of 1", (double)s.start_was_pending / (double)s.count);
        if (behind_spin) continue;
        snprintf(key, sizeof key, "end_after_launch_return_%s", name);
        answer_spread(key, "ns", s.after_return, s.count);
    }
}

/* Whether, and how soon, an event with nothing before or after it is over: then a pair's start
 * fires before the kernel. */
static void time_lone_event(void) {
    double seen[200];
    size_t wanted = samples(ARRAY_LEN(seen) - 20);
    for (size_t i = 0; i < wanted; i++) {
        CU(cu.cuStreamSynchronize(gpu.stream));
        double before = now_ns();
        CU(cu.cuEventRecord(start, gpu.stream));
        while (cu.cuEventQuery(start) == CUDA_ERROR_NOT_READY && now_ns() - before < 1e7) {
        }
        seen[i] = now_ns() - before;
    }
    answer_spread("lone_event_is_over_after", "ns", seen, wanted);
}

/* The time of one kernel in a long row: what a pair should say. */
static void time_solo(const char *name, double microseconds) {
    enum { ROW = 200 };
    char key[80];
    CU(cu.cuStreamSynchronize(gpu.stream));
    launch_spin(&gpu, gpu.stream, 2000); /* the row is queued before it starts */
    CU(cu.cuEventRecord(start, gpu.stream));
    for (int i = 0; i < ROW; i++) submit(KERNEL, microseconds);
    CU(cu.cuEventRecord(end, gpu.stream));
    CU(cu.cuStreamSynchronize(gpu.stream));
    snprintf(key, sizeof key, "per_kernel_in_a_row_%s", name);
    answer_number(key, "ns", elapsed_ns(start, end) / ROW);
}

/* The least difference, not zero, between two pairs: the resolution of an event's time. */
static void find_resolution(void) {
    double least = INFINITY, last = 0;
    for (size_t i = 0; i < samples(300); i++) {
        CU(cu.cuEventRecord(start, gpu.stream));
        submit(KERNEL, (double)(i % 7) * 0.05);
        CU(cu.cuEventRecord(end, gpu.stream));
        CU(cu.cuStreamSynchronize(gpu.stream));
        double now = elapsed_ns(start, end), step = fabs(now - last);
        if (step > 0.5 && step < least) least = step;
        last = now;
    }
    if (isfinite(least)) answer_number("event_resolution", "ns", least);
}

void stage_pairs(void) {
    static const struct {
        const char *name;
        double microseconds;
    } kernels[] = {{"empty", 0}, {"3us", 3}, {"10us", 10}, {"100us", 100}};
    gpu_open(&gpu);
    answer_flag("kernels_follow_their_length", gpu.real);
    CU(cu.cuEventCreate(&anchor, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&start, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&end, CU_EVENT_DEFAULT));
    CU(cu.cuMemAlloc_v2(&word, 4));
    set_anchor(true);
    time_lone_event();
    find_resolution();
    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        time_solo(kernels[i].name, kernels[i].microseconds);
    sample_all("nothing", NOTHING, 0);
    sample_all("memset_4_bytes", MEMSET, 0);
    for (size_t i = 0; i < ARRAY_LEN(kernels); i++)
        sample_all(kernels[i].name, KERNEL, kernels[i].microseconds);
}
