/*
 * What the driver's samples of processes are like, by which `gpucap metrics --sample` compares what a container had with its
 * limit: how long they are, whether they add up to what a process had, and whether those of a process that has ended can
 * still be had. The reader has a guess for each (hook/driver/src/samples/period.rs), and the stub another.
 */
#include "probe.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1024, LONG_MS = 3000, SHORT_MS = 400 };
/* How long after the end of a process its samples are asked for. */
static const double after_ns = 2e9;

/* The samples of the only process that works. */
struct seen {
    uint64_t before; /* when the latest one was taken */
    double distances[MOST]; /* in ms */
    size_t count;
    double percent; /* the sum of all */
    size_t samples;
};

/* Keeps the card busy for this time, with kernels of 20 ms. */
static _Noreturn void work(double total_ms) {
    struct gpu own;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    gpu_open(&own);
    for (double end = now_ns() + total_ms * 1e6; now_ns() < end;) {
        for (int i = 0; i < 5; i++) launch_spin(&own, own.stream, 20e3);
        CU(cu.cuStreamSynchronize(own.stream));
    }
    _exit(0);
}

/* Takes the samples that came since the latest ones. */
static void look(struct seen *seen) {
    nvmlProcessUtilizationSample_t samples[MOST];
    unsigned int count = MOST;
    if (nv.nvmlDeviceGetProcessUtilization(nv.device, samples, &count, seen->before) != NVML_SUCCESS) return;
    for (unsigned int i = 0; i < count; i++) {
        if (samples[i].smUtil > 100 || samples[i].timeStamp <= seen->before) continue;
        if (seen->samples++ > 0 && seen->count < MOST)
            seen->distances[seen->count++] = (double)(samples[i].timeStamp - seen->before) / 1e3;
        seen->before = samples[i].timeStamp;
        seen->percent += samples[i].smUtil;
    }
}

static uint64_t latest_sample(void) {
    struct seen any = {0};
    look(&any);
    return any.before;
}

static void answer_period(void) {
    static nvmlSample_t samples[MOST];
    static double distances[MOST];
    unsigned int count = MOST;
    int kind = 0;
    size_t found = 0;
    nvmlReturn_t result = nv.nvmlDeviceGetSamples(nv.device, 1, 0, &kind, &count, samples);
    for (unsigned int i = 1; result == NVML_SUCCESS && i < count; i++)
        distances[found++] = (double)(samples[i].timeStamp - samples[i - 1].timeStamp) / 1e3;
    answer_spread("card_samples_every", "ms", distances, found);
}

void stage_sampled(void) {
    const char *why_not = "";
    pid_t both[2];
    double lengths[] = {LONG_MS, SHORT_MS};
    for (int i = 0; i < 2; i++) {
        /* It begins when it is told to: the driver does not survive a fork. */
        both[i] = fork();
        if (both[i] == 0) {
            raise(SIGSTOP);
            work(lengths[i]);
        }
        waitpid(both[i], NULL, WUNTRACED);
    }
    struct gpu gpu;
    gpu_open_context(&gpu);
    if (!nvml_open(&why_not)) skip("no NVML: %s", why_not);

    /* One that works for all of the time, looked at while it does. */
    struct seen steady = {.before = latest_sample()};
    siginfo_t info = {.si_pid = 0};
    kill(both[0], SIGCONT);
    while (waitid(P_PID, (id_t)both[0], &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0) {
        sleep_us(50 * 1000);
        look(&steady);
    }
    waitpid(both[0], NULL, 0);
    answer_period();
    answer_number("process_samples", "", (double)steady.samples);
    if (steady.samples > 0) answer_number("mean_of_process_samples", "%", steady.percent / (double)steady.samples);
    answer_spread("process_samples_every", "ms", steady.distances, steady.count);

    /* One that has ended before anything is asked. */
    struct seen ended = {.before = latest_sample()};
    kill(both[1], SIGCONT);
    waitpid(both[1], NULL, 0);
    double end = now_ns() + after_ns;
    do {
        look(&ended);
        sleep_us(50 * 1000);
    } while (now_ns() < end);
    answer_number("samples_of_who_has_ended", "", (double)ended.samples);
    answer_number("sum_of_who_has_ended", "%", ended.percent);
}
