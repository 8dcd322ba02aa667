/* How late a thread wakes that sleeps until a given time, by timer slack: the gate of the throttle
 * sleeps like this. */
#include "probe.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 400 };

static struct timespec at(double ns) {
    struct timespec time = {(time_t)(ns / 1e9), 0};
    time.tv_nsec = (long)(ns - (double)time.tv_sec * 1e9);
    return time;
}

static void sleep_until(double deadline) {
    struct timespec time = at(deadline);
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

/* A futex with an absolute deadline, as the gate uses it. */
static void futex_until(double deadline) {
    static uint32_t word;
    struct timespec time = at(deadline);
    syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0, &time, NULL,
            FUTEX_BITSET_MATCH_ANY);
}

static void time_lateness(const char *name, void (*until)(double), unsigned long slack_ns,
                          double length_us) {
    static double late[MOST];
    char key[80];
    size_t wanted = samples(length_us > 1000 ? 100 : MOST - 100);
    prctl(PR_SET_TIMERSLACK, slack_ns);
    for (size_t i = 0; i < wanted; i++) {
        double deadline = now_ns() + 1000 * length_us;
        until(deadline);
        late[i] = now_ns() - deadline;
    }
    snprintf(key, sizeof key, "%s_of_%gus_slack_%luns_late", name, length_us, slack_ns);
    answer_spread(key, "ns", late, wanted);
}

/* ---- from one thread to another ---- */

static _Atomic uint32_t turn;
static _Atomic double woken_at;

static void *wait_for_turn(void *data) {
    (void)data;
    for (uint32_t seen = 0; seen < MOST;) {
        syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        uint32_t now = atomic_load(&turn);
        if (now == seen) continue;
        atomic_store(&woken_at, now_ns());
        seen = now;
    }
    return NULL;
}

static void time_wakes(void) {
    static double took[MOST];
    pthread_t thread;
    if (pthread_create(&thread, NULL, wait_for_turn, NULL) != 0) fail("pthread_create");
    for (uint32_t i = 0; i < MOST; i++) {
        sleep_us(200); /* until the other thread sleeps again */
        atomic_store(&woken_at, 0);
        double start = now_ns();
        atomic_store(&turn, i + 1);
        syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        while (atomic_load(&woken_at) == 0) sleep_us(20);
        took[i] = atomic_load(&woken_at) - start;
    }
    pthread_join(thread, NULL);
    answer_spread("futex_wake_of_a_thread", "ns", took, MOST);
}

void stage_wake(void) {
    static const unsigned long slacks[] = {50000, 1000, 1};
    static const double lengths[] = {100, 1000, 5000};
    answer_number("timer_slack_at_start", "ns", prctl(PR_GET_TIMERSLACK));
    for (size_t s = 0; s < ARRAY_LEN(slacks); s++) {
        for (size_t l = 0; l < ARRAY_LEN(lengths); l++) {
            time_lateness("nanosleep", sleep_until, slacks[s], lengths[l]);
            time_lateness("futex", futex_until, slacks[s], lengths[l]);
        }
    }
    time_wakes();
}
