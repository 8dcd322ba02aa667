/*
 * Known work for a card, one task per process. Work is counted by what was completed, never by a clock of the card:
 * a spin by the SM's clock may run on while another process has its turn. Beside the stub the length of a kernel comes
 * from its name, so both take as long as the name says.
 *
 *   worker calibrate                        turns_per_us of an unlimited card
 *   worker run SHAPE US SECONDS TURNS       says ready, waits for a line, works; SHAPE: async, sync, graph, copy
 *   worker launches                         host time of a launch and of an event
 *   worker first                            times of cuInit, the context, the first allocation
 *   worker init                             cuInit alone
 *
 * Answers are those of the probe (bench/probe/answers.c).
 */
#include "probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES = 20, COPIED = 256 << 20, MOST_MARKS = 4096 };

static struct gpu gpu;
static CUfunction turn;
static CUdeviceptr out, memory;
static CUgraphExec exec;

/* Steps that need one another's result; what is stored keeps the compiler from leaving them out. */
static const char source[] =
    ".version 6.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry turn_%uus(.param .u64 turns, .param .u64 out) {\n"
    "  .reg .u64 %%left, %%out;\n  .reg .u32 %%x;\n  .reg .pred %%more;\n"
    "  ld.param.u64 %%left, [turns];\n  ld.param.u64 %%out, [out];\n"
    "  cvta.to.global.u64 %%out, %%out;\n  cvt.u32.u64 %%x, %%left;\n"
    "again:\n"
    "  mad.lo.u32 %%x, %%x, 1664525, 1013904223;\n  sub.u64 %%left, %%left, 1;\n"
    "  setp.ne.u64 %%more, %%left, 0;\n  @%%more bra again;\n"
    "  st.global.u32 [%%out], %%x;\n  ret;\n}\n";

static void open_card(unsigned us) {
    char image[sizeof source + 16], name[32];
    snprintf(image, sizeof image, source, us);
    snprintf(name, sizeof name, "turn_%uus", us);
    gpu_open_context(&gpu);
    gpu_load_kernels(&gpu);
    CU(cu.cuModuleLoadData(&gpu.module, image));
    CU(cu.cuModuleGetFunction(&turn, gpu.module, name));
    CU(cu.cuMemAlloc_v2(&out, 256));
}

static void launch_turns(uint64_t turns) {
    void *params[] = {&turns, &out};
    CU(cu.cuLaunchKernel(turn, 1, 1, 1, 1, 1, 1, 0, gpu.stream, params, NULL));
}

static double timed(uint64_t turns) {
    CUevent start, end;
    float ms = 0;
    CU(cu.cuEventCreate(&start, CU_EVENT_DEFAULT));
    CU(cu.cuEventCreate(&end, CU_EVENT_DEFAULT));
    launch_empty(&gpu, gpu.stream);
    CU(cu.cuEventRecord(start, gpu.stream));
    launch_turns(turns);
    CU(cu.cuEventRecord(end, gpu.stream));
    CU(cu.cuStreamSynchronize(gpu.stream));
    CU(cu.cuEventElapsedTime(&ms, start, end));
    return 1000 * (double)ms;
}

/* An idle card is slow to raise its clock: the first runs do not count. */
static void calibrate(void) {
    const uint64_t turns = 2000 * 1000;
    open_card(1000);
    for (int i = 0; i < 10; i++) timed(turns);
    double once = timed(turns), twice = timed(2 * turns);
    if (!(once > 0)) fail("a kernel took no time");
    answer_number("turns_per_us", "1/us", (double)turns / once);
    answer_flag("real", twice > 1.8 * once && twice < 2.2 * once);
}

static void record_graph(uint64_t turns) {
    CUgraph graph;
    CU(cu.cuStreamBeginCapture_v2(gpu.stream, 1));
    for (int i = 0; i < NODES; i++) launch_turns(turns);
    CU(cu.cuStreamEndCapture(gpu.stream, &graph));
    CU(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
}

/* Launches one unit of the shape; a graph is NODES of them. */
static unsigned launch_unit(const char *shape, uint64_t turns) {
    if (exec != NULL) {
        CU(cu.cuGraphLaunch(exec, gpu.stream));
        return NODES;
    }
    if (strcmp(shape, "copy") == 0) CU(cu.cuMemcpyDtoDAsync_v2(memory + COPIED, memory, COPIED, gpu.stream));
    else launch_turns(turns);
    return 1;
}

/* How far the work was at some time: the reader forms windows from these. */
static struct mark { double ns; uint64_t done; } marks[MOST_MARKS];

static void answer_marks(size_t count) {
    struct text json = {0};
    for (size_t i = 0; i < count; i++)
        text_add(&json, "%s[%.0f,%llu]", i ? "," : "[", marks[i].ns, (unsigned long long)marks[i].done);
    text_add(&json, "]");
    answer_json("marks", json.bytes, "time and units done");
    free(json.bytes);
}

static void run(const char *shape, unsigned us, double seconds, double turns_per_us) {
    uint64_t turns = (uint64_t)(us * turns_per_us) + 1, done = 0;
    char line[16];
    open_card(us);
    if (strcmp(shape, "copy") == 0) CU(cu.cuMemAlloc_v2(&memory, 2 * (size_t)COPIED));
    if (strcmp(shape, "graph") == 0) record_graph(turns);
    /* What waits is at most about 5 ms of work, so that the end of a batch tells the time well. */
    unsigned batch = strcmp(shape, "sync") == 0 ? 1 : 5000 / (us * (exec != NULL ? NODES : 1)) + 1;
    if (batch > 256) batch = 256;
    launch_unit(shape, turns);
    CU(cu.cuStreamSynchronize(gpu.stream));
    puts("ready");
    fflush(stdout);
    if (fgets(line, sizeof line, stdin) == NULL) fail("no order to go");
    double start = now_ns(), now = start, next = start, step = seconds * 1e9 / (MOST_MARKS - 8);
    size_t count = 0;
    while (now < start + seconds * 1e9) {
        for (unsigned i = 0; i < batch; i++) done += launch_unit(shape, turns);
        CU(cu.cuStreamSynchronize(gpu.stream));
        now = now_ns();
        if (now < next || count == MOST_MARKS) continue;
        marks[count++] = (struct mark){now - start, done};
        next = now + step;
    }
    answer_marks(count);
}

static void launches(void) {
    static double launch_ns[400], event_ns[400];
    const size_t blocks = samples(ARRAY_LEN(launch_ns));
    const int each = 200;
    CUevent event;
    open_card(1);
    CU(cu.cuEventCreate(&event, CU_EVENT_DEFAULT));
    for (size_t block = 0; block < blocks; block++) {
        double start = now_ns();
        for (int i = 0; i < each; i++) launch_empty(&gpu, gpu.stream);
        launch_ns[block] = (now_ns() - start) / each;
        CU(cu.cuStreamSynchronize(gpu.stream));
        start = now_ns();
        for (int i = 0; i < each; i++) CU(cu.cuEventRecord(event, gpu.stream));
        event_ns[block] = (now_ns() - start) / each;
        CU(cu.cuStreamSynchronize(gpu.stream));
    }
    answer_spread("launch", "ns", launch_ns, blocks);
    answer_spread("event", "ns", event_ns, blocks);
}

static void first(int only_init) {
    CUdeviceptr pointer;
    double start = now_ns();
    cuda_load();
    CU(cu.cuInit(0));
    double inited = now_ns();
    answer_number("init", "ns", inited - start);
    if (only_init) return;
    gpu_open_context(&gpu);
    double opened = now_ns();
    CU(cu.cuMemAlloc_v2(&pointer, MIB));
    answer_number("context", "ns", opened - inited);
    answer_number("allocation", "ns", now_ns() - opened);
}

int main(int argc, char **argv) {
    const char *task = argc > 1 ? argv[1] : "";
    if (strcmp(task, "calibrate") == 0) calibrate();
    else if (strcmp(task, "run") == 0 && argc == 6) run(argv[2], (unsigned)atoi(argv[3]), atof(argv[4]), atof(argv[5]));
    else if (strcmp(task, "launches") == 0) launches();
    else if (strcmp(task, "first") == 0) first(0);
    else if (strcmp(task, "init") == 0) first(1);
    else fail("no such task: %s", task);
    return 0;
}
