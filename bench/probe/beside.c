/*
 * Whether a timing event is reached as soon as its stream comes to it, or only in a time slice of its
 * process, while another process keeps the card busy; and whether an event ends the time slice of its
 * process. The simulator has both (`Setup::events_at_once`) and the stub too (`STUB_GPU_EVENTS`).
 */
#include "probe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 80 };
/* The busy process has between one and two batches of this length in its stream. */
static const double batch_us = 20000;
/* Where events wait for a turn, half of them wait for half a time slice or longer; the shortest slice
 * that is known of any card is 1 ms. A rehearsal with longer ones can afford more (PROBE_WAITS_NS). */
static double waits_ns = 300e3;

static struct shared {
    volatile int ready;
    volatile double kernel_us; /* what the busy process launches; 0: nothing */
    volatile double cycles_per_us;
} *shared;

static struct gpu gpu;
static CUevent start, end;
static CUdeviceptr word;

static void launch_batch(const struct gpu *own, double kernel_us, CUevent behind) {
    for (double us = 0; us < batch_us; us += kernel_us) launch_spin(own, own->stream, kernel_us);
    CU(cu.cuEventRecord(behind, own->stream));
}

static _Noreturn void keep_busy(void) {
    struct gpu own;
    CUevent batches[2];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    gpu_open(&own);
    for (int i = 0; i < 2; i++) CU(cu.cuEventCreate(&batches[i], CU_EVENT_DISABLE_TIMING));
    shared->cycles_per_us = own.cycles_per_us;
    shared->ready = 1;
    for (unsigned turn = 0;; turn++) {
        double kernel_us = shared->kernel_us;
        if (kernel_us > 0) launch_batch(&own, kernel_us, batches[turn % 2]);
        else sleep_us(1000);
        CU(cu.cuEventSynchronize(batches[(turn + 1) % 2]));
    }
}

static pid_t start_busy(void) {
    pid_t child = fork();
    if (child == 0) keep_busy();
    while (!shared->ready) {
        siginfo_t info = {.si_pid = 0};
        sleep_us(1000);
        if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            info.si_pid == child)
            end_like(child);
    }
    return child;
}

/* ---- what is timed; nothing of this process is in flight before, unless said ---- */

static double elapsed_ns(void) {
    float ms = 0;
    CU(cu.cuStreamSynchronize(gpu.stream));
    CU(cu.cuEventElapsedTime(&ms, start, end));
    return (double)ms * 1e6;
}

/* From the record of an event with nothing before it until a query finds it over. */
static double event_alone(void) {
    double before = now_ns();
    CU(cu.cuEventRecord(start, gpu.stream));
    for (;;) {
        CUresult result = cu.cuEventQuery(start);
        if (result != CUDA_ERROR_NOT_READY) {
            CU(result);
            return now_ns() - before;
        }
        if (now_ns() - before > 1e9) fail("an event is not over after a second");
    }
}

/* A pair around an empty kernel. */
static double pair(void) {
    CU(cu.cuEventRecord(start, gpu.stream));
    launch_empty(&gpu, gpu.stream);
    CU(cu.cuEventRecord(end, gpu.stream));
    return elapsed_ns();
}

/* The same behind a memset, which is work: the pair begins in the time slice that it waited for. */
static double pair_behind_memset(void) {
    CU(cu.cuMemsetD32Async(word, 0, 1, gpu.stream));
    return pair();
}

/* A pair around 100 us behind 100 us of the same process: longer where an event ends the time slice. */
static double pair_behind_kernel(void) {
    launch_spin(&gpu, gpu.stream, 100);
    CU(cu.cuEventRecord(start, gpu.stream));
    launch_spin(&gpu, gpu.stream, 100);
    CU(cu.cuEventRecord(end, gpu.stream));
    return elapsed_ns();
}

/* Answers with the spread of some samples; their median. Each begins soon after a time slice of this
 * process, so while that of the busy one is not over: a process that has been away for longer than a
 * time slice may get its own at once. */
static double sample(const char *beside, const char *name, double (*once)(void)) {
    static double found[MOST];
    char key[80];
    size_t wanted = samples(MOST - 20);
    for (size_t i = 0; i < wanted; i++) {
        launch_empty(&gpu, gpu.stream);
        CU(cu.cuStreamSynchronize(gpu.stream));
        sleep_us(50 + (double)(i * 137 % 700));
        found[i] = once();
    }
    snprintf(key, sizeof key, "%s_%s", beside, name);
    answer_spread(key, "ns", found, wanted); /* sorts them */
    return found[wanted / 2];
}

/* The median time until a lone event is over. */
static double sample_all(const char *beside, double kernel_us) {
    shared->kernel_us = kernel_us;
    sleep_us(3 * batch_us); /* what the busy process had queued before is over */
    double median = sample(beside, "event_over_after", event_alone);
    sample(beside, "pair", pair);
    sample(beside, "pair_behind_memset", pair_behind_memset);
    sample(beside, "pair_100us_behind_100us", pair_behind_kernel);
    return median;
}

void stage_beside(void) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) fail("mmap");
    const char *waits = getenv("PROBE_WAITS_NS");
    if (waits != NULL) waits_ns = strtod(waits, NULL);
    pid_t busy = start_busy();
    gpu_open_uncalibrated(&gpu);
    gpu.cycles_per_us = shared->cycles_per_us;
    CU(cu.cuEventCreate(&start, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&end, CU_EVENT_DEFAULT));
    CU(cu.cuMemAlloc_v2(&word, 4));
    double alone = sample_all("alone", 0);
    double beside = sample_all("beside_10ms", 10000);
    answer_text("events_are_reached", "%s",
                beside > alone + waits_ns ? "in a turn of their process" : "at once");
    sample_all("beside_50us", 50);
    kill(busy, SIGKILL);
    waitpid(busy, NULL, 0);
}
