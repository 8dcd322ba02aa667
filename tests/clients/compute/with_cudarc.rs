//! cudarc: a context, memory, a module, launches and their times. `ci/clients` builds it.
//!
//! Says what `card.py` lets the scripts beside it say.

use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg, sys,
};
use cudarc::nvrtc::Ptx;
use std::env;
use std::error::Error;
use std::sync::Arc;

const SMALL: usize = 1 << 30;
const LARGE: usize = 3 << 30;
const SPAN: u64 = 1_500_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let context = CudaContext::new(0)?;
    let stream = context.new_stream()?;
    for word in env::args().skip(1) {
        match word.as_str() {
            "run" => run(&context, &stream)?,
            "memory" => {
                println!("within={}", said(take(&stream, SMALL)));
                println!("over={}", said(take(&stream, LARGE)));
            }
            "time" => spend(&context, &stream)?,
            _ => return Err(word.into()),
        }
    }
    println!("done=1");
    Ok(())
}

fn take(stream: &Arc<CudaStream>, bytes: usize) -> Result<CudaSlice<u8>, DriverError> {
    let taken = stream.alloc_zeros(bytes)?;
    stream.synchronize()?;
    Ok(taken)
}

fn said(taken: Result<CudaSlice<u8>, DriverError>) -> String {
    taken.map_or_else(|error| format!("{error:?}"), |_| "ok".into())
}

fn run(context: &Arc<CudaContext>, stream: &Arc<CudaStream>) -> Result<(), Box<dyn Error>> {
    let data: Vec<u32> = (0..1 << 16).collect();
    let there = stream.clone_htod(&data)?;
    let mut other = stream.alloc_zeros::<u32>(data.len())?;
    stream.memcpy_dtod(&there, &mut other)?;
    assert_eq!(stream.clone_dtoh(&other)?, data);
    let timed = Some(sys::CUevent_flags::CU_EVENT_DEFAULT);
    let begin = stream.record_event(timed)?;
    launch(context, stream, 3)?;
    let end = stream.record_event(timed)?;
    assert!(begin.elapsed_ms(&end)? > 0.0);
    Ok(())
}

fn launch(
    context: &Arc<CudaContext>,
    stream: &Arc<CudaStream>,
    times: u32,
) -> Result<(), DriverError> {
    let module =
        context.load_module(Ptx::from_src(".version 6.0\n.target sm_50\n.address_size 64\n"))?;
    let kernel = module.load_function("kernel")?;
    for number in 0..times {
        // SAFETY: the stub runs nothing.
        unsafe {
            stream.launch_builder(&kernel).arg(&number).launch(LaunchConfig::for_num_elems(256))
        }?;
    }
    stream.synchronize()
}

fn spend(context: &Arc<CudaContext>, stream: &Arc<CudaStream>) -> Result<(), Box<dyn Error>> {
    launch(context, stream, 4)?;
    // SAFETY: the stub has these functions beside the driver's.
    let stub = unsafe { libloading::Library::new("libcuda.so.1") }?;
    // SAFETY: so they are declared there.
    let now: libloading::Symbol<extern "C" fn() -> u64> = unsafe { stub.get(b"stubNow\0") }?;
    // SAFETY: likewise.
    let busy: libloading::Symbol<extern "C" fn(u32) -> u64> = unsafe { stub.get(b"stubBusy\0") }?;
    let (began, before) = (now(), busy(0));
    while now() - began < SPAN {
        launch(context, stream, 4)?;
    }
    println!("busy={}\nclock={}", busy(0) - before, now() - began);
    Ok(())
}
