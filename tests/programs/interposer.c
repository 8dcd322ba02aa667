/* Another library that interposes dlsym, as profilers and other shims do: it answers with libc's own. */
#include <dlfcn.h>
#include <stdio.h>

static unsigned long calls;

void *dlsym(void *handle, const char *name)
{
    static void *(*libc_dlsym)(void *, const char *);
    if (!libc_dlsym) {
        void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        libc_dlsym = dlvsym(libc, "dlsym", "GLIBC_2.2.5");
    }
    calls++;
    return libc_dlsym(handle, name);
}

__attribute__((destructor)) static void count(void)
{
    printf("interposed=%lu\n", calls);
    fflush(stdout);
}
