/*
 * leases r|w SECONDS PATH...: takes leases on files again and again: for reading (others may not open them to write), or for
 * writing (others may not open them at all), and for reading where it gets none of those. Prints `taken=N`, and of each path `PATH=` and the error number of its first lease, or 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST 16

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int is_read;

/* 0, or the error of the lease for reading. */
static int take(int file)
{
    if ((!is_read && fcntl(file, F_SETLEASE, F_WRLCK) == 0) || fcntl(file, F_SETLEASE, F_RDLCK) == 0)
        return 0;
    return errno;
}

int main(int argc, char **argv)
{
    int files[MOST], count = argc - 3, first[MOST];
    unsigned long taken = 0;
    if (count < 1 || count > MOST || signal(SIGIO, SIG_IGN) == SIG_ERR)
        return 1;
    double until = now() + atof(argv[2]);
    is_read = *argv[1] == 'r';
    for (int i = 0; i < count; i++) {
        files[i] = open(argv[i + 3], O_RDONLY | O_NONBLOCK);
        first[i] = files[i] < 0 ? errno : take(files[i]);
        printf("%s=%d\n", argv[i + 3], first[i]);
    }
    fflush(stdout);
    do {
        for (int i = 0; i < count; i++) {
            int had = files[i] < 0 ? -1 : fcntl(files[i], F_GETLEASE);
            if (had == F_UNLCK || first[i])
                taken += files[i] >= 0 && take(files[i]) == 0;
        }
        nanosleep(&(struct timespec){ 0, 100000 }, NULL);
    } while (now() < until);
    printf("taken=%lu\n", taken);
    return 0;
}
