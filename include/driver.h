/*
 * The CUDA driver and NVML as our C programs see them: types, constants and functions, declared
 * from the public API reference, so that a test or a probe builds where no CUDA toolkit is
 * installed.
 *
 * Names are the exported symbols (cuMemAlloc_v2, not cuMemAlloc): a program gets exactly the entry
 * point it names. Each function is written once, in CUDA_FUNCTIONS or NVML_FUNCTIONS below. From
 * that list come
 *   - a prototype, for programs linked with -lcuda or -lnvidia-ml, and
 *   - a function pointer type NAME_fn, for dlsym:
 *     cuInit_fn init = (cuInit_fn)dlsym(library, "cuInit");
 * and a program that wants them all can expand the list itself.
 *
 * Not for use together with cuda.h or nvml.h, and not a public header of gpucap.
 */
#ifndef GPUCAP_DRIVER_H
#define GPUCAP_DRIVER_H

#include "driver_types.h"
#include "driver_types_nvml.h"

/* ---- CUDA: functions ---- */

/* X(NAME, (PARAMETERS)): every one returns CUresult. */
#define CUDA_FUNCTIONS(X) \
    /* initialisation and look-up */ \
    X(cuInit, (unsigned int flags)) \
    X(cuDriverGetVersion, (int *version)) \
    X(cuGetErrorName, (CUresult error, const char **name)) \
    X(cuGetErrorString, (CUresult error, const char **text)) \
    X(cuGetProcAddress, (const char *symbol, void **pfn, int version, uint64_t flags)) \
    X(cuGetProcAddress_v2, (const char *symbol, void **pfn, int version, uint64_t flags, \
                            CUdriverProcAddressQueryResult *status)) \
    /* devices */ \
    X(cuDeviceGetCount, (int *count)) \
    X(cuDeviceGet, (CUdevice *device, int ordinal)) \
    X(cuDeviceGetName, (char *name, int length, CUdevice device)) \
    X(cuDeviceGetUuid, (CUuuid *uuid, CUdevice device)) \
    X(cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice device)) \
    X(cuDeviceGetPCIBusId, (char *id, int length, CUdevice device)) \
    X(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device)) \
    X(cuDeviceTotalMem, (unsigned int *bytes, CUdevice device)) \
    X(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device)) \
    X(cuDeviceGetMemPool, (CUmemoryPool *pool, CUdevice device)) \
    X(cuDeviceGetDefaultMemPool, (CUmemoryPool *pool, CUdevice device)) \
    X(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool)) \
    X(cuDeviceGraphMemTrim, (CUdevice device)) \
    X(cuDeviceGetGraphMemAttribute, (CUdevice device, int attribute, void *value)) \
    /* contexts */ \
    X(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device)) \
    X(cuDevicePrimaryCtxRelease, (CUdevice device)) \
    X(cuDevicePrimaryCtxRelease_v2, (CUdevice device)) \
    X(cuDevicePrimaryCtxReset, (CUdevice device)) \
    X(cuDevicePrimaryCtxReset_v2, (CUdevice device)) \
    X(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned int flags)) \
    X(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned int *flags, int *active)) \
    X(cuCtxCreate, (CUcontext *context, unsigned int flags, CUdevice device)) \
    X(cuCtxCreate_v2, (CUcontext *context, unsigned int flags, CUdevice device)) \
    X(cuCtxCreate_v3, (CUcontext *context, void *affinities, int count, unsigned int flags, \
                       CUdevice device)) \
    X(cuCtxCreate_v4, (CUcontext *context, void *params, unsigned int flags, CUdevice device)) \
    X(cuCtxDestroy, (CUcontext context)) \
    X(cuCtxDestroy_v2, (CUcontext context)) \
    X(cuGLCtxCreate, (CUcontext *context, unsigned int flags, CUdevice device)) \
    X(cuGLCtxCreate_v2, (CUcontext *context, unsigned int flags, CUdevice device)) \
    X(cuVDPAUCtxCreate, (CUcontext *context, unsigned int flags, CUdevice device, \
                         unsigned int vdp_device, void *vdp_proc_address)) \
    X(cuVDPAUCtxCreate_v2, (CUcontext *context, unsigned int flags, CUdevice device, \
                            unsigned int vdp_device, void *vdp_proc_address)) \
    X(cuDeviceGetDevResource, (CUdevice device, void *resource, int type)) \
    X(cuDevResourceGenerateDesc, (void **description, void *resources, unsigned int count)) \
    X(cuGreenCtxCreate, \
      (void **green, void *description, CUdevice device, unsigned int flags)) \
    X(cuGreenCtxDestroy, (void *green)) \
    X(cuGreenCtxStreamCreate, (CUstream *stream, void *green, unsigned int flags, int priority)) \
    X(cuCtxFromGreenCtx, (CUcontext *context, void *green)) \
    X(cuCtxAttach, (CUcontext *context, unsigned int flags)) \
    X(cuCtxDetach, (CUcontext context)) \
    X(cuCtxSetCurrent, (CUcontext context)) \
    X(cuCtxGetCurrent, (CUcontext *context)) \
    X(cuCtxPushCurrent_v2, (CUcontext context)) \
    X(cuCtxPopCurrent_v2, (CUcontext *context)) \
    X(cuCtxGetDevice, (CUdevice *device)) \
    X(cuCtxSynchronize, (void)) \
    X(cuCtxSetLimit, (int limit, size_t value)) \
    X(cuCtxGetLimit, (size_t *value, int limit)) \
    /* memory: linear */ \
    X(cuMemGetInfo, (unsigned int *free, unsigned int *total)) \
    X(cuMemGetInfo_v2, (size_t *free, size_t *total)) \
    X(cuMemAlloc, (CUdeviceptr_v1 *pointer, unsigned int bytes)) \
    X(cuMemAlloc_v2, (CUdeviceptr *pointer, size_t bytes)) \
    X(cuMemAllocPitch, (CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width_bytes, \
                        unsigned int height, unsigned int element_bytes)) \
    X(cuMemAllocPitch_v2, (CUdeviceptr *pointer, size_t *pitch, size_t width_bytes, \
                           size_t height, unsigned int element_bytes)) \
    X(cuMemAllocManaged, (CUdeviceptr *pointer, size_t bytes, unsigned int flags)) \
    X(cuMemFree, (CUdeviceptr_v1 pointer)) \
    X(cuMemFree_v2, (CUdeviceptr pointer)) \
    X(cuMemHostAlloc, (void **pointer, size_t bytes, unsigned int flags)) \
    X(cuMemFreeHost, (void *pointer)) \
    X(cuMemHostRegister_v2, (void *pointer, size_t bytes, unsigned int flags)) \
    X(cuMemGetAddressRange_v2, (CUdeviceptr *base, size_t *bytes, CUdeviceptr pointer)) \
    X(cuPointerGetAttribute, (void *value, int attribute, CUdeviceptr pointer)) \
    X(cuIpcGetMemHandle, (CUipcMemHandle *handle, CUdeviceptr pointer)) \
    X(cuIpcOpenMemHandle_v2, (CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)) \
    X(cuIpcCloseMemHandle, (CUdeviceptr pointer)) \
    /* memory: stream-ordered */ \
    X(cuMemAllocAsync, (CUdeviceptr *pointer, size_t bytes, CUstream stream)) \
    X(cuMemAllocAsync_ptsz, (CUdeviceptr *pointer, size_t bytes, CUstream stream)) \
    X(cuMemFreeAsync, (CUdeviceptr pointer, CUstream stream)) \
    X(cuMemFreeAsync_ptsz, (CUdeviceptr pointer, CUstream stream)) \
    X(cuMemAllocFromPoolAsync, \
      (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream)) \
    X(cuMemAllocFromPoolAsync_ptsz, \
      (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream stream)) \
    X(cuMemPoolCreate, (CUmemoryPool *pool, const CUmemPoolProps *props)) \
    X(cuMemPoolDestroy, (CUmemoryPool pool)) \
    X(cuMemPoolTrimTo, (CUmemoryPool pool, size_t keep)) \
    X(cuMemPoolGetAttribute, (CUmemoryPool pool, int attribute, void *value)) \
    X(cuMemPoolSetAttribute, (CUmemoryPool pool, int attribute, void *value)) \
    /* memory: virtual memory management */ \
    X(cuMemCreate, (CUmemGenericAllocationHandle *handle, size_t bytes, \
                    const CUmemAllocationProp *prop, uint64_t flags)) \
    X(cuMemRelease, (CUmemGenericAllocationHandle handle)) \
    X(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle *handle, void *address)) \
    X(cuMemGetAllocationGranularity, (size_t *bytes, const CUmemAllocationProp *prop, int option)) \
    X(cuMemAddressReserve, (CUdeviceptr *pointer, size_t bytes, size_t alignment, \
                            CUdeviceptr address, uint64_t flags)) \
    X(cuMemAddressFree, (CUdeviceptr pointer, size_t bytes)) \
    X(cuMemMap, (CUdeviceptr address, size_t bytes, size_t offset, \
                 CUmemGenericAllocationHandle handle, uint64_t flags)) \
    X(cuMemUnmap, (CUdeviceptr address, size_t bytes)) \
    X(cuMemSetAccess, \
      (CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access, size_t count)) \
    X(cuMemExportToShareableHandle, \
      (void *out, CUmemGenericAllocationHandle handle, int type, uint64_t flags)) \
    X(cuMemImportFromShareableHandle, (CUmemGenericAllocationHandle *handle, void *in, int type)) \
    /* memory: arrays */ \
    X(cuArrayCreate, (CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *descriptor)) \
    X(cuArrayCreate_v2, (CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)) \
    X(cuArray3DCreate, (CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *descriptor)) \
    X(cuArray3DCreate_v2, (CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)) \
    X(cuArrayDestroy, (CUarray array)) \
    X(cuMipmappedArrayCreate, \
      (CUmipmappedArray * array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels)) \
    X(cuMipmappedArrayDestroy, (CUmipmappedArray array)) \
    /* memory: copies and fills */ \
    X(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes)) \
    X(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes)) \
    X(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes)) \
    X(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream)) \
    X(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    X(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)) \
    X(cuMemcpyPeer, (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, \
                     CUcontext from_context, size_t bytes)) \
    X(cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags)) \
    X(cuMemsetD8_v2, (CUdeviceptr pointer, unsigned char value, size_t count)) \
    X(cuMemsetD32_v2, (CUdeviceptr pointer, unsigned int value, size_t count)) \
    X(cuMemsetD8Async, (CUdeviceptr pointer, unsigned char value, size_t count, CUstream stream)) \
    X(cuMemsetD32Async, (CUdeviceptr pointer, unsigned int value, size_t count, CUstream stream)) \
    /* code */ \
    X(cuModuleLoad, (CUmodule *module, const char *path)) \
    X(cuModuleLoadData, (CUmodule *module, const void *image)) \
    X(cuModuleLoadDataEx, \
      (CUmodule * module, const void *image, unsigned int count, int *options, void **values)) \
    X(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name)) \
    X(cuModuleGetGlobal_v2, \
      (CUdeviceptr * pointer, size_t *bytes, CUmodule module, const char *name)) \
    X(cuModuleLoadFatBinary, (CUmodule *module, const void *image)) \
    X(cuModuleUnload, (CUmodule module)) \
    X(cuLibraryLoadData, \
      (CUlibrary * library, const void *image, int *jit_options, void **jit_values, \
       unsigned int jit_count, int *options, void **values, unsigned int count)) \
    X(cuLibraryLoadFromFile, \
      (CUlibrary * library, const char *path, int *jit_options, void **jit_values, \
       unsigned int jit_count, int *options, void **values, unsigned int count)) \
    X(cuLibraryGetGlobal, \
      (CUdeviceptr * pointer, size_t *bytes, CUlibrary library, const char *name)) \
    X(cuLibraryGetManaged, \
      (CUdeviceptr * pointer, size_t *bytes, CUlibrary library, const char *name)) \
    X(cuLibraryGetModule, (CUmodule *module, CUlibrary library)) \
    X(cuLibraryGetKernel, (CUkernel *kernel, CUlibrary library, const char *name)) \
    X(cuLibraryUnload, (CUlibrary library)) \
    X(cuKernelGetFunction, (CUfunction *function, CUkernel kernel)) \
    X(cuFuncLoad, (CUfunction function)) \
    X(cuFuncGetAttribute, (int *value, int attribute, CUfunction function)) \
    X(cuFuncSetAttribute, (CUfunction function, int attribute, int value)) \
    X(cuFuncSetBlockShape, (CUfunction function, int x, int y, int z)) \
    /* launches */ \
    X(cuLaunchKernel, \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, \
       unsigned int block_x, unsigned int block_y, unsigned int block_z, \
       unsigned int shared_bytes, CUstream stream, void **params, void **extra)) \
    X(cuLaunchKernel_ptsz, \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, \
       unsigned int block_x, unsigned int block_y, unsigned int block_z, \
       unsigned int shared_bytes, CUstream stream, void **params, void **extra)) \
    X(cuLaunchKernelEx, \
      (const CUlaunchConfig *config, CUfunction function, void **params, void **extra)) \
    X(cuLaunchKernelEx_ptsz, \
      (const CUlaunchConfig *config, CUfunction function, void **params, void **extra)) \
    X(cuLaunchCooperativeKernel, \
      (CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, \
       unsigned int block_x, unsigned int block_y, unsigned int block_z, \
       unsigned int shared_bytes, CUstream stream, void **params)) \
    X(cuLaunch, (CUfunction function)) \
    X(cuLaunchGrid, (CUfunction function, int width, int height)) \
    X(cuLaunchGridAsync, (CUfunction function, int width, int height, CUstream stream)) \
    X(cuLaunchHostFunc, (CUstream stream, CUhostFn function, void *data)) \
    /* streams */ \
    X(cuStreamCreate, (CUstream *stream, unsigned int flags)) \
    X(cuStreamCreateWithPriority, (CUstream *stream, unsigned int flags, int priority)) \
    X(cuStreamDestroy_v2, (CUstream stream)) \
    X(cuStreamSynchronize, (CUstream stream)) \
    X(cuStreamSynchronize_ptsz, (CUstream stream)) \
    X(cuStreamQuery, (CUstream stream)) \
    X(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned int flags)) \
    X(cuStreamAddCallback, \
      (CUstream stream, CUstreamCallback callback, void *data, unsigned int flags)) \
    X(cuStreamWaitValue32_v2, \
      (CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags)) \
    X(cuStreamWriteValue32_v2, \
      (CUstream stream, CUdeviceptr address, uint32_t value, unsigned int flags)) \
    X(cuStreamBeginCapture_v2, (CUstream stream, int mode)) \
    X(cuStreamEndCapture, (CUstream stream, CUgraph *graph)) \
    X(cuStreamIsCapturing, (CUstream stream, int *status)) \
    /* events */ \
    X(cuEventCreate, (CUevent *event, unsigned int flags)) \
    X(cuEventDestroy_v2, (CUevent event)) \
    X(cuEventRecord, (CUevent event, CUstream stream)) \
    X(cuEventRecord_ptsz, (CUevent event, CUstream stream)) \
    X(cuEventQuery, (CUevent event)) \
    X(cuEventSynchronize, (CUevent event)) \
    X(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end)) \
    /* graphs */ \
    X(cuGraphCreate, (CUgraph *graph, unsigned int flags)) \
    X(cuGraphDestroy, (CUgraph graph)) \
    X(cuGraphAddKernelNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, \
                             size_t after_count, const CUDA_KERNEL_NODE_PARAMS_v1 *params)) \
    X(cuGraphAddKernelNode_v2, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, \
                                size_t after_count, const CUDA_KERNEL_NODE_PARAMS_v2 *params)) \
    X(cuGraphAddChildGraphNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, \
                                 size_t after_count, CUgraph child)) \
    X(cuGraphAddMemAllocNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, \
                               size_t after_count, CUDA_MEM_ALLOC_NODE_PARAMS *params)) \
    X(cuGraphAddMemFreeNode, (CUgraphNode *node, CUgraph graph, const CUgraphNode *after, \
                              size_t after_count, CUdeviceptr pointer)) \
    X(cuGraphInstantiate_v2, \
      (CUgraphExec * exec, CUgraph graph, CUgraphNode * error_node, char *log, size_t log_size)) \
    X(cuGraphInstantiateWithFlags, (CUgraphExec *exec, CUgraph graph, uint64_t flags)) \
    X(cuGraphExecUpdate_v2, (CUgraphExec exec, CUgraph graph, void *result)) \
    X(cuGraphExecKernelNodeSetParams_v2, \
      (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)) \
    X(cuGraphNodeSetEnabled, (CUgraphExec exec, CUgraphNode node, unsigned int enabled)) \
    X(cuGraphUpload, (CUgraphExec exec, CUstream stream)) \
    X(cuGraphLaunch, (CUgraphExec exec, CUstream stream)) \
    X(cuGraphLaunch_ptsz, (CUgraphExec exec, CUstream stream)) \
    X(cuGraphExecDestroy, (CUgraphExec exec))

#define DRIVER_DECLARE(name, params) \
    CUresult name params; \
    typedef CUresult(*name##_fn) params;
CUDA_FUNCTIONS(DRIVER_DECLARE)
#undef DRIVER_DECLARE

/* ---- NVML: functions ---- */

/* X(NAME, (PARAMETERS)): every one returns nvmlReturn_t. */
#define NVML_FUNCTIONS(X) \
    X(nvmlInit, (void)) \
    X(nvmlInit_v2, (void)) \
    X(nvmlInitWithFlags, (unsigned int flags)) \
    X(nvmlShutdown, (void)) \
    X(nvmlSystemGetDriverVersion, (char *version, unsigned int length)) \
    X(nvmlSystemGetNVMLVersion, (char *version, unsigned int length)) \
    X(nvmlSystemGetCudaDriverVersion_v2, (int *version)) \
    X(nvmlDeviceGetCount_v2, (unsigned int *count)) \
    X(nvmlDeviceGetHandleByIndex_v2, (unsigned int index, nvmlDevice_t *device)) \
    X(nvmlDeviceGetHandleByUUID, (const char *uuid, nvmlDevice_t *device)) \
    X(nvmlDeviceGetHandleByPciBusId_v2, (const char *id, nvmlDevice_t *device)) \
    X(nvmlDeviceGetIndex, (nvmlDevice_t device, unsigned int *index)) \
    X(nvmlDeviceGetMinorNumber, (nvmlDevice_t device, unsigned int *minor)) \
    X(nvmlDeviceGetName, (nvmlDevice_t device, char *name, unsigned int length)) \
    X(nvmlDeviceGetUUID, (nvmlDevice_t device, char *uuid, unsigned int length)) \
    X(nvmlDeviceGetPciInfo_v3, (nvmlDevice_t device, nvmlPciInfo_t *info)) \
    X(nvmlDeviceGetMaxMigDeviceCount, (nvmlDevice_t device, unsigned int *count)) \
    X(nvmlDeviceGetMigMode, (nvmlDevice_t device, unsigned int *current, unsigned int *pending)) \
    X(nvmlDeviceGetMigDeviceHandleByIndex, \
      (nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)) \
    X(nvmlDeviceGetComputeMode, (nvmlDevice_t device, int *mode)) \
    X(nvmlDeviceGetPersistenceMode, (nvmlDevice_t device, int *mode)) \
    X(nvmlDeviceGetClockInfo, (nvmlDevice_t device, int clock, unsigned int *mhz)) \
    X(nvmlDeviceGetMemoryInfo, (nvmlDevice_t device, nvmlMemory_t *memory)) \
    X(nvmlDeviceGetMemoryInfo_v2, (nvmlDevice_t device, nvmlMemory_v2_t *memory)) \
    X(nvmlDeviceGetUtilizationRates, (nvmlDevice_t device, nvmlUtilization_t *utilization)) \
    X(nvmlDeviceGetProcessUtilization, \
      (nvmlDevice_t device, nvmlProcessUtilizationSample_t * samples, unsigned int *count, \
       uint64_t last_seen)) \
    X(nvmlDeviceGetProcessesUtilizationInfo, (nvmlDevice_t device, nvmlProcessesUtilizationInfo_t * list)) \
    X(nvmlDeviceGetSamples, \
      (nvmlDevice_t device, int kind, uint64_t last_seen, int *value_type, unsigned int *count, nvmlSample_t *samples)) \
    X(nvmlDeviceGetAccountingPids, (nvmlDevice_t device, unsigned int *count, unsigned int *pids)) \
    X(nvmlDeviceGetAccountingStats, (nvmlDevice_t device, unsigned int pid, nvmlAccountingStats_t *stats)) \
    X(nvmlDeviceGetComputeRunningProcesses, \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *infos)) \
    X(nvmlDeviceGetComputeRunningProcesses_v2, \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)) \
    X(nvmlDeviceGetComputeRunningProcesses_v3, \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)) \
    X(nvmlDeviceGetGraphicsRunningProcesses_v3, \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)) \
    X(nvmlDeviceGetMPSComputeRunningProcesses_v3, \
      (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *infos)) \
    X(nvmlEventSetCreate, (nvmlEventSet_t *set)) \
    X(nvmlEventSetFree, (nvmlEventSet_t set))

#define DRIVER_DECLARE(name, params) \
    nvmlReturn_t name params; \
    typedef nvmlReturn_t(*name##_fn) params;
NVML_FUNCTIONS(DRIVER_DECLARE)
#undef DRIVER_DECLARE

#endif
