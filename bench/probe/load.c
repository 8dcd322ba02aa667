/*
 * What the loader sees of the driver's libraries: the shapes on which the redirect of their symbol
 * tables relies.
 *
 * This program defines sched_get_priority_max itself. It stands first in the loader's scope, as a
 * preloaded library would, so that a call from a constructor of the driver lands here and is
 * counted.
 */
#include "probe.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int sched_get_priority_max_calls;

__attribute__((visibility("default"))) int sched_get_priority_max(int policy) {
    sched_get_priority_max_calls++;
    /* What Linux answers; asking the next definition here would add a look-up of our own to what is
     * measured. */
    return policy == SCHED_FIFO || policy == SCHED_RR ? 99 : 0;
}

static void keyed(char *key, size_t room, const char *library, const char *what) {
    const char *dot = strchr(library, '.');
    size_t length = dot != NULL ? (size_t)(dot - library) : strlen(library);
    struct text text = {0};
    text_add(&text, "%.*s_%s", (int)length, library, what);
    strncpy(key, text.bytes, room - 1);
    key[room - 1] = '\0';
    free(text.bytes);
}

/* The page of the symbol table is made writable for a moment, as the redirect does, and put back.
 */
static bool table_can_be_written(const struct elf *elf) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)((uintptr_t)elf->symbols & ~(page - 1));
    if (mprotect(start, page, PROT_READ | PROT_WRITE) != 0) return false;
    int before = PROT_READ | ((elf->symbol_segment_flags & PF_W) ? PROT_WRITE : 0) |
                 ((elf->symbol_segment_flags & PF_X) ? PROT_EXEC : 0);
    /* A system may refuse to make pages executable again; the table itself is only read. */
    if (mprotect(start, page, before) != 0) mprotect(start, page, PROT_READ);
    return true;
}

/* How many relocations name one of the library's own exported functions with this prefix. */
static size_t own_relocations(const struct elf *elf, const void *table, size_t count,
                              const char *prefix) {
    const ElfW(Rela) *relocation = table;
    size_t own = 0;
    for (size_t i = 0; i < count; i++) {
        void *address;
        size_t symbol = ELF64_R_SYM(relocation[i].r_info);
        if (symbol == 0 || symbol >= elf->symbol_count) continue;
        const char *name = elf_export(elf, symbol, &address);
        own += name != NULL && strncmp(name, prefix, strlen(prefix)) == 0;
    }
    return own;
}

static void describe(const char *library, const char *prefix, void *handle) {
    char key[64];
    struct elf elf;
    if (!elf_open(&elf, library)) fail("%s is loaded, but its tables were not found", library);
#define SAY(what, kind, ...) \
    (keyed(key, sizeof key, library, what), answer_##kind(key, __VA_ARGS__))
    SAY("path", text, "%s", elf.path);
    SAY("hash", text, "%s%s", elf.gnu_hash ? "gnu " : "", elf.sysv_hash ? "sysv" : "");
    SAY("symbolic", flag, elf.symbolic);
    SAY("bind_now", flag, elf.bind_now);
    SAY("table_in_executable_segment", flag, (elf.symbol_segment_flags & PF_X) != 0);
    SAY("table_can_be_written", flag, table_can_be_written(&elf));
    SAY("symbols", number, "", (double)elf.symbol_count);

    struct text imports = {0};
    size_t exported = 0, wrong = 0, imported = 0;
    text_add(&imports, "[");
    for (size_t i = 1; i < elf.symbol_count; i++) {
        void *address;
        const char *name = elf_export(&elf, i, &address);
        if (name != NULL && strncmp(name, prefix, strlen(prefix)) == 0) {
            exported++;
            wrong += dlsym(handle, name) != address;
        }
        name = elf_import(&elf, i);
        if (name == NULL) continue;
        text_add(&imports, "%s", imported++ == 0 ? "" : ",");
        text_add_string(&imports, name);
    }
    text_add(&imports, "]");
    SAY("exports", number, "names", (double)exported);
    SAY("dlsym_differs_from_table", number, "names", (double)wrong);
    SAY("own_jump_slots", number, "",
        (double)own_relocations(&elf, elf.jump_relocations, elf.jump_relocation_count, prefix));
    SAY("own_data_relocations", number, "",
        (double)own_relocations(&elf, elf.relocations, elf.relocation_count, prefix));
    SAY("imports_sched_get_priority_max", flag,
        strstr(imports.bytes, "\"sched_get_priority_max\"") != NULL);
    struct text short_form = {0};
    text_add(&short_form, "%zu names", imported);
    SAY("imports", json, imports.bytes, short_form.bytes);
#undef SAY
}

void stage_load(void) {
    sched_get_priority_max_calls = 0;
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (libcuda == NULL) skip("no driver: %s", dlerror());
    answer_number("sched_get_priority_max_calls_in_dlopen_of_libcuda", "",
                  sched_get_priority_max_calls);
    describe("libcuda.so", "cu", libcuda);

    sched_get_priority_max_calls = 0;
    void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (nvml == NULL) {
        answer_skipped("libnvidia-ml", "%s", dlerror());
    } else {
        answer_number("sched_get_priority_max_calls_in_dlopen_of_nvml", "",
                      sched_get_priority_max_calls);
        describe("libnvidia-ml.so", "nvml", nvml);
    }
    sched_get_priority_max_calls = 0;
    cuda_load();
    CUresult result = cu.cuInit(0);
    answer_text("cuInit", "%s", cuda_error(result));
    answer_number("sched_get_priority_max_calls_in_cuInit", "", sched_get_priority_max_calls);
}
