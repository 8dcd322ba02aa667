/*
 * How the card takes turns between processes: each runs one long kernel that watches the card's
 * clock and writes down the times in which it did not run. One process alone is the control.
 */
#include "probe.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 4096, MOST_PROCESSES = 3 };

/* What one process found; shared memory, written by that process alone. */
struct found {
    int ready, done;
    uint64_t head[8];
    uint64_t gaps[2 * ROOM];
    double spin_ms, cycles_per_us;
};

struct shared {
    volatile int go;
    struct found found[MOST_PROCESSES];
};

static struct shared *shared;

static void watch(const struct gpu *gpu, struct found *found, uint64_t ns) {
    CUdeviceptr out;
    size_t bytes = sizeof found->head + sizeof found->gaps;
    CU(cu.cuMemAlloc_v2(&out, bytes));
    CU(cu.cuMemsetD8_v2(out, 0, bytes));
    uint64_t threshold = 20000, room = ROOM;
    void *params[] = {&out, &ns, &threshold, &room};
    CU(cu.cuLaunchKernel(gpu->watch, 1, 1, 1, 1, 1, 1, 0, gpu->stream, params, NULL));
    CU(cu.cuStreamSynchronize(gpu->stream));
    CU(cu.cuMemcpyDtoH_v2(found->head, out, sizeof found->head));
    CU(cu.cuMemcpyDtoH_v2(found->gaps, out + sizeof found->head, sizeof found->gaps));
    CU(cu.cuMemFree_v2(out));
}

static double timed_spin(const struct gpu *gpu, double microseconds) {
    CUevent start, end;
    float ms = 0;
    CU(cu.cuEventCreate(&start, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&end, CU_EVENT_DEFAULT));
    CU(cu.cuEventRecord(start, gpu->stream));
    launch_spin(gpu, gpu->stream, microseconds);
    CU(cu.cuEventRecord(end, gpu->stream));
    CU(cu.cuStreamSynchronize(gpu->stream));
    CU(cu.cuEventElapsedTime(&ms, start, end));
    return (double)ms;
}

/* All start together once each is ready. */
static void wait_for_go(struct found *found) {
    found->ready = 1;
    while (!shared->go) sleep_us(50);
}

static _Noreturn void process(int index, double milliseconds) {
    struct found *found = &shared->found[index];
    struct gpu gpu;
    gpu_open_uncalibrated(&gpu);
    wait_for_go(found);
    watch(&gpu, found, (uint64_t)(milliseconds * 1e6));
    found->done = 1;
    _exit(0);
}

static double calibrated; /* cycles per us, once a process alone has measured it */

/* The question of the ground truth: does a spin of fixed cycles end later when another process
 * takes turns with it? */
static _Noreturn void spin_process(int index, double milliseconds) {
    struct found *found = &shared->found[index];
    struct gpu gpu;
    if (calibrated != 0) {
        gpu_open_uncalibrated(&gpu);
        gpu.cycles_per_us = calibrated;
    } else {
        gpu_open(&gpu);
        found->cycles_per_us = gpu.cycles_per_us;
    }
    wait_for_go(found);
    found->spin_ms = timed_spin(&gpu, 1000 * milliseconds);
    found->done = 1;
    _exit(0);
}

static bool has_ended(pid_t child) {
    siginfo_t info = {.si_pid = 0};
    return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child;
}

/* Runs the processes side by side; if one does not come to its end, nor does the stage. */
static void run_together(int count, void (*run)(int, double), double milliseconds) {
    pid_t children[MOST_PROCESSES];
    memset(shared, 0, sizeof *shared);
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        if (children[i] == 0) run(i, milliseconds);
    }
    for (int settled = 0; settled < count;) {
        sleep_us(1000);
        settled = 0;
        for (int i = 0; i < count; i++) settled += shared->found[i].ready || has_ended(children[i]);
    }
    shared->go = 1;
    for (int i = 0; i < count; i++) {
        siginfo_t info;
        waitid(P_PID, (id_t)children[i], &info, WEXITED | WNOWAIT);
        if (!shared->found[i].done) end_like(children[i]);
        waitpid(children[i], NULL, 0);
    }
}

static double gaps[ROOM], runs[ROOM];

/* Only gaps while all processes ran count, so the times before the last start and after the first
 * end are left out. */
static void answer_found(int count, int index, double overlap_start, double overlap_end) {
    const struct found *found = &shared->found[index];
    char key[80];
    double start = (double)found->head[3];
    double away = 0, last_end = -1;
    size_t kept = 0, kept_runs = 0;
    for (size_t i = 0; i < found->head[0] && i < ROOM; i++) {
        double gap_end = start + (double)found->gaps[2 * i], gap = (double)found->gaps[2 * i + 1];
        if (gap_end - gap < overlap_start || gap_end > overlap_end) continue;
        gaps[kept++] = gap / 1000;
        away += gap;
        if (last_end >= 0) runs[kept_runs++] = (gap_end - gap - last_end) / 1000;
        last_end = gap_end;
    }
#define SAY(what, kind, ...) \
    (snprintf(key, sizeof key, "%d_processes_%d_%s", count, index + 1, what), \
     answer_##kind(key, __VA_ARGS__))
    SAY("away", spread, "us", gaps, kept);
    SAY("run", spread, "us", runs, kept_runs);
    SAY("share", number, "of 1", 1 - away / (overlap_end - overlap_start));
    if (count == 1) answer_number("globaltimer_step", "ns", (double)found->head[1]);
#undef SAY
}

static void watch_together(int count, double milliseconds) {
    char key[80];
    snprintf(key, sizeof key, "%d_processes", count);
    run_together(count, process, milliseconds);
    double start = 0, end = 1e300;
    for (int i = 0; i < count; i++) {
        const struct found *found = &shared->found[i];
        if (found->head[5] != 1) {
            answer_skipped(key, "the kernel wrote nothing: no card ran it");
            return;
        }
        start = (double)found->head[3] > start ? (double)found->head[3] : start;
        end = (double)found->head[4] < end ? (double)found->head[4] : end;
    }
    snprintf(key, sizeof key, "%d_processes_together_for", count);
    answer_number(key, "ms", (end - start) / 1e6);
    for (int i = 0; i < count && end > start; i++) answer_found(count, i, start, end);
}

static void spin_together(void) {
    const double milliseconds = 200;
    run_together(1, spin_process, milliseconds);
    answer_number("spin_of_200_ms_alone", "ms", shared->found[0].spin_ms);
    calibrated = shared->found[0].cycles_per_us;
    run_together(2, spin_process, milliseconds);
    answer_number("spin_of_200_ms_beside_another_1", "ms", shared->found[0].spin_ms);
    answer_number("spin_of_200_ms_beside_another_2", "ms", shared->found[1].spin_ms);
}

void stage_slices(void) {
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) fail("mmap");
    spin_together();
    for (int count = 1; count <= MOST_PROCESSES; count++)
        watch_together(count, count == 1 ? 300 : 1000);
}
