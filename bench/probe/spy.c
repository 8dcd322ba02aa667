/*
 * A library for LD_PRELOAD that writes down which cu* and nvml* names a program asks for, to the
 * file that PROBE_SPY names (opened once, appended by whole lines, so that processes of one program
 * share it):
 *
 *     dlsym NAME
 *     proc NAME VERSION FLAGS
 *     import NAME FILE      a loaded file that is linked to the name
 *
 * It answers exactly what the program would have got, except that cuGetProcAddress itself is
 * replaced by a wrapper. dlsym jumps to the real one instead of calling it, because the real one
 * looks at its caller (RTLD_NEXT).
 */
#include "driver.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int log_fd = -1;

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
    char line[512];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (log_fd < 0 || length <= 0 || (size_t)length >= sizeof line) return;
    if (write(log_fd, line, (size_t)length) != length) log_fd = -1;
}

static cuGetProcAddress_fn real_get;
static cuGetProcAddress_v2_fn real_get_v2;

static CUresult spy_get(const char *symbol, void **pfn, int version, uint64_t flags);
static CUresult spy_get_v2(const char *symbol, void **pfn, int version, uint64_t flags,
                           CUdriverProcAddressQueryResult *status);

static void replace(void **pfn) {
    if (*pfn == NULL) return;
    if (*pfn == *(void **)&real_get) *pfn = *(void **)&(cuGetProcAddress_fn){spy_get};
    else if (*pfn == *(void **)&real_get_v2) *pfn = *(void **)&(cuGetProcAddress_v2_fn){spy_get_v2};
}

static CUresult spy_get(const char *symbol, void **pfn, int version, uint64_t flags) {
    note("proc %s %d %llu\n", symbol, version, (unsigned long long)flags);
    CUresult result = real_get(symbol, pfn, version, flags);
    if (result == CUDA_SUCCESS && pfn != NULL) replace(pfn);
    return result;
}

static CUresult spy_get_v2(const char *symbol, void **pfn, int version, uint64_t flags,
                           CUdriverProcAddressQueryResult *status) {
    note("proc %s %d %llu\n", symbol, version, (unsigned long long)flags);
    CUresult result = real_get_v2(symbol, pfn, version, flags, status);
    if (result == CUDA_SUCCESS && pfn != NULL) replace(pfn);
    return result;
}

typedef void *(*dlsym_fn)(void *, const char *);

/* Read by the code below; set before the first look-up that needs it. */
__attribute__((used, visibility("hidden"))) dlsym_fn spy_real_dlsym;

/* The answer to give instead of the real one, or NULL; makes sure that spy_real_dlsym is set. */
__attribute__((used, visibility("hidden"))) void *spy_see(void *handle, const char *name) {
    if (spy_real_dlsym == NULL)
        *(void **)&spy_real_dlsym = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    bool cuda = strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z';
    if (!cuda && strncmp(name, "nvml", 4) != 0) return NULL;
    note("dlsym %s\n", name);
    bool first = strcmp(name, "cuGetProcAddress") == 0,
         second = strcmp(name, "cuGetProcAddress_v2") == 0;
    if (!first && !second) return NULL;
    void *get = spy_real_dlsym(handle, "cuGetProcAddress"),
         *get_v2 = spy_real_dlsym(handle, "cuGetProcAddress_v2");
    if (get != NULL) *(void **)&real_get = get;
    if (get_v2 != NULL) *(void **)&real_get_v2 = get_v2;
    void *answer = first ? get : get_v2;
    replace(&answer);
    return answer;
}

__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "  push %rdi\n"
        "  push %rsi\n"
        "  sub $8, %rsp\n"
        "  call spy_see\n"
        "  add $8, %rsp\n"
        "  pop %rsi\n"
        "  pop %rdi\n"
        "  test %rax, %rax\n"
        "  jz 1f\n"
        "  ret\n"
        "1:\n"
        "  jmp *spy_real_dlsym(%rip)\n"
        ".size dlsym, . - dlsym\n");

__attribute__((constructor)) static void open_log(void) {
    const char *path = getenv("PROBE_SPY");
    if (path != NULL) log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* Names that a loaded file is linked to never pass through dlsym. */
static int note_imports(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    const ElfW(Rela) * tables[2] = {NULL, NULL};
    size_t counts[2] = {0, 0};
    if (info->dlpi_name[0] == '\0' || strstr(info->dlpi_name, "libcuda.so") != NULL) return 0;
    if (strstr(info->dlpi_name, "libnvidia-") != NULL ||
        strstr(info->dlpi_name, "linux-vdso") != NULL)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
        const ElfW(Dyn) *entry = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++) {
            uintptr_t at = entry->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr + entry->d_un.d_ptr
                                                               : entry->d_un.d_ptr;
            if (entry->d_tag == DT_SYMTAB) symbols = (const void *)at;
            if (entry->d_tag == DT_STRTAB) strings = (const char *)at;
            if (entry->d_tag == DT_JMPREL) tables[0] = (const void *)at;
            if (entry->d_tag == DT_PLTRELSZ) counts[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
            if (entry->d_tag == DT_RELA) tables[1] = (const void *)at;
            if (entry->d_tag == DT_RELASZ) counts[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
        }
    }
    const char *slash = strrchr(info->dlpi_name, '/');
    for (int t = 0; t < 2 && symbols != NULL && strings != NULL; t++) {
        for (size_t i = 0; tables[t] != NULL && i < counts[t]; i++) {
            const ElfW(Sym) *symbol = &symbols[ELF64_R_SYM(tables[t][i].r_info)];
            const char *name = strings + symbol->st_name;
            bool cuda = strncmp(name, "cu", 2) == 0 && name[2] >= 'A' && name[2] <= 'Z';
            if (symbol->st_shndx == SHN_UNDEF && (cuda || strncmp(name, "nvml", 4) == 0))
                note("import %s %s\n", name, slash != NULL ? slash + 1 : info->dlpi_name);
        }
    }
    return 0;
}

__attribute__((destructor)) static void note_all_imports(void) {
    dl_iterate_phdr(note_imports, NULL);
}
