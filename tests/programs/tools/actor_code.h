/*
 * The actor's commands for code as text, which every driver compiles itself, and for what NVML says of a process.
 *
 *   text A BYTES       a module with a variable of this many bytes, which is asked for: it may be made only then
 *   local A BYTES      a module with a kernel that wants this many bytes of its own for each thread; it runs once
 *   process A PID      bytes of card 0 that the process uses, or error 6: it is not listed
 */
#ifndef ACTOR_CODE_H
#define ACTOR_CODE_H

#define TEXT_HEAD ".version 6.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .b8 variable[%" PRIu64 "];\n"

/* Where the kernel writes is not known beforehand, so that its room cannot be left out. */
static const char kernel_text[] =
    ".visible .entry local(.param .u64 at) {\n"
    "  .local .align 4 .b8 room[%" PRIu64 "];\n  .reg .u64 %%at, %%room;\n  .reg .u32 %%found;\n"
    "  ld.param.u64 %%at, [at];\n  mov.u64 %%room, room;\n  add.u64 %%at, %%at, %%room;\n"
    "  st.local.u32 [%%at], 7;\n  ld.local.u32 %%found, [room];\n  st.global.u32 [variable], %%found;\n  ret;\n}\n";

static CUresult load_text(uint64_t *module, uint64_t bytes, uint64_t local)
{
    char text[sizeof TEXT_HEAD + sizeof kernel_text + 64];
    int used = snprintf(text, sizeof text, TEXT_HEAD, bytes);
    if (local)
        snprintf(text + used, sizeof text - (size_t)used, kernel_text, local);
    return call_cuModuleLoadData((CUmodule *)module, text);
}

static CUresult load_variable(uint64_t *module, uint64_t bytes)
{
    CUdeviceptr pointer;
    CUresult result = load_text(module, bytes, 0);
    return result ? result : call_cuModuleGetGlobal_v2(&pointer, NULL, (CUmodule)*module, "variable");
}

static CUresult run_local(uint64_t *module, uint64_t local)
{
    CUfunction function;
    uint64_t at = 0;
    void *params[] = { &at };
    CUresult result = load_text(module, 4, local);
    if (!result)
        result = call_cuModuleGetFunction(&function, (CUmodule)*module, "local");
    if (!result)
        result = call_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    return result ? result : call_cuCtxSynchronize();
}

static CUresult process(uint64_t *bytes, uint64_t pid)
{
    static nvmlProcessInfo_t found[256];
    nvmlDevice_t device;
    unsigned int count = 256;
    nvmlReturn_t result = nvml_device(&device, 0, 0);
    if (!result)
        result = call_nvmlDeviceGetComputeRunningProcesses_v3(device, &count, found);
    for (unsigned int i = 0; !result && i < count; i++)
        if (found[i].pid == pid)
            return *bytes = found[i].usedGpuMemory, 0;
    return result ? result : 6;
}

/* False if the verb is none of these. */
static int obey_code(CUresult *result, const char *verb, uint64_t *slot, uint64_t number)
{
#define COMMAND(word, call) if (strcmp(verb, word) == 0) return *result = (call), 1;
    COMMAND("text", load_variable(slot, number))
    COMMAND("local", run_local(slot, number))
    COMMAND("process", process(slot, number))
#undef COMMAND
    return 0;
}

#endif
