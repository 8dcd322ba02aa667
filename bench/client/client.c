/* The client's loop over commands, and the commands about the process itself. See client.h. */
#include "client.h"
#include "gpucap.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct driver driver;

static uint64_t read_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t cpu_time(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t charged(void)
{
    static int file = -1;
    const char *path = getenv("GPUCAP_LEDGER");
    off_t place = offsetof(struct gpucap_ledger, devices) + offsetof(struct gpucap_ledger_device, busy);
    uint64_t busy = 0;
    if (file < 0 && path) {
        file = open(path, O_RDONLY | O_CLOEXEC);
    }
    need(!path || pread(file, &busy, sizeof busy, place) == sizeof busy, "the ledger cannot be read");
    return busy;
}

void need(int holds, const char *message)
{
    if (!holds) {
        fprintf(stderr, "client: %s\n", message);
        exit(1);
    }
}

/* pin: from here on one processor, the last of those allowed. */
static void pin(uint64_t first, uint64_t second)
{
    (void)first, (void)second;
    cpu_set_t set;
    need(sched_getaffinity(0, sizeof set, &set) == 0, "cannot read the processors");
    int last = CPU_SETSIZE - 1;
    while (last > 0 && !CPU_ISSET(last, &set)) {
        last--;
    }
    CPU_ZERO(&set);
    CPU_SET(last, &set);
    printf("pinned=%d\n", sched_setaffinity(0, sizeof set, &set) == 0);
}

/* open: the first CUDA calls of the process, each timed. */
static void open_driver(uint64_t first, uint64_t second)
{
    (void)first, (void)second;
    uint64_t start = now();
    driver.library = dlopen("libcuda.so.1", RTLD_NOW);
    need(driver.library != NULL, "no libcuda.so.1");
#define LOOK_UP(name) \
    driver.name = (name##_fn)dlsym(driver.library, #name); \
    need(driver.name != NULL, "no " #name);
    DRIVER_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    uint64_t loaded = now();
    need(driver.cuInit(0) == CUDA_SUCCESS, "cuInit failed");
    uint64_t initialised = now();
    need(driver.cuDevicePrimaryCtxRetain(&driver.context, 0) == CUDA_SUCCESS, "no context");
    need(driver.cuCtxSetCurrent(driver.context) == CUDA_SUCCESS, "context not made current");
    uint64_t current = now();
    CUdeviceptr pointer;
    need(driver.cuMemAlloc_v2(&pointer, 4096) == CUDA_SUCCESS, "first allocation failed");
    uint64_t allocated = now();
    need(driver.cuMemFree_v2(pointer) == CUDA_SUCCESS, "first free failed");
    printf("load=%lu init=%lu context=%lu alloc=%lu all=%lu\n", loaded - start, initialised - loaded,
           current - initialised, allocated - current, allocated - start);
}

static int entries(const char *path)
{
    int count = 0;
    DIR *directory = opendir(path);
    need(directory != NULL, "cannot list a directory of /proc");
    for (struct dirent *entry; (entry = readdir(directory));) {
        count += entry->d_name[0] != '.';
    }
    closedir(directory);
    return count;
}

/* facts: open descriptors, threads, resident KiB, whether the shim is mapped. */
static void facts(uint64_t first, uint64_t second)
{
    (void)first, (void)second;
    char line[4096];
    int mapped = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    need(maps != NULL, "cannot read /proc/self/maps");
    while (fgets(line, sizeof line, maps)) {
        mapped |= strstr(line, "libgpucap.so") != NULL;
    }
    fclose(maps);
    unsigned long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "r");
    need(statm && fscanf(statm, "%*u %lu", &pages) == 1, "cannot read /proc/self/statm");
    fclose(statm);
    /* Less the descriptor that lists them. */
    printf("descriptors=%d threads=%d resident_kib=%lu shim=%d\n", entries("/proc/self/fd") - 1,
           entries("/proc/self/task"), pages * (unsigned long)sysconf(_SC_PAGESIZE) / 1024, mapped);
}

static const struct command own_commands[] = {
    {"pin", pin}, {"open", open_driver}, {"facts", facts},
                                              {"company", company}, {NULL, NULL}};

static command_fn find(const char *name)
{
    const struct command *lists[] = {own_commands, memory_commands, family_commands, launch_commands,
                                     lookup_commands, share_commands};
    for (size_t list = 0; list < sizeof lists / sizeof *lists; list++) {
        for (const struct command *command = lists[list]; command->name; command++) {
            if (!strcmp(command->name, name)) {
                return command->run;
            }
        }
    }
    return NULL;
}

int main(void)
{
    char line[256];
    while (fgets(line, sizeof line, stdin)) {
        char name[32] = "";
        unsigned long first = 0, second = 0;
        sscanf(line, "%31s %lu %lu", name, &first, &second);
        command_fn run = find(name);
        need(run != NULL, "unknown command");
        alarm(300);
        run(first, second);
        fflush(stdout);
    }
    return 0;
}
