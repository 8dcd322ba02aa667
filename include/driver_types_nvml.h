/*
 * Types and constants of NVML, declared from the public API reference; as driver_types.h has those of the CUDA driver.
 * Included by driver.h.
 *
 * The assertions at the end pin the layouts that the library fixes.
 */
#ifndef GPUCAP_DRIVER_TYPES_NVML_H
#define GPUCAP_DRIVER_TYPES_NVML_H

#include <stdint.h>

typedef unsigned int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef struct nvmlEventSet_st *nvmlEventSet_t;

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999
};

enum { NVML_CLOCK_GRAPHICS = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2 };

/* The used bytes of a process that NVML cannot tell. */
#define NVML_VALUE_NOT_AVAILABLE UINT64_MAX

typedef struct nvmlMemory_st {
    uint64_t total;
    uint64_t free;
    uint64_t used;
} nvmlMemory_t;

/* `version` must be set to this before the call. */
#define NVML_MEMORY_V2 0x02000028u
typedef struct nvmlMemory_v2_st {
    unsigned int version;
    uint64_t total;
    uint64_t reserved;
    uint64_t free;
    uint64_t used;
} nvmlMemory_v2_t;

typedef struct nvmlUtilization_st {
    unsigned int gpu;
    unsigned int memory;
} nvmlUtilization_t;

typedef struct nvmlProcessInfo_v1_st {
    unsigned int pid;
    uint64_t usedGpuMemory;
} nvmlProcessInfo_v1_t;

/* Also the record of the _v3 calls. */
typedef struct nvmlProcessInfo_st {
    unsigned int pid;
    uint64_t usedGpuMemory;
    unsigned int gpuInstanceId;
    unsigned int computeInstanceId;
} nvmlProcessInfo_t;

typedef struct nvmlProcessUtilizationSample_st {
    unsigned int pid;
    uint64_t timeStamp;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct nvmlProcessUtilizationInfo_v1_st {
    uint64_t timeStamp;
    unsigned int pid;
    unsigned int smUtil;
    unsigned int memUtil;
    unsigned int encUtil;
    unsigned int decUtil;
    unsigned int jpgUtil;
    unsigned int ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;

/* `version` must be set to this before the call. */
#define NVML_PROCESSES_UTILIZATION_V1 0x01000018u
typedef struct nvmlProcessesUtilizationInfo_v1_st {
    unsigned int version;
    unsigned int processSamplesCount;
    uint64_t lastSeenTimeStamp;
    nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_t;

/* The value is a union of 8 bytes. */
typedef struct nvmlSample_st {
    uint64_t timeStamp;
    uint64_t sampleValue;
} nvmlSample_t;

typedef struct nvmlAccountingStats_st {
    unsigned int gpuUtilization;
    unsigned int memoryUtilization;
    uint64_t maxMemoryUsage;
    uint64_t time;
    uint64_t startTime;
    unsigned int isRunning;
    unsigned int reserved[5];
} nvmlAccountingStats_t;

typedef struct nvmlPciInfo_st {
    char busIdLegacy[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int pciDeviceId;
    unsigned int pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

/* ---- the layouts that the library fixes ---- */

#ifdef __cplusplus
#define DRIVER_ASSERT static_assert
#else
#define DRIVER_ASSERT _Static_assert
#endif
DRIVER_ASSERT(sizeof(nvmlMemory_t) == 24, "nvmlMemory_t");
DRIVER_ASSERT(sizeof(nvmlMemory_v2_t) == 40, "nvmlMemory_v2_t");
DRIVER_ASSERT(sizeof(nvmlProcessInfo_v1_t) == 16, "nvmlProcessInfo_v1_t");
DRIVER_ASSERT(sizeof(nvmlProcessInfo_t) == 24, "nvmlProcessInfo_t");
DRIVER_ASSERT(sizeof(nvmlProcessUtilizationSample_t) == 32, "nvmlProcessUtilizationSample_t");
DRIVER_ASSERT(sizeof(nvmlProcessUtilizationInfo_v1_t) == 40, "nvmlProcessUtilizationInfo_v1_t");
DRIVER_ASSERT(sizeof(nvmlProcessesUtilizationInfo_t) == 24, "nvmlProcessesUtilizationInfo_t");
DRIVER_ASSERT(sizeof(nvmlSample_t) == 16, "nvmlSample_t");
DRIVER_ASSERT(sizeof(nvmlAccountingStats_t) == 56, "nvmlAccountingStats_t");
DRIVER_ASSERT(sizeof(nvmlPciInfo_t) == 68, "nvmlPciInfo_t");
#undef DRIVER_ASSERT

#endif
