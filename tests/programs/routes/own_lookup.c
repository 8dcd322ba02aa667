/* Looks the names up in the library's symbol table itself, as programs that distrust dlsym do. */
#include "route.h"

#include <link.h>

static void *look(void *library, const char *name)
{
    const struct link_map *map = library;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols = (void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB)
            strings = (void *)entry->d_un.d_ptr;
    }
    /* The names follow the symbols in every file that a linker makes. */
    for (const ElfW(Sym) *symbol = symbols; (const char *)symbol < strings; symbol++)
        if (symbol->st_value && strcmp(strings + symbol->st_name, name) == 0)
            return (void *)(map->l_addr + symbol->st_value);
    return NULL;
}

int main(void)
{
    void *cuda = some(dlopen("libcuda.so.1", RTLD_NOW), "libcuda");
#define LOOK(name) BY(look, cuda, name)
    struct cuda found = { CUDA_ROUTE(LOOK) };
    return report(&found);
}
