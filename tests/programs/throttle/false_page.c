/*
 * false_page MILLISECONDS: its process does nothing on the GPU, and its container's usage page (/.gpucap/page) says for that
 * long that it works all of the time. Linked with -lcuda, so that the library notes the GPU in the page.
 */
#include "route.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { LENGTH = 69632, HIGH_WATER = 2, FIRST_SEAT = 4096 / 8, SEAT = 40 };

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

int main(int argc, char **argv)
{
    CUcontext context;
    if (argc < 2 || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context))
        return 1;
    uint64_t total = strtoull(argv[1], NULL, 10) * 1000000;
    int file = open("/.gpucap/page", O_RDWR);
    volatile uint64_t *page = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || page == MAP_FAILED)
        return 1;
    page[HIGH_WATER] = SEAT + 1;
    volatile uint64_t *seat = page + FIRST_SEAT + 2 * SEAT;
    uint64_t began = now();
    /* Work is in flight, as of the beginning. */
    seat[1] = (uint64_t)1 << 63 | began;
    for (uint64_t passed = 0; passed < total; passed = now() - began) {
        seat[0] = passed;
        usleep(500);
    }
    seat[1] = 0;
    return 0;
}
