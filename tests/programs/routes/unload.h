/* Libraries that are unloaded. */
#ifndef UNLOAD_H
#define UNLOAD_H

#include "route.h"

#include <sys/mman.h>

/* Where a library is: glibc's handles are link maps, which begin with the load address. */
static inline void *place_of(void *library)
{
    return *(void **)library;
}

/* Whether nothing is loaded there any more. Other memory then takes the place, so that no later library can. */
static inline int is_gone(void *place)
{
    Dl_info info;
    if (dladdr(place, &info))
        return 0;
    mmap(place, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return 1;
}

#endif
