/*
 * The calls of `times` that give the card work, and what holds it up: launches, copies, graphs, waits and orders between
 * streams. What they are made in, times_ends.h makes and ends.
 */
#ifndef TIMES_CALLS_H
#define TIMES_CALLS_H

#define COUNT(places) (sizeof(places) / sizeof *(places))
#define ANY(places) ((places)[below(COUNT(places))])

enum { OWNERS = 4, STREAMS = 3, EVENTS = 2, GRAPHS = 2, NODES = 4, BYTES = 4 << 20 };

/* A graph of kernels. */
struct graph {
    CUgraphExec exec;
    CUgraph graph;
    CUgraphNode nodes[NODES]; /* null if it was captured */
    int count;
};

/* A context and what is made in it. The first one is the primary context, and its green contexts make theirs there. */
static struct owner {
    CUcontext context;
    CUstream streams[STREAMS];
    CUevent events[EVENTS];
    CUmodule module;
    struct graph graphs[GRAPHS];
    CUdeviceptr memory;
    uint32_t *word; /* of the host: streams wait for it to grow */
} owners[OWNERS];
static struct {
    void *green;
    CUcontext context;
} green_one;
static int is_retained; /* the primary context */
static CUlibrary library;
static atomic_int fresh;

static struct owner *some_owner(void)
{
    for (;;) {
        struct owner *owner = &ANY(owners);
        if (owner->context)
            return owner;
    }
}

/* Makes a context of the owner current. Returns whether that is to be undone. */
static int enter(const struct owner *owner)
{
    CUcontext context = owner->context;
    if (owner == owners && green_one.green && below(2))
        context = green_one.context;
    if (self->current == context)
        return 0;
    if (below(3) == 0)
        return DO(cuCtxPushCurrent_v2, context) == 0;
    if (DO(cuCtxSetCurrent, context) == 0)
        self->current = context;
    return 0;
}

static void leave(int is_pushed)
{
    CUcontext context;
    if (is_pushed)
        DO(cuCtxPopCurrent_v2, &context);
}

static CUstream some_stream(const struct owner *owner)
{
    if (below(3) == 0)
        return (CUstream)below(3); /* NULL, the same by name, the thread's */
    return ANY(owner->streams);
}

/* One that was launched before, or one that never was. */
static CUfunction some_function(struct owner *owner)
{
    static const char *const lengths[] = { "20us", "300us", "300us", "1ms", "1ms", "3ms", "8ms", "30ms" };
    CUfunction function = NULL;
    CUkernel kernel = NULL;
    char name[32];
    if (below(4))
        snprintf(name, sizeof name, "k_%s", ANY(lengths));
    else
        snprintf(name, sizeof name, "f%d_%s", fresh++, ANY(lengths));
    if (!owner->module && DO(cuModuleLoadData, &owner->module, "image"))
        return NULL;
    note("function %s of %d", name, (int)(owner - owners));
    if (library && below(6) == 0)
        return DO(cuLibraryGetKernel, &kernel, library, name) ? NULL : (CUfunction)kernel;
    return DO(cuModuleGetFunction, &function, owner->module, name) ? NULL : function;
}

static void launch(struct owner *owner, CUstream stream)
{
    CUfunction kernel = some_function(owner);
    CUlaunchConfig config = { 1, 1, 1, 32, 1, 1, 0, stream, NULL, 0 };
    if (!kernel)
        return;
    note("in stream %p", (void *)stream);
    switch (below(8)) {
    case 0: DO(cuLaunchKernelEx, &config, kernel, NULL, NULL); break;
    case 1: DO(cuLaunchCooperativeKernel, kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL); break;
    case 2: DO(cuLaunchKernel_ptsz, kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL); break;
    case 3: DO(cuLaunchKernelEx_ptsz, &config, kernel, NULL, NULL); break;
    case 4:
        if (DO(cuFuncSetBlockShape, kernel, 32, 1, 1) == 0)
            DO(cuLaunchGrid, kernel, 1, 1);
        break;
    default: DO(cuLaunchKernel, kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL); break;
    }
}

/* Copies and fills of the device's memory last as long as the card's speed of copies says. */
static void copy(struct owner *owner, CUstream stream)
{
    size_t bytes = 1 + below(BYTES / 2);
    if (!owner->memory && DO(cuMemAlloc_v2, &owner->memory, BYTES)) {
        owner->memory = 0;
        return;
    }
    CUdeviceptr half = owner->memory + BYTES / 2;
    note("%zu bytes in stream %p", bytes, (void *)stream);
    switch (below(5)) {
    case 0: DO(cuMemsetD8Async, half, 0, bytes, stream); break;
    case 1: DO(cuMemsetD32Async, half, 0, bytes / 4, stream); break;
    case 2: DO(cuMemcpyDtoD_v2, half, owner->memory, bytes); break;
    case 3: DO(cuMemsetD8_v2, half, 0, bytes); break;
    default: DO(cuMemcpyDtoDAsync_v2, half, owner->memory, bytes, stream); break;
    }
}

static void work_in(struct owner *owner)
{
    int is_pushed = enter(owner);
    CUstream stream = some_stream(owner);
    for (uint64_t count = 1 + below(4); count; count--)
        below(6) ? launch(owner, stream) : copy(owner, stream);
    leave(is_pushed);
}

static void work(void)
{
    work_in(some_owner());
}

static void wait_in(struct owner *owner)
{
    int is_pushed = enter(owner);
    CUevent event = ANY(owner->events);
    char bytes[64];
    switch (below(8)) {
    case 0: DO(cuCtxSynchronize); break;
    case 1: DO(cuStreamQuery, some_stream(owner)); break;
    case 2: DO(cuStreamSynchronize_ptsz, NULL); break;
    case 3:
        if (event && DO(cuEventRecord, event, some_stream(owner)) == 0)
            DO(cuEventSynchronize, event);
        break;
    case 4:
        if (event)
            DO(cuEventQuery, event);
        break;
    case 5:
        if (owner->memory)
            DO(cuMemcpyDtoH_v2, bytes, owner->memory, sizeof bytes);
        break;
    default: DO(cuStreamSynchronize, some_stream(owner)); break;
    }
    leave(is_pushed);
}

static void wait_for(void)
{
    wait_in(some_owner());
}

/* What a thread may do while others do it, too. */
static void burst(void)
{
    for (uint64_t count = 2 + below(5); count; count--)
        below(4) ? work() : wait_for();
}

/* What is queued in a stream from now on waits for another one, perhaps in another context. */
static void order(void)
{
    struct owner *first = some_owner(), *then = below(2) ? first : some_owner();
    int is_pushed = enter(first);
    CUevent *event = &ANY(first->events);
    if (*event && below(8) == 0 && DO(cuEventDestroy_v2, *event) == 0)
        *event = NULL;
    if (!*event && DO(cuEventCreate, event, below(2) ? 0 : 2))
        *event = NULL;
    CUresult result = *event ? DO(cuEventRecord, *event, some_stream(first)) : 1;
    leave(is_pushed);
    if (result)
        return;
    is_pushed = enter(then);
    CUstream stream = some_stream(then);
    note("stream %p waits", (void *)stream);
    DO(cuStreamWaitEvent, stream, *event, 0);
    if (below(2))
        launch(then, stream);
    leave(is_pushed);
}

static void pause_for(uint64_t ns)
{
    struct timespec time = { 0, (long)ns };
    nanosleep(&time, NULL);
}

static void host_function(void *ns)
{
    pause_for((uint64_t)ns);
}

static void callback(CUstream stream, CUresult result, void *ns)
{
    (void)stream, (void)result;
    pause_for((uint64_t)ns);
}

static void *grow_later(void *word)
{
    pause_for(2000000);
    __atomic_add_fetch((uint32_t *)word, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* A stream waits for a word that another thread will write. */
static void wait_for_word(struct owner *owner, CUstream stream)
{
    static _Alignas(4096) uint32_t words[OWNERS][1024];
    static unsigned int promised[OWNERS];
    ptrdiff_t place = owner - owners;
    pthread_t thread;
    if (!owner->word)
        DO(cuMemHostRegister_v2, words[place], sizeof words[place], 0);
    owner->word = words[place];
    if (DO(cuStreamWaitValue32_v2, stream, (CUdeviceptr)(uintptr_t)owner->word, ++promised[place], 0))
        return;
    if (pthread_create(&thread, NULL, grow_later, owner->word))
        exit(6);
    pthread_detach(thread);
}

/* A stream waits for the host for some milliseconds. */
static void hold(void)
{
    struct owner *owner = some_owner();
    int is_pushed = enter(owner);
    CUstream stream = some_stream(owner);
    note("in stream %p", (void *)stream);
    switch (below(3)) {
    case 0: DO(cuLaunchHostFunc, stream, host_function, (void *)below(3000000)); break;
    case 1: DO(cuStreamAddCallback, stream, callback, (void *)below(3000000), 0); break;
    default: wait_for_word(owner, stream); break;
    }
    if (below(2))
        launch(owner, stream);
    leave(is_pushed);
}

#endif
