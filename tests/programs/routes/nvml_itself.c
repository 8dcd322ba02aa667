/*
 * What NVML gets when it calls itself: each of its slots for a function of its own that the shim intercepts is called
 * once (so that a lazy one is bound), then must hold an address in NVML. A null device makes the call harmless.
 */
#include "route.h"

#include <link.h>

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
        nvmlReturn_t (*volatile *held)(void *, void *) = (void *)(map->l_addr + slot->r_offset);
        (*held)(NULL, NULL);
        const char *where = object_of((void *)*held);
        strcmp(where, "libnvidia-ml.so.1") ? elsewhere++ : own++;
    }
    printf("own=%zu\nelsewhere=%zu\n", own, elsewhere);
    return 0;
}
