/* Threads that begin together, each timed by the processor that its turns kept. See client.h. */
#include "client.h"

#include <pthread.h>
#include <stdio.h>

enum { WARM_UP = 500, MAX_THREADS = 64 };

static const struct work *work;
static uint64_t turns_of_each;
static pthread_barrier_t gate;

static void *thread(void *argument)
{
    uint64_t *spent = argument;
    need(driver.cuCtxSetCurrent(driver.context) == CUDA_SUCCESS, "context not made current");
    void *own = work->begin ? work->begin() : NULL;
    work->turns(own, WARM_UP);
    pthread_barrier_wait(&gate);
    uint64_t start = cpu_time();
    work->turns(own, turns_of_each);
    *spent = cpu_time() - start;
    if (work->end) {
        work->end(own);
    }
    return NULL;
}

void crowd(uint64_t count, uint64_t turns, const struct work *of_each)
{
    static pthread_t ids[MAX_THREADS];
    static uint64_t spent[MAX_THREADS];
    need(count > 0 && count <= MAX_THREADS, "too many threads");
    work = of_each;
    turns_of_each = turns;
    pthread_barrier_init(&gate, NULL, (unsigned int)count);
    for (uint64_t i = 0; i < count; i++) {
        need(pthread_create(&ids[i], NULL, thread, &spent[i]) == 0, "no thread");
    }
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        pthread_join(ids[i], NULL);
        sum += spent[i];
    }
    pthread_barrier_destroy(&gate);
    printf("cpu=%.3f\n", (double)sum / (double)(count * turns));
}
