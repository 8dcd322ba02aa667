//! Names that driver 535 exports and that this library only answers NOT_SUPPORTED to.
//!
//! `nvidia-smi` and the Python tools look them up and print N/A. The arguments are not looked at, so no row
//! says what they are.

use crate::export::{Need, enter};
use gpucap_abi::nvml::{NvmlError, NvmlResult};

macro_rules! unsupported {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> NvmlResult {
            enter(stringify!($name), Need::library)?;
            Err(NvmlError::NOT_SUPPORTED)
        }
    )*};
}

unsupported! {
    nvmlComputeInstanceDestroy nvmlComputeInstanceGetInfo nvmlComputeInstanceGetInfo_v2
    nvmlDeviceClearAccountingPids nvmlDeviceClearCpuAffinity nvmlDeviceClearEccErrorCounts
    nvmlDeviceClearFieldValues nvmlDeviceCreateGpuInstance
    nvmlDeviceCreateGpuInstanceWithPlacement nvmlDeviceDiscoverGpus
    nvmlDeviceFreezeNvLinkUtilizationCounter nvmlDeviceGetAPIRestriction
    nvmlDeviceGetAccountingBufferSize
    nvmlDeviceGetActiveVgpus nvmlDeviceGetAdaptiveClockInfoStatus nvmlDeviceGetApplicationsClock
    nvmlDeviceGetAutoBoostedClocksEnabled nvmlDeviceGetBoardPartNumber nvmlDeviceGetBridgeChipInfo
    nvmlDeviceGetBusType nvmlDeviceGetClkMonStatus nvmlDeviceGetClock
    nvmlDeviceGetConfComputeGpuAttestationReport nvmlDeviceGetConfComputeGpuCertificate
    nvmlDeviceGetConfComputeMemSizeInfo nvmlDeviceGetConfComputeProtectedMemoryUsage
    nvmlDeviceGetCpuAffinityWithinScope nvmlDeviceGetCreatableVgpus
    nvmlDeviceGetCurrentClocksEventReasons nvmlDeviceGetCurrentClocksThrottleReasons
    nvmlDeviceGetDefaultApplicationsClock nvmlDeviceGetDefaultEccMode
    nvmlDeviceGetDetailedEccErrors nvmlDeviceGetDriverModel nvmlDeviceGetDynamicPstatesInfo
    nvmlDeviceGetEncoderCapacity nvmlDeviceGetEncoderSessions nvmlDeviceGetEncoderStats
    nvmlDeviceGetFBCSessions nvmlDeviceGetFBCStats nvmlDeviceGetFanControlPolicy_v2
    nvmlDeviceGetFanSpeed nvmlDeviceGetFanSpeed_v2 nvmlDeviceGetGpcClkMinMaxVfOffset
    nvmlDeviceGetGpcClkVfOffset nvmlDeviceGetGpuFabricInfo nvmlDeviceGetGpuInstanceById
    nvmlDeviceGetGpuInstancePossiblePlacements nvmlDeviceGetGpuInstancePossiblePlacements_v2
    nvmlDeviceGetGpuInstanceProfileInfo nvmlDeviceGetGpuInstanceProfileInfoV
    nvmlDeviceGetGpuInstanceRemainingCapacity nvmlDeviceGetGpuInstances
    nvmlDeviceGetGpuMaxPcieLinkGeneration nvmlDeviceGetGpuOperationMode
    nvmlDeviceGetGridLicensableFeatures nvmlDeviceGetGridLicensableFeatures_v2
    nvmlDeviceGetGridLicensableFeatures_v3 nvmlDeviceGetGridLicensableFeatures_v4
    nvmlDeviceGetGspFirmwareMode nvmlDeviceGetGspFirmwareVersion nvmlDeviceGetHandleBySerial
    nvmlDeviceGetHostVgpuMode nvmlDeviceGetInforomConfigurationChecksum
    nvmlDeviceGetInforomImageVersion nvmlDeviceGetInforomVersion nvmlDeviceGetIrqNum
    nvmlDeviceGetJpgUtilization nvmlDeviceGetLastBBXFlushTime nvmlDeviceGetMaxCustomerBoostClock
    nvmlDeviceGetMemClkMinMaxVfOffset nvmlDeviceGetMemClkVfOffset nvmlDeviceGetMemoryBusWidth
    nvmlDeviceGetMemoryErrorCounter nvmlDeviceGetMinMaxClockOfPState nvmlDeviceGetMinMaxFanSpeed
    nvmlDeviceGetModuleId nvmlDeviceGetNumFans nvmlDeviceGetNumGpuCores
    nvmlDeviceGetNvLinkCapability nvmlDeviceGetNvLinkErrorCounter
    nvmlDeviceGetNvLinkRemoteDeviceType nvmlDeviceGetNvLinkRemotePciInfo
    nvmlDeviceGetNvLinkRemotePciInfo_v2 nvmlDeviceGetNvLinkState
    nvmlDeviceGetNvLinkUtilizationControl nvmlDeviceGetNvLinkUtilizationCounter
    nvmlDeviceGetNvLinkVersion nvmlDeviceGetOfaUtilization nvmlDeviceGetP2PStatus
    nvmlDeviceGetPcieLinkMaxSpeed nvmlDeviceGetPcieReplayCounter nvmlDeviceGetPcieSpeed
    nvmlDeviceGetPgpuMetadataString nvmlDeviceGetPowerManagementMode nvmlDeviceGetPowerSource
    nvmlDeviceGetPowerState nvmlDeviceGetRemappedRows nvmlDeviceGetRetiredPages
    nvmlDeviceGetRetiredPagesPendingStatus nvmlDeviceGetRetiredPages_v2
    nvmlDeviceGetRowRemapperHistogram nvmlDeviceGetSramEccErrorStatus
    nvmlDeviceGetSupportedClocksEventReasons nvmlDeviceGetSupportedClocksThrottleReasons
    nvmlDeviceGetSupportedEventTypes nvmlDeviceGetSupportedGraphicsClocks
    nvmlDeviceGetSupportedMemoryClocks nvmlDeviceGetSupportedPerformanceStates
    nvmlDeviceGetSupportedVgpus nvmlDeviceGetTargetFanSpeed nvmlDeviceGetThermalSettings
    nvmlDeviceGetTopologyCommonAncestor nvmlDeviceGetTopologyNearestGpus
    nvmlDeviceGetTotalEccErrors nvmlDeviceGetVbiosVersion nvmlDeviceGetVgpuCapabilities
    nvmlDeviceGetVgpuMetadata nvmlDeviceGetVgpuProcessUtilization
    nvmlDeviceGetVgpuSchedulerCapabilities nvmlDeviceGetVgpuSchedulerLog
    nvmlDeviceGetVgpuSchedulerState nvmlDeviceGetVgpuUtilization nvmlDeviceGetViolationStatus
    nvmlDeviceModifyDrainState nvmlDeviceOnSameBoard nvmlDeviceQueryDrainState nvmlDeviceRemoveGpu
    nvmlDeviceRemoveGpu_v2 nvmlDeviceResetApplicationsClocks nvmlDeviceResetGpuLockedClocks
    nvmlDeviceResetMemoryLockedClocks nvmlDeviceResetNvLinkErrorCounters
    nvmlDeviceResetNvLinkUtilizationCounter nvmlDeviceSetAPIRestriction
    nvmlDeviceSetAccountingMode nvmlDeviceSetApplicationsClocks
    nvmlDeviceSetAutoBoostedClocksEnabled nvmlDeviceSetComputeMode
    nvmlDeviceSetConfComputeUnprotectedMemSize nvmlDeviceSetCpuAffinity
    nvmlDeviceSetDefaultAutoBoostedClocksEnabled nvmlDeviceSetDefaultFanSpeed_v2
    nvmlDeviceSetDriverModel nvmlDeviceSetEccMode nvmlDeviceSetFanControlPolicy
    nvmlDeviceSetFanSpeed_v2 nvmlDeviceSetGpcClkVfOffset nvmlDeviceSetGpuLockedClocks
    nvmlDeviceSetGpuOperationMode nvmlDeviceSetMemClkVfOffset nvmlDeviceSetMemoryLockedClocks
    nvmlDeviceSetMigMode nvmlDeviceSetNvLinkDeviceLowPowerThreshold
    nvmlDeviceSetNvLinkUtilizationControl nvmlDeviceSetPersistenceMode
    nvmlDeviceSetPowerManagementLimit nvmlDeviceSetPowerManagementLimit_v2
    nvmlDeviceSetTemperatureThreshold nvmlDeviceSetVgpuSchedulerState
    nvmlDeviceSetVirtualizationMode nvmlGetBlacklistDeviceInfoByIndex
    nvmlGetExcludedDeviceInfoByIndex nvmlGetVgpuCompatibility nvmlGetVgpuDriverCapabilities
    nvmlGetVgpuVersion nvmlGpmMetricsGet nvmlGpmMigSampleGet nvmlGpmQueryDeviceSupport
    nvmlGpmQueryIfStreamingEnabled nvmlGpmSampleAlloc nvmlGpmSampleFree nvmlGpmSampleGet
    nvmlGpmSetStreamingEnabled nvmlGpuInstanceCreateComputeInstance
    nvmlGpuInstanceCreateComputeInstanceWithPlacement nvmlGpuInstanceDestroy
    nvmlGpuInstanceGetComputeInstanceById nvmlGpuInstanceGetComputeInstancePossiblePlacements
    nvmlGpuInstanceGetComputeInstanceProfileInfo nvmlGpuInstanceGetComputeInstanceProfileInfoV
    nvmlGpuInstanceGetComputeInstanceRemainingCapacity nvmlGpuInstanceGetComputeInstances
    nvmlGpuInstanceGetInfo nvmlSetVgpuVersion nvmlSystemGetConfComputeCapabilities
    nvmlSystemGetConfComputeGpusReadyState nvmlSystemGetConfComputeState nvmlSystemGetHicVersion
    nvmlSystemGetNvlinkBwMode nvmlSystemGetTopologyGpuSet nvmlSystemSetConfComputeGpusReadyState
    nvmlSystemSetNvlinkBwMode nvmlUnitGetDevices nvmlUnitGetFanSpeedInfo nvmlUnitGetHandleByIndex
    nvmlUnitGetLedState nvmlUnitGetPsuInfo nvmlUnitGetTemperature nvmlUnitGetUnitInfo
    nvmlUnitSetLedState nvmlVgpuInstanceClearAccountingPids nvmlVgpuInstanceGetAccountingMode
    nvmlVgpuInstanceGetAccountingPids nvmlVgpuInstanceGetAccountingStats
    nvmlVgpuInstanceGetEccMode nvmlVgpuInstanceGetEncoderCapacity
    nvmlVgpuInstanceGetEncoderSessions nvmlVgpuInstanceGetEncoderStats
    nvmlVgpuInstanceGetFBCSessions nvmlVgpuInstanceGetFBCStats nvmlVgpuInstanceGetFbUsage
    nvmlVgpuInstanceGetFrameRateLimit nvmlVgpuInstanceGetGpuInstanceId nvmlVgpuInstanceGetGpuPciId
    nvmlVgpuInstanceGetLicenseInfo nvmlVgpuInstanceGetLicenseInfo_v2
    nvmlVgpuInstanceGetLicenseStatus nvmlVgpuInstanceGetMdevUUID nvmlVgpuInstanceGetMetadata
    nvmlVgpuInstanceGetType nvmlVgpuInstanceGetUUID nvmlVgpuInstanceGetVmDriverVersion
    nvmlVgpuInstanceGetVmID nvmlVgpuInstanceSetEncoderCapacity nvmlVgpuTypeGetCapabilities
    nvmlVgpuTypeGetClass nvmlVgpuTypeGetDeviceID nvmlVgpuTypeGetFrameRateLimit
    nvmlVgpuTypeGetFramebufferSize nvmlVgpuTypeGetGpuInstanceProfileId nvmlVgpuTypeGetLicense
    nvmlVgpuTypeGetMaxInstances nvmlVgpuTypeGetMaxInstancesPerVm nvmlVgpuTypeGetName
    nvmlVgpuTypeGetNumDisplayHeads nvmlVgpuTypeGetResolution
    nvmlDeviceGetCpuAffinity nvmlDeviceGetMemoryAffinity
}
