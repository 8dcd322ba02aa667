/*
 * The probe asks a card what only a card knows; what each answer means is in bench/README.md.
 *
 * A stage is one function that runs in a process of its own with a time limit. It hands answers to
 * the parent as it finds them (answers.c), so a stage that is cut short keeps what it had. A stage
 * that lacks its means says so and ends: skip() and fail() do not return. Nothing here changes a
 * setting of the card.
 */
#ifndef PROBE_H
#define PROBE_H

#include "driver.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))
#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* ---- answers.c: what a stage tells the parent ---- */

/* All later answers of this process go to this file descriptor. */
void answers_to(int fd);

void answer_text(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
void answer_flag(const char *key, bool value);
void answer_number(const char *key, const char *unit, double value);
/* Sorts `samples`; answers with its number, least, quantiles, greatest and mean. */
void answer_spread(const char *key, const char *unit, double *samples, size_t count);
/* `json` must be one valid value without line breaks; `text` is its short form for people. */
void answer_json(const char *key, const char *json, const char *text);
void answer_skipped(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* End this process: the stage has no means, or met something it cannot explain. */
_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A text that grows, for building JSON. */
struct text {
    char *bytes;
    size_t length, room;
};
void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Adds a JSON string with its quotes. */
void text_add_string(struct text *text, const char *string);

/* ---- device.c: the driver, the clock, the kernels ---- */

#define PROBE_MEMBER(name, params) name##_fn name;
/* The driver's functions. One that this driver lacks answers CUDA_ERROR_NOT_SUPPORTED. */
struct cuda {
    CUDA_FUNCTIONS(PROBE_MEMBER)
    void *library;
};
struct nvml {
    NVML_FUNCTIONS(PROBE_MEMBER)
    void *library;
    nvmlDevice_t device;
};
#undef PROBE_MEMBER
extern struct cuda cu;
extern struct nvml nv;

/* Loads the driver, without cuInit; skips the stage if there is none. */
void cuda_load(void);
/* Loads and initialises NVML and finds the device that CUDA calls 0; false, with a reason, if there
 * is none. */
bool nvml_open(const char **why_not);

/* The checked call: a function that is missing or unsupported skips the stage, any other error
 * fails it. */
#define CU(call) cuda_check((call), #call)
void cuda_check(CUresult result, const char *call);
/* The name of a result, or its number. */
const char *cuda_error(CUresult result);

/* Device 0 with its primary context, a non-blocking stream and our kernels. */
struct gpu {
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction empty, spin, watch;
    CUstream stream;
    double cycles_per_us;
    bool real; /* a kernel's duration follows its argument: false on a simulated device */
};
/* Opens all of it, warm and calibrated. */
void gpu_open(struct gpu *gpu);
/* Ready to launch, without a calibration: beside another process it would measure that one too. */
void gpu_open_uncalibrated(struct gpu *gpu);
/* Only the context: for stages that launch nothing. */
void gpu_open_context(struct gpu *gpu);
/* The kernels and the stream. */
void gpu_load_kernels(struct gpu *gpu);
void launch_empty(const struct gpu *gpu, CUstream stream);
/* One thread that is busy for this many microseconds of the calibrated clock. */
void launch_spin(const struct gpu *gpu, CUstream stream, double microseconds);

/* A process with a context and this much memory, until it is killed. Before this one uses the driver,
 * which does not survive a fork. */
pid_t start_holder(size_t bytes);
/* Waits for a process of this stage that ended early, and ends this one likewise. */
_Noreturn void end_like(pid_t child);

double now_ns(void);
/* `full` samples, or a few of them when the run is only a rehearsal (PROBE_QUICK). */
size_t samples(size_t full);
void sleep_us(double microseconds);
/* Bytes of the device in use according to NVML, once two readings agree. */
uint64_t nvml_used(void);

/* ---- elf.c: a loaded library's own tables ---- */

struct elf {
    const char *path;
    uintptr_t base;
    const void *symbols; /* ElfW(Sym) */
    size_t symbol_count;
    const char *strings;
    bool gnu_hash, sysv_hash, symbolic, bind_now;
    const void *jump_relocations, *relocations; /* ElfW(Rela) */
    size_t jump_relocation_count, relocation_count;
    unsigned symbol_segment_flags; /* PF_* of the segment that holds the symbol table */
};
/* Reads the tables of the loaded library whose file name starts with `name`; false if it is not
 * loaded. */
bool elf_open(struct elf *elf, const char *name);
/* The name and address of an exported symbol; NULL if entry `index` is none. */
const char *elf_export(const struct elf *elf, size_t index, void **address);
/* The name of an undefined symbol; NULL if entry `index` is none. */
const char *elf_import(const struct elf *elf, size_t index);

/* ---- the stages ---- */

void stage_card(void);
void stage_load(void);
void stage_lookup(void);
void stage_context(void);
void stage_pids(void);
void stage_launch(void);
void stage_pairs(void);
void stage_beside(void);
void stage_queue(void);
void stage_slices(void);
void stage_streams(void);
void stage_granularity(void);
void stage_wake(void);
void stage_sampled(void);
void stage_names(void);

/* How often libcuda or NVML has called sched_get_priority_max in this process (load.c). */
extern int sched_get_priority_max_calls;
/* The directory that holds the spy library and the optional runtime programs; from PROBE_DIR. */
const char *probe_dir(void);

#endif
