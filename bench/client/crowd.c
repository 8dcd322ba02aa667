/* Threads that begin together, each timed by the processor that its turns kept; and processes that are merely there. See
 * client.h. */
#include "client.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

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

void company(uint64_t count, uint64_t second)
{
    (void)second;
    int ready[2];
    pid_t parent = getpid();
    char byte = 0;
    need(pipe(ready) == 0, "no pipe");
    for (uint64_t i = 0; i < count; i++) {
        pid_t child = fork();
        need(child >= 0, "no process");
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            void *library = dlopen("libcuda.so.1", RTLD_NOW);
            cuInit_fn init = library ? (cuInit_fn)dlsym(library, "cuInit") : NULL;
            need(getppid() == parent && init && init(0) == CUDA_SUCCESS, "cuInit failed");
            need(write(ready[1], &byte, 1) == 1, "cannot tell");
            for (;;) {
                pause();
            }
        }
    }
    close(ready[1]);
    for (uint64_t i = 0; i < count; i++) {
        need(read(ready[0], &byte, 1) == 1, "one of the company has ended");
    }
    close(ready[0]);
    printf("company=%lu\n", count);
}
