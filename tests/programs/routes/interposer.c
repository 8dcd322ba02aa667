/* Another library that interposes dlsym, as profilers and other shims do: it answers with libc's own. */
#include "route.h"

static void *(*libc_dlsym)(void *, const char *);
static unsigned long calls;

/* At the start, so that nothing but the program's own look-ups happens once the driver is there. */
__attribute__((constructor)) static void find(void)
{
    void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
    libc_dlsym = dlvsym(libc, "dlsym", FIRST_GLIBC);
}

void *dlsym(void *handle, const char *name)
{
    if (!libc_dlsym)
        find();
    calls++;
    return libc_dlsym(handle, name);
}

__attribute__((destructor)) static void count(void)
{
    printf("interposed=%lu\n", calls);
    fflush(stdout);
}
