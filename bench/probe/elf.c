/* Reads the symbol table that the loader uses for a loaded library: the one that gpucap redirects.
 */
#include "probe.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* The loader relocates most pointers of a dynamic section in memory, but need not. */
static uintptr_t pointer(const struct dl_phdr_info *info, ElfW(Addr) value) {
    return value < info->dlpi_addr ? info->dlpi_addr + value : value;
}

/* A GNU hash table does not store the number of symbols: the end of the last chain is the last
 * symbol. */
static size_t count_by_gnu_hash(const uint32_t *table) {
    uint32_t buckets = table[0], first = table[1], bloom_words = table[2], last = 0;
    const uint32_t *bucket = table + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++) last = bucket[i] > last ? bucket[i] : last;
    if (last < first) return first;
    while ((chain[last - first] & 1) == 0) last++;
    return last + 1;
}

static void read_entry(struct elf *elf, const struct dl_phdr_info *info, const ElfW(Dyn) * entry) {
    uintptr_t at = pointer(info, entry->d_un.d_ptr);
    switch (entry->d_tag) {
    case DT_SYMTAB: elf->symbols = (const void *)at; break;
    case DT_STRTAB: elf->strings = (const char *)at; break;
    case DT_HASH:
        elf->sysv_hash = true;
        elf->symbol_count = ((const uint32_t *)at)[1];
        break;
    case DT_GNU_HASH:
        elf->gnu_hash = true;
        if (elf->symbol_count == 0) elf->symbol_count = count_by_gnu_hash((const uint32_t *)at);
        break;
    case DT_SYMBOLIC: elf->symbolic = true; break;
    case DT_FLAGS:
        if (entry->d_un.d_val & DF_SYMBOLIC) elf->symbolic = true;
        if (entry->d_un.d_val & DF_BIND_NOW) elf->bind_now = true;
        break;
    case DT_FLAGS_1:
        if (entry->d_un.d_val & DF_1_NOW) elf->bind_now = true;
        break;
    case DT_JMPREL: elf->jump_relocations = (const void *)at; break;
    case DT_PLTRELSZ: elf->jump_relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
    case DT_RELA: elf->relocations = (const void *)at; break;
    case DT_RELASZ: elf->relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela)); break;
    default: break;
    }
}

struct search {
    struct elf *elf;
    const char *name;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    const char *slash = strrchr(info->dlpi_name, '/');
    const char *file = slash != NULL ? slash + 1 : info->dlpi_name;
    if (strncmp(file, search->name, strlen(search->name)) != 0) return 0;
    struct elf *elf = search->elf;
    memset(elf, 0, sizeof *elf);
    elf->path = info->dlpi_name;
    elf->base = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) read_entry(elf, info, entry);
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr, at = (uintptr_t)elf->symbols;
        if (segment->p_type == PT_LOAD && at >= start && at < start + segment->p_memsz)
            elf->symbol_segment_flags = segment->p_flags;
    }
    return elf->symbols != NULL && elf->strings != NULL;
}

bool elf_open(struct elf *elf, const char *name) {
    struct search search = {elf, name};
    return dl_iterate_phdr(visit, &search) != 0;
}

static const ElfW(Sym) * symbol_at(const struct elf *elf, size_t index) {
    return (const ElfW(Sym) *)elf->symbols + index;
}

const char *elf_export(const struct elf *elf, size_t index, void **address) {
    const ElfW(Sym) *symbol = symbol_at(elf, index);
    if (symbol->st_shndx == SHN_UNDEF || symbol->st_value == 0 ||
        ELF64_ST_TYPE(symbol->st_info) != STT_FUNC)
        return NULL;
    *address = (void *)(elf->base + symbol->st_value);
    return elf->strings + symbol->st_name;
}

const char *elf_import(const struct elf *elf, size_t index) {
    const ElfW(Sym) *symbol = symbol_at(elf, index);
    if (symbol->st_shndx != SHN_UNDEF || symbol->st_name == 0) return NULL;
    return elf->strings + symbol->st_name;
}
