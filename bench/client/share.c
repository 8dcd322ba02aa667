/*
 * The client's commands that keep a card busy, for a bench of the share that they get. See client.h.
 *
 * Each takes a number of its own and how many milliseconds it shall run, works in one thread or several, and says
 * what it got after the first quarter, in which the limit learns. The judge is the stub's card: its own exported
 * functions say how long it has worked, and a thread that makes no CUDA call looks every 50 ms. It looks at the ledger
 * too, if there is one: what the limit has charged for the same time.
 */
#include "client.h"
#include "histogram.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_THREADS = 16, MAX_STREAMS = 4, MAX_SAMPLES = 4096, STEP_NS = 50000000 };

#define NEEDED(X) \
    X(cuModuleLoadData) X(cuModuleGetFunction) X(cuStreamSynchronize) X(cuGraphLaunch) X(cuGraphDestroy) \
    X(cuStreamBeginCapture_v2) X(cuStreamEndCapture) X(cuGraphInstantiateWithFlags) X(cuGraphExecDestroy) \
    X(cuMemcpyHtoDAsync_v2)

static struct {
#define MEMBER(name) name##_fn name;
    NEEDED(MEMBER)
#undef MEMBER
    uint64_t (*stubNow)(void);
    uint64_t (*stubBusy)(unsigned int device);
} card;

/* One thread that works. */
struct worker {
    void (*turn)(struct worker *);
    uint64_t index, launches;
    CUstream streams[MAX_STREAMS];
    /* Launches by how long the call took, from `counted` on. */
    uint64_t waits[BUCKETS], most;
};

static struct worker workers[MAX_THREADS];
static CUmodule module;
static CUfunction kernel, kernels[20];
static CUgraphExec exec;
static CUdeviceptr memory;
/* What runs on the card and is no business of the limit: copies that were waited for. */
static uint64_t copied;
static int counted, over;

static int is_set(int *flag)
{
    return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

static CUfunction function_of(uint64_t us)
{
    char name[32];
    CUfunction function;
    snprintf(name, sizeof name, "k_%luus", us);
    need(card.cuModuleGetFunction(&function, module, name) == CUDA_SUCCESS, "no kernel");
    return function;
}

static void note(struct worker *worker, uint64_t ns)
{
    if (is_set(&counted)) {
        worker->waits[bucket_of(ns)]++;
        worker->most = ns > worker->most ? ns : worker->most;
        worker->launches++;
    }
}

static void launch(struct worker *worker, CUfunction function, int stream)
{
    CUresult result = driver.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, worker->streams[stream], NULL, NULL);
    need(result == CUDA_SUCCESS, "cuLaunchKernel failed");
}

static void put(struct worker *worker, CUfunction function, int stream)
{
    uint64_t start = now();
    launch(worker, function, stream);
    note(worker, now() - start);
}

static void wait_for(struct worker *worker)
{
    need(card.cuStreamSynchronize(worker->streams[0]) == CUDA_SUCCESS, "cuStreamSynchronize failed");
}

static void think(uint64_t us)
{
    nanosleep(&(struct timespec){0, (long)us * 1000}, NULL);
}

static void turn_async(struct worker *worker)
{
    put(worker, kernel, 0);
}

static void turn_synced(struct worker *worker)
{
    put(worker, kernel, 0);
    wait_for(worker);
}

static void turn_request(struct worker *worker)
{
    uint64_t start = now();
    launch(worker, kernel, 0);
    wait_for(worker);
    note(worker, now() - start);
    think(30000);
}

static void turn_graph(struct worker *worker)
{
    uint64_t start = now();
    need(card.cuGraphLaunch(exec, worker->streams[0]) == CUDA_SUCCESS, "cuGraphLaunch failed");
    note(worker, now() - start);
    wait_for(worker);
    think(200);
}

static void turn_streams(struct worker *worker)
{
    for (int stream = 0; stream < MAX_STREAMS; stream++) {
        put(worker, kernel, stream);
    }
}

static void turn_training(struct worker *worker)
{
    for (int i = 0; i < 25; i++) {
        put(worker, kernel, 0);
    }
    wait_for(worker);
    think(15000);
}

static void turn_mixed(struct worker *worker)
{
    for (int i = 0; i < 20; i++) {
        put(worker, kernels[i], 0);
    }
    wait_for(worker);
    think(30);
}

static void turn_copies(struct worker *worker)
{
    static char bytes[500000];
    for (int i = 0; i < 4; i++) {
        put(worker, kernel, 0);
        need(card.cuMemcpyHtoDAsync_v2(memory, bytes, sizeof bytes, worker->streams[0]) == CUDA_SUCCESS, "no copy");
    }
    wait_for(worker);
    /* The bench has the stub copy a byte in a nanosecond. */
    __atomic_fetch_add(&copied, 4 * sizeof bytes, __ATOMIC_RELAXED);
}

/* Makes a graph of this many kernels, one after the other; a capture of its own thread only. */
static void capture(struct worker *worker, int nodes)
{
    CUgraph graph;
    CUstream stream = worker->streams[0];
    need(card.cuStreamBeginCapture_v2(stream, 1) == CUDA_SUCCESS, "no capture");
    for (int i = 0; i < nodes; i++) {
        need(driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL) == CUDA_SUCCESS, "not captured");
    }
    need(card.cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS, "capture was spoilt");
    need(card.cuGraphInstantiateWithFlags(&exec, graph, 0) == CUDA_SUCCESS, "no executable graph");
    need(card.cuGraphDestroy(graph) == CUDA_SUCCESS, "graph not destroyed");
}

static void turn_capture(struct worker *worker)
{
    if (worker->index == 0) {
        put(worker, kernel, 0);
        return;
    }
    capture(worker, 4);
    need(card.cuGraphExecDestroy(exec) == CUDA_SUCCESS, "executable graph not destroyed");
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    need(driver.cuCtxSetCurrent(driver.context) == CUDA_SUCCESS, "context not made current");
    while (!is_set(&over)) {
        worker->turn(worker);
    }
    for (int stream = 0; stream < MAX_STREAMS; stream++) {
        need(card.cuStreamSynchronize(worker->streams[stream]) == CUDA_SUCCESS, "work failed");
    }
    return NULL;
}

struct sample {
    uint64_t at, busy, charged;
};

static struct sample take_sample(void)
{
    uint64_t busy = card.stubBusy(0) - __atomic_load_n(&copied, __ATOMIC_RELAXED);
    return (struct sample){card.stubNow(), busy, charged()};
}

static double share(const struct sample *from, const struct sample *to)
{
    return 100.0 * (double)(to->busy - from->busy) / (double)(to->at - from->at);
}

static double quantile(uint64_t launches, uint64_t percent)
{
    const uint64_t *counts[MAX_THREADS];
    for (int i = 0; i < MAX_THREADS; i++) {
        counts[i] = workers[i].waits;
    }
    return launches ? quantile_of(counts, MAX_THREADS, launches * percent / 100.0) : 0;
}

static uint64_t process_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void tell(const struct sample *samples, int count, uint64_t spent)
{
    double lowest = share(&samples[0], &samples[count - 1]), highest = lowest;
    for (int from = 0, to = 0; from < count; from++) {
        while (to < count && samples[to].at < samples[from].at + 1000000000u) {
            to++;
        }
        if (to == count) {
            break;
        }
        double second = share(&samples[from], &samples[to]);
        lowest = second < lowest ? second : lowest;
        highest = second > highest ? second : highest;
    }
    uint64_t launches = 0, most = 0;
    for (int i = 0; i < MAX_THREADS; i++) {
        launches += workers[i].launches;
        most = workers[i].most > most ? workers[i].most : most;
    }
    uint64_t length = samples[count - 1].at - samples[0].at;
    double worked = (double)(samples[count - 1].busy - samples[0].busy);
    printf("share=%.3f lowest=%.3f highest=%.3f charged=%.4f rate=%.3f p50=%.0f p99=%.0f most=%lu cpu=%.1f\n",
           share(&samples[0], &samples[count - 1]), lowest, highest,
           worked > 0 ? (double)(samples[count - 1].charged - samples[0].charged) / worked : 0.0, (double)launches * 1e9 / (double)length,
           quantile(launches, 50), quantile(launches, 99), most,
           launches ? (double)spent / (double)launches : 0.0);
}

static void run(uint64_t threads, void (*turn)(struct worker *), uint64_t milliseconds)
{
    static struct sample samples[MAX_SAMPLES];
    pthread_t ids[MAX_THREADS];
    for (uint64_t i = 0; i < threads; i++) {
        workers[i].index = i;
        workers[i].turn = turn;
        need(pthread_create(&ids[i], NULL, work, &workers[i]) == 0, "no thread");
    }
    uint64_t end = now() + milliseconds * 1000000, begin = end - milliseconds * 750000, spent = 0, next = begin;
    int count = 0;
    while (next <= end && count < MAX_SAMPLES) {
        struct timespec time = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
        if (count == 0) {
            spent = process_time();
            __atomic_store_n(&counted, 1, __ATOMIC_RELAXED);
        }
        samples[count++] = take_sample();
        next += STEP_NS;
    }
    __atomic_store_n(&counted, 0, __ATOMIC_RELAXED);
    spent = process_time() - spent;
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (uint64_t i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    tell(samples, count, spent);
}

/* What every command needs: kernels of this many microseconds, and a thread's streams. */
static void prepare(uint64_t us, uint64_t threads)
{
#define LOOK_UP(name) \
    card.name = (name##_fn)dlsym(driver.library, #name); \
    need(card.name != NULL, "no " #name);
    NEEDED(LOOK_UP)
#undef LOOK_UP
    card.stubNow = (uint64_t(*)(void))dlsym(driver.library, "stubNow");
    card.stubBusy = (uint64_t(*)(unsigned int))dlsym(driver.library, "stubBusy");
    need(card.stubNow != NULL && card.stubBusy != NULL, "not the stub");
    need(card.cuModuleLoadData(&module, "image") == CUDA_SUCCESS, "no module");
    kernel = function_of(us);
    for (uint64_t i = 0; i < threads; i++) {
        for (int stream = 0; stream < MAX_STREAMS; stream++) {
            need(driver.cuStreamCreate(&workers[i].streams[stream], 1) == CUDA_SUCCESS, "no stream");
        }
    }
}

static void alone(uint64_t us, void (*turn)(struct worker *), uint64_t milliseconds)
{
    prepare(us, 1);
    run(1, turn, milliseconds);
}

/* share-async US MS: kernels of that length without end. */
static void share_async(uint64_t us, uint64_t milliseconds)
{
    alone(us, turn_async, milliseconds);
}

/* share-synced US MS: each is waited for. */
static void share_synced(uint64_t us, uint64_t milliseconds)
{
    alone(us, turn_synced, milliseconds);
}

/* share-requests US MS: each is waited for, timed with its wait, and followed by a pause of 30 ms. */
static void share_requests(uint64_t us, uint64_t milliseconds)
{
    alone(us, turn_request, milliseconds);
}

/* share-graph US MS: a graph of eight kernels after the other. */
static void share_graph(uint64_t us, uint64_t milliseconds)
{
    prepare(us, 1);
    capture(&workers[0], 8);
    run(1, turn_graph, milliseconds);
}

/* share-streams US MS: four streams in turn. */
static void share_streams(uint64_t us, uint64_t milliseconds)
{
    alone(us, turn_streams, milliseconds);
}

/* share-training US MS: 25 kernels, a wait, 15 ms of the processor. */
static void share_training(uint64_t us, uint64_t milliseconds)
{
    alone(us, turn_training, milliseconds);
}

/* share-mixed 0 MS: twenty kernels of many lengths, a wait. */
static void share_mixed(uint64_t unused, uint64_t milliseconds)
{
    /* The middles of twenty equal parts of a lognormal distribution (100 us, 1.3), shuffled. */
    static const uint64_t us[] = {8,   78,  446, 37, 181, 15,  92,  650, 46, 218,
                                  22,  108, 1280, 55, 270, 30,  128, 66, 337, 151};
    (void)unused;
    prepare(10, 1);
    for (int i = 0; i < 20; i++) {
        kernels[i] = function_of(us[i]);
    }
    run(1, turn_mixed, milliseconds);
}

/* share-copies US MS: a kernel and a copy of 500 us to the card, in turn. */
static void share_copies(uint64_t us, uint64_t milliseconds)
{
    need(driver.cuMemAlloc_v2(&memory, 500000) == CUDA_SUCCESS, "no memory");
    alone(us, turn_copies, milliseconds);
}

/* share-threads N MS: N threads launch kernels of 20 us, each in a stream of its own. */
static void share_threads(uint64_t threads, uint64_t milliseconds)
{
    need(threads > 0 && threads <= MAX_THREADS, "too many threads");
    prepare(20, threads);
    run(threads, turn_async, milliseconds);
}

/* share-captures US MS: a thread launches, another one captures graphs without end. */
static void share_captures(uint64_t us, uint64_t milliseconds)
{
    prepare(us, 2);
    run(2, turn_capture, milliseconds);
}

const struct command share_commands[] = {{"share-async", share_async},
                                         {"share-synced", share_synced},
                                         {"share-requests", share_requests},
                                         {"share-graph", share_graph},
                                         {"share-streams", share_streams},
                                         {"share-training", share_training},
                                         {"share-mixed", share_mixed},
                                         {"share-copies", share_copies},
                                         {"share-threads", share_threads},
                                         {"share-captures", share_captures},
                                         {NULL, NULL}};
