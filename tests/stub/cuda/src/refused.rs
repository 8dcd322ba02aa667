//! Names of the driver that this one has no means for: it refuses them as a driver without the
//! means does.
//!
//! There is no GL, no EGL and no VDPAU here, no semaphore of another API, no fabric, and nothing
//! that could be taken up again after a checkpoint. A name is exported all the same, and
//! `cuGetProcAddress` knows it: a client that looks all its names up before it asks for anything
//! starts. The arguments are not looked at, so no row says what they are. What a client is seen
//! to need moves to the file of its noun.

use crate::export::{Need, Row, enter};
use gpucap_abi::cuda::{CuError, CuResult};

/// `CUDA_ERROR_INVALID_GRAPHICS_CONTEXT`: no context of GL is current in the thread.
const NO_GRAPHICS: CuError = CuError::new(219).unwrap();
/// Exported, and unknown to `cuGetProcAddress`.
const NEVER: i32 = i32::MAX;

/// The name by which a function is looked up: its own, unless the row says another.
macro_rules! base {
    ($name:ident) => {
        stringify!($name)
    };
    ($name:ident $base:literal) => {
        $base
    };
}

macro_rules! refused {
    ($($error:expr => $($name:ident $($base:literal)? @ $since:tt $($ptsz:ident)?,)*;)*) => {
        /// The functions of this file.
        pub(crate) const ROWS: &[Row] = &[$($(Row {
            symbol: stringify!($name),
            base: base!($name $($base)?),
            since: $since,
            per_thread: $crate::export::is_per_thread!($($ptsz)?),
            arguments: &[],
            address: || $name as *const () as usize,
        }),*),*];
        $($(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> CuResult {
                enter(stringify!($name), Need::driver)?;
                Err($error)
            }
        )*)*
    };
}

refused! {
    NO_GRAPHICS =>
        cuGLGetDevices @ 4010,
        cuGLGetDevices_v2 "cuGLGetDevices" @ 6050,
        cuGLInit @ 2000,
        cuGLMapBufferObject @ 2000,
        cuGLMapBufferObjectAsync @ 2030,
        cuGLMapBufferObjectAsync_v2 "cuGLMapBufferObjectAsync" @ 3020,
        cuGLMapBufferObjectAsync_v2_ptsz "cuGLMapBufferObjectAsync" @ 7000 ptsz,
        cuGLMapBufferObject_v2 "cuGLMapBufferObject" @ 3020,
        cuGLMapBufferObject_v2_ptds "cuGLMapBufferObject" @ 7000 ptsz,
        cuGLRegisterBufferObject @ 2000,
        cuGLSetBufferObjectMapFlags @ 2030,
        cuGLUnmapBufferObject @ 2000,
        cuGLUnmapBufferObjectAsync @ 2030,
        cuGLUnregisterBufferObject @ 2000,
        cuGraphicsGLRegisterBuffer @ 3000,
        cuGraphicsGLRegisterImage @ 3000,
    ;
    CuError::INVALID_HANDLE =>
        cuExternalMemoryGetMappedMipmappedArray @ 10000,
        cuGraphAddExternalSemaphoresSignalNode @ 11020,
        cuGraphAddExternalSemaphoresWaitNode @ 11020,
        cuGraphExecExternalSemaphoresSignalNodeSetParams @ 11020,
        cuGraphExecExternalSemaphoresWaitNodeSetParams @ 11020,
        cuGraphExternalSemaphoresSignalNodeGetParams @ 11020,
        cuGraphExternalSemaphoresSignalNodeSetParams @ 11020,
        cuGraphExternalSemaphoresWaitNodeGetParams @ 11020,
        cuGraphExternalSemaphoresWaitNodeSetParams @ 11020,
        cuGraphicsMapResources @ 3000,
        cuGraphicsMapResources_ptsz "cuGraphicsMapResources" @ 7000 ptsz,
        cuGraphicsResourceGetMappedEglFrame @ 7000,
        cuGraphicsResourceGetMappedMipmappedArray @ 5000,
        cuGraphicsResourceGetMappedPointer @ 3000,
        cuGraphicsResourceGetMappedPointer_v2 "cuGraphicsResourceGetMappedPointer" @ 3020,
        cuGraphicsResourceSetMapFlags @ 3000,
        cuGraphicsResourceSetMapFlags_v2 "cuGraphicsResourceSetMapFlags" @ 6050,
        cuGraphicsSubResourceGetMappedArray @ 3000,
        cuGraphicsUnmapResources @ 3000,
        cuGraphicsUnmapResources_ptsz "cuGraphicsUnmapResources" @ 7000 ptsz,
        cuGraphicsUnregisterResource @ 3000,
    ;
    CuError::NOT_FOUND =>
        cuLibraryGetUnifiedFunction @ 12000,
    ;
    CuError::NOT_SUPPORTED =>
        cuArrayGetPlane @ 11020,
        cuArrayGetSparseProperties @ 11010,
        cuCheckpointOperationComplete @ 13040,
        cuCheckpointProcessCheckpoint @ 12080,
        cuCheckpointProcessGetRestoreThreadId @ 12080,
        cuCheckpointProcessGetState @ 12080,
        cuCheckpointProcessLock @ 12080,
        cuCheckpointProcessRestore @ 12080,
        cuCheckpointProcessUnlock @ 12080,
        cuCoredumpDeregisterCompleteCallback @ 13020,
        cuCoredumpDeregisterStartCallback @ 13020,
        cuCoredumpGetAttribute @ 12010,
        cuCoredumpGetAttributeGlobal @ 12010,
        cuCoredumpRegisterCompleteCallback @ 13020,
        cuCoredumpRegisterStartCallback @ 13020,
        cuCoredumpSetAttribute @ 12010,
        cuCoredumpSetAttributeGlobal @ 12010,
        cuDevSmResourceSplit @ 13000,
        cuDeviceGetCliqueCount @ 13040,
        cuDeviceGetCliqueInfo @ 13040,
        cuDeviceGetFabricClusterUuid @ 13040,
        cuDeviceGetHostAtomicCapabilities @ 13000,
        cuDeviceGetLuid @ 10000,
        cuDeviceGetNvSciSyncAttributes @ 10020,
        cuDeviceGetP2PAtomicCapabilities @ 13000,
        cuDeviceRegisterAsyncNotification @ 12040,
        cuDeviceUnregisterAsyncNotification @ 12040,
        cuEGLApiInit @ NEVER,
        cuEGLStreamConsumerAcquireFrame @ 7000,
        cuEGLStreamConsumerConnect @ 7000,
        cuEGLStreamConsumerConnectWithFlags @ 8000,
        cuEGLStreamConsumerDisconnect @ 7000,
        cuEGLStreamConsumerReleaseFrame @ 7000,
        cuEGLStreamProducerConnect @ 7000,
        cuEGLStreamProducerDisconnect @ 7000,
        cuEGLStreamProducerPresentFrame @ 7000,
        cuEGLStreamProducerReturnFrame @ 7000,
        cuEventCreateFromEGLSync @ NEVER,
        cuFabricCpyBatchAsync @ 13050,
        cuFabricCpyBatchAsync_ptsz "cuFabricCpyBatchAsync" @ 13050 ptsz,
        cuGraphAddBatchMemOpNode @ 11070,
        cuGraphBatchMemOpNodeGetParams @ 11070,
        cuGraphBatchMemOpNodeSetParams @ 11070,
        cuGraphDebugDotPrint @ 11030,
        cuGraphExecBatchMemOpNodeSetParams @ 11070,
        cuGraphNodeGetParams @ 13020,
        cuGraphicsEGLRegisterImage @ 7000,
        cuGraphicsVDPAURegisterOutputSurface @ 3010,
        cuGraphicsVDPAURegisterVideoSurface @ 3010,
        cuGreenCtxGetId @ 13000,
        cuLogicalEndpointAddDevice @ 13030,
        cuLogicalEndpointBindAddr @ 13030,
        cuLogicalEndpointBindMem @ 13030,
        cuLogicalEndpointCreate @ 13030,
        cuLogicalEndpointDestroy @ 13030,
        cuLogicalEndpointExport @ 13030,
        cuLogicalEndpointGetLimits @ 13030,
        cuLogicalEndpointIdRelease @ 13030,
        cuLogicalEndpointIdReserve @ 13030,
        cuLogicalEndpointImport @ 13030,
        cuLogicalEndpointQuery @ 13030,
        cuLogicalEndpointUnbind @ 13030,
        cuLogsCurrent @ 12090,
        cuLogsDumpToFile @ 12090,
        cuLogsDumpToMemory @ 12090,
        cuLogsRegisterCallback @ 12090,
        cuLogsUnregisterCallback @ 12090,
        cuMemBatchDecompressAsync @ 12060,
        cuMemBatchDecompressAsync_ptsz "cuMemBatchDecompressAsync" @ 12060 ptsz,
        cuMemDiscardBatchAsync @ 13000,
        cuMemDiscardBatchAsync_ptsz "cuMemDiscardBatchAsync" @ 13000 ptsz,
        cuMemGetAttribute @ NEVER,
        cuMemGetAttribute_v2 @ NEVER,
        cuMemGetHandleForAddressRange @ 11070,
        cuMemGetLocationInfo @ 13040,
        cuMipmappedArrayGetMemoryRequirements @ 11060,
        cuMipmappedArrayGetSparseProperties @ 11010,
        cuStreamGetDevResource @ 13000,
        cuStreamGetDevResource_ptsz "cuStreamGetDevResource" @ 13000 ptsz,
        cuTensorMapSetAllocationClass @ 13050,
        cuVDPAUGetDevice @ 3010,
    ;
}
