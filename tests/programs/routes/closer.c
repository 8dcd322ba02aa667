/*
 * Another library's dlopen, behind the shim: what another thread might do is done here at the worst moment. `victim` is
 * closed when the shim, which has just redirected it, opens it to keep it.
 */
#include "route.h"

void *victim;

void *dlopen(const char *name, int mode)
{
    static void *(*next)(const char *, int);
    if (!next)
        next = some(dlsym(RTLD_NEXT, "dlopen"), "dlopen");
    if (victim && mode & RTLD_NODELETE) {
        dlclose(victim);
        victim = NULL;
    }
    return next(name, mode);
}
