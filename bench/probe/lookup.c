/*
 * Whether cuGetProcAddress hands out exactly the exported functions, and which one for which
 * version and flags. The shim replaces the *address* that the driver answers; that is right only if
 * every answer is an address it knows.
 */
#include "probe.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    const char *name;
    void *address;
};

struct names {
    struct entry *entries;
    size_t count;
};

static int by_address(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    return (a->address > b->address) - (a->address < b->address);
}

static const char *name_of(const struct names *names, void *address) {
    struct entry key = {NULL, address};
    const struct entry *found = bsearch(&key, names->entries, names->count, sizeof key, by_address);
    return found != NULL ? found->name : NULL;
}

static struct names exported_names(const struct elf *elf) {
    struct names names = {calloc(elf->symbol_count, sizeof(struct entry)), 0};
    if (names.entries == NULL) abort();
    for (size_t i = 1; i < elf->symbol_count; i++) {
        void *address;
        const char *name = elf_export(elf, i, &address);
        if (name != NULL && strncmp(name, "cu", 2) == 0)
            names.entries[names.count++] = (struct entry){name, address};
    }
    qsort(names.entries, names.count, sizeof *names.entries, by_address);
    return names;
}

/* cuMemcpyHtoD_v2_ptds -> cuMemcpyHtoD; what cuGetProcAddress wants to be asked for. */
static void base_name(char *base, size_t room, const char *name) {
    snprintf(base, room, "%s", name);
    for (;;) {
        char *end = strrchr(base, '_');
        if (end == NULL) return;
        bool stream = strcmp(end, "_ptsz") == 0 || strcmp(end, "_ptds") == 0;
        bool version = end[1] == 'v' && end[2] >= '1' && end[2] <= '9' &&
                       strspn(end + 2, "0123456789") == strlen(end + 2);
        if (!stream && !version) return;
        *end = '\0';
    }
}

static int by_text(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static size_t base_names(const struct names *names, char **bases) {
    size_t count = 0;
    for (size_t i = 0; i < names->count; i++) {
        char base[128];
        base_name(base, sizeof base, names->entries[i].name);
        if ((bases[count++] = strdup(base)) == NULL) abort();
    }
    qsort(bases, count, sizeof *bases, by_text);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || strcmp(bases[kept - 1], bases[i]) != 0) bases[kept++] = bases[i];
    return kept;
}

/* Every version that ever changed an answer lies on this grid: 2000, 3000, 3020, then tens up to
 * the driver's own. */
static size_t version_grid(int *versions, size_t room, int newest) {
    size_t count = 0;
    for (int major = 2; major <= newest / 1000 + 1; major++)
        for (int minor = 0; minor <= 9 && count < room; minor++)
            versions[count++] = major * 1000 + minor * 10;
    return count;
}

struct totals {
    size_t asked, answered, unknown, v1_differs, unexpected_result;
    struct text unknown_names, map;
};

static void ask(const struct names *names, const char *base, uint64_t flags, const int *versions,
                size_t version_count, struct totals *totals) {
    const char *last = NULL;
    for (size_t i = 0; i < version_count; i++) {
        void *answer = NULL, *old_answer = NULL;
        CUdriverProcAddressQueryResult status = -1;
        CUresult result = cu.cuGetProcAddress_v2(base, &answer, versions[i], flags, &status);
        totals->asked++;
        totals->unexpected_result +=
            result != CUDA_SUCCESS || (answer == NULL) != (status != CU_GET_PROC_ADDRESS_SUCCESS);
        if (cu.cuGetProcAddress(base, &old_answer, versions[i], flags) == CUDA_SUCCESS)
            totals->v1_differs += old_answer != answer && strcmp(base, "cuGetProcAddress") != 0;
        if (answer == NULL) continue;
        totals->answered++;
        const char *name = name_of(names, answer);
        if (name == NULL) {
            totals->unknown++;
            text_add(&totals->unknown_names, "%s\"%s %d %d\"",
                     totals->unknown_names.length == 0 ? "" : ",", base, versions[i], (int)flags);
            name = "?";
        }
        if (last != NULL && strcmp(last, name) == 0) continue;
        text_add(&totals->map, "%s[\"%s\",%d,%d,\"%s\"]", totals->map.length == 0 ? "" : ",", base,
                 (int)flags, versions[i], name);
        last = name;
    }
}

static char mark;
static void *const untouched = &mark;

static const char *fate(const void *answer) {
    if (answer == untouched) return "untouched";
    return answer == NULL ? "null" : "set";
}

/* The cases in which the two resolvers are known to differ. */
static void answer_corner_cases(int newest) {
    static const struct {
        const char *key, *name;
        int version; /* 0: the driver's own */
        uint64_t flags;
    } cases[] = {
        {"suffixed_name", "cuMemAlloc_v2", 0, 0},
        {"missing_name", "cuNoSuchFunction", 0, 0},
        {"empty_name", "", 0, 0},
        {"version_too_low", "cuMemAllocAsync", 2000, 0},
        {"version_above_driver", "cuMemAlloc", 99000, 0},
        {"per_thread_too_low", "cuLaunchKernel", 5000, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int version = cases[i].version != 0 ? cases[i].version : newest;
        void *new_answer = untouched, *old_answer = untouched;
        CUdriverProcAddressQueryResult status = -1;
        CUresult new_result =
            cu.cuGetProcAddress_v2(cases[i].name, &new_answer, version, cases[i].flags, &status);
        CUresult old_result =
            cu.cuGetProcAddress(cases[i].name, &old_answer, version, cases[i].flags);
        answer_text(cases[i].key, "v2: result %u, status %d, pointer %s; v1: result %u, pointer %s",
                    new_result, status, fate(new_answer), old_result, fate(old_answer));
    }
}

void stage_lookup(void) {
    cuda_load();
    struct elf elf;
    if (!elf_open(&elf, "libcuda.so")) fail("libcuda is loaded, but its tables were not found");
    answer_text("cuInit", "%s", cuda_error(cu.cuInit(0)));
    int newest = 0;
    CU(cu.cuDriverGetVersion(&newest));
    answer_number("driver_version", "", newest);

    struct names names = exported_names(&elf);
    size_t shared = 0;
    for (size_t i = 1; i < names.count; i++)
        shared += names.entries[i].address == names.entries[i - 1].address;
    answer_number("exported_names", "", (double)names.count);
    answer_number("names_that_share_an_address", "", (double)shared);

    void *resolver = NULL;
    CUresult result = cu.cuGetProcAddress_v2("cuInit", &resolver, newest, 0, NULL);
    if (result == CUDA_ERROR_NOT_SUPPORTED) skip("cuGetProcAddress_v2: %s", cuda_error(result));
    char **bases = calloc(names.count, sizeof *bases);
    if (bases == NULL) abort();
    size_t base_count = base_names(&names, bases);
    int versions[256];
    size_t version_count = version_grid(versions, ARRAY_LEN(versions), newest);
    struct totals totals = {0};
    double start = now_ns();
    for (size_t i = 0; i < base_count; i++)
        for (uint64_t flags = 0; flags <= 2; flags++)
            ask(&names, bases[i], flags, versions, version_count, &totals);
    answer_number("base_names", "", (double)base_count);
    answer_number("look_ups", "", (double)totals.asked);
    answer_number("cost_of_two_look_ups", "ns", (now_ns() - start) / (double)totals.asked);
    answer_number("answered", "", (double)totals.answered);
    answer_number("answers_that_dlsym_does_not_give", "", (double)totals.unknown);
    answer_number("v1_and_v2_differ", "", (double)totals.v1_differs);
    answer_number("result_and_status_disagree", "", (double)totals.unexpected_result);
    answer_corner_cases(newest);
    struct text json = {0};
    text_add(&json, "[%s]", totals.unknown_names.length != 0 ? totals.unknown_names.bytes : "");
    answer_json("unknown_answers", json.bytes, totals.unknown == 0 ? "none" : "see the file");
    json.length = 0;
    text_add(&json, "[%s]", totals.map.length != 0 ? totals.map.bytes : "");
    answer_json("map", json.bytes, "[base, flags, since, symbol] for each change: see the file");
}
