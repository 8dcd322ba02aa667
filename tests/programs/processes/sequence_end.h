/*
 * How a sequence ends: all that its calls (sequence_calls.h) have left is given back.
 */
#ifndef SEQUENCE_END_H
#define SEQUENCE_END_H

#include "sequence_calls.h"

/* Everything back that is there, in an order that the seed says. What a context held goes with it. */
static void give_all(void)
{
    DO(cuCtxSetCurrent, NULL);
    have_context();
    for (size_t i = 0; i < COUNT(graphs); i++)
        if (graphs[i].exec) {
            if (graphs[i].allocated)
                DO(cuMemFree_v2, graphs[i].allocated);
            if (DO(cuGraphExecDestroy, graphs[i].exec) == 0)
                graphs[i].exec = NULL;
        }
    for (size_t i = 0; i < COUNT(pools); i++)
        if (pools[i] && below(2) && DO(cuMemPoolDestroy, pools[i]) == 0)
            pools[i] = NULL;
    for (size_t i = 0; i < COUNT(memory); i++)
        if (memory[i].at && ((below(2) && DO(cuMemFreeAsync, memory[i].at, some_stream()) == 0) ||
                             DO(cuMemFree_v2, memory[i].at) == 0)) /* that stream may have ended with its context */
            memory[i].at = 0;
    for (size_t i = 0; i < COUNT(ranges); i++)
        if (ranges[i].is_mapped && DO(cuMemUnmap, ranges[i].at, ranges[i].bytes) == 0)
            ranges[i].is_mapped = 0;
    for (size_t i = 0; i < COUNT(handles); i++)
        if (handles[i] && DO(cuMemRelease, handles[i]) == 0)
            handles[i] = 0;
    for (size_t i = 0; i < COUNT(files); files[i++] = -1)
        close(files[i]);
    for (size_t i = 0; i < COUNT(own); i++)
        if (own[i]) {
            DO(cuCtxSetCurrent, own[i]);
            DO(cuCtxSynchronize);
            if (DO(cuCtxDestroy_v2, own[i]) == 0)
                own[i] = NULL;
        }
    DO(cuCtxSetCurrent, NULL);
    have_context();
    DO(cuCtxSynchronize);
    CUmemoryPool standard = NULL;
    for (size_t i = 0; i < COUNT(pools); i++)
        if (pools[i] && DO(cuMemPoolDestroy, pools[i]) == 0)
            pools[i] = NULL;
    DO(cuDeviceGetDefaultMemPool, &standard, 0);
    DO(cuMemPoolTrimTo, standard, 0);
    DO(cuDeviceGraphMemTrim, 0);
    DO(cuCtxSynchronize);
    CUmemGenericAllocationHandle none;
    CUmemAllocationProp prop = { .type = 1, .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
    if (DO(cuMemCreate, &none, PAGE, &prop, 0) == 0) /* files that were closed are looked at */
        while (DO(cuMemRelease, none)) {
        }
    if (DO(cuDevicePrimaryCtxReset_v2, 0) == 0)
        primary = NULL, module = NULL;
}

/* Twice: what the driver has not taken back, or has not said, it is asked for again. */
static void finish(void)
{
    give_all();
    begin("again");
    give_all();
}

#endif
