/* How many operations a stream takes behind a long kernel before a launch waits for room, and who
 * shares that room. */
#include "probe.h"

#include <stdio.h>

enum { MOST = 20000 };
static const double spin_us = 150 * 1000;

static struct gpu gpu;
static CUstream second;
static CUevent event;

static void step_launch(void) { launch_empty(&gpu, gpu.stream); }
static void step_record(void) { CU(cu.cuEventRecord(event, gpu.stream)); }
static void step_launch_and_record(void) {
    step_launch();
    step_record();
}
/* The second stream waits behind a kernel of its own. */
static void step_two_streams(void) {
    step_launch();
    launch_empty(&gpu, second);
}

/* A call that takes more than this waits for the card, since the card is busy for `spin_us`. */
static const double blocked_ns = 3e6;

static void count_until_blocked(const char *key, bool both, void (*step)(void)) {
    CU(cu.cuCtxSynchronize());
    launch_spin(&gpu, gpu.stream, spin_us);
    if (both) launch_spin(&gpu, second, spin_us);
    double start = now_ns();
    for (size_t i = 0; i < MOST; i++) {
        double before = now_ns();
        step();
        double after = now_ns();
        if (after - before > blocked_ns) {
            answer_number(key, "steps", (double)i);
            CU(cu.cuCtxSynchronize());
            return;
        }
        if (after - start > 0.9e3 * spin_us) {
            answer_text(key, "none waited in %zu steps, then the spin was nearly over", i + 1);
            CU(cu.cuCtxSynchronize());
            return;
        }
    }
    CU(cu.cuCtxSynchronize());
    answer_text(key, "none waited in %d steps", MOST);
}

/* Whether a full queue on one stream holds up a launch on another, idle one. */
static void try_other_stream(void) {
    CU(cu.cuCtxSynchronize());
    launch_spin(&gpu, gpu.stream, spin_us);
    for (size_t i = 0; i < 900; i++) step_launch();
    double start = now_ns();
    launch_empty(&gpu, second);
    CU(cu.cuStreamSynchronize(second));
    answer_number("other_stream_beside_900_queued", "ns", now_ns() - start);
    CU(cu.cuCtxSynchronize());
}

void stage_queue(void) {
    gpu_open(&gpu);
    answer_flag("kernels_follow_their_length", gpu.real);
    CU(cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    CU(cu.cuEventCreate(&event, CU_EVENT_DEFAULT));
    for (int i = 0; i < 100; i++) step_two_streams();
    count_until_blocked("launches", false, step_launch);
    count_until_blocked("launches_again", false, step_launch);
    count_until_blocked("event_records", false, step_record);
    count_until_blocked("launches_each_with_a_record", false, step_launch_and_record);
    count_until_blocked("launches_on_two_streams_each", true, step_two_streams);
    try_other_stream();
}
