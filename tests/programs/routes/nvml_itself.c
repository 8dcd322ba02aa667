/*
 * What NVML gets when it calls itself: each of its slots for a function of its own that the shim intercepts is called
 * once (so that a lazy one is bound), then must hold an address in NVML. A null device makes the call harmless.
 */
#include "route.h"

#include <link.h>

/* Calls what a slot holds with two nulls, the way the linkage table does: a slot that is not bound wants its own place. */
static void call(void *slot)
{
#ifdef __aarch64__
    __asm__ volatile("mov x16, %0\n\tmov x0, xzr\n\tmov x1, xzr\n\tldr x17, [x16]\n\tblr x17" : : "r"(slot)
                     : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
                       "x15", "x16", "x17", "x30", "memory", "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",
                       "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
                       "v29", "v30", "v31");
#else
    (*(nvmlReturn_t (*volatile *)(void *, void *))slot)(NULL, NULL);
#endif
}

int main(void)
{
    void *library = some(dlopen("libnvidia-ml.so.1", RTLD_LAZY), "libnvidia-ml");
    const struct link_map *map = library;
    printf("where=%s\n", object_of(some(dlsym(library, "nvmlDeviceGetMemoryInfo"), "nvmlDeviceGetMemoryInfo")));
    const ElfW(Rela) *slots = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    size_t bytes = 0, own = 0, elsewhere = 0;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag; entry++) {
        switch (entry->d_tag) {
        case DT_JMPREL: slots = (void *)entry->d_un.d_ptr; break;
        case DT_SYMTAB: symbols = (void *)entry->d_un.d_ptr; break;
        case DT_STRTAB: strings = (void *)entry->d_un.d_ptr; break;
        case DT_PLTRELSZ: bytes = entry->d_un.d_val; break;
        }
    }
    for (const ElfW(Rela) *slot = slots; slot < slots + bytes / sizeof *slot; slot++) {
        if (strncmp(strings + symbols[ELF64_R_SYM(slot->r_info)].st_name, "nvmlDeviceGetMemoryInfo", 23))
            continue;
        void *volatile *held = (void *)(map->l_addr + slot->r_offset);
        call((void *)held);
        const char *where = object_of(*held);
        strcmp(where, "libnvidia-ml.so.1") ? elsewhere++ : own++;
    }
    printf("own=%zu\nelsewhere=%zu\n", own, elsewhere);
    return 0;
}
