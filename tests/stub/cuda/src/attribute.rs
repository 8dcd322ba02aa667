//! Attributes of streams and of kernels in graphs: kept and told again, and nothing follows from
//! them.
//!
//! A value is 64 bytes, whose meaning its number tells; what was never set is zeros. A stream
//! takes its attributes with it, and the next of the same handle starts anew.

use crate::arg::{In, Out};
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::graph::Node;
use crate::graph_node::of_node;
use gpucap_abi::cuda::{CUgraphNode, CUstream, CuError, CuResult};
use std::collections::HashMap;

exports! {
    fn cuStreamGetAttribute(stream: CUstream, number: i32, value: *mut Value)
        => of_stream, context, "cuStreamGetAttribute" @ 11000;
    fn cuStreamGetAttribute_ptsz(stream: CUstream, number: i32, value: *mut Value)
        => of_stream, context, "cuStreamGetAttribute" @ 11000 ptsz;
    fn cuStreamSetAttribute(stream: CUstream, number: i32, value: *const Value)
        => set_of_stream, context, "cuStreamSetAttribute" @ 11000;
    fn cuStreamSetAttribute_ptsz(stream: CUstream, number: i32, value: *const Value)
        => set_of_stream, context, "cuStreamSetAttribute" @ 11000 ptsz;
    fn cuStreamCopyAttributes(to: CUstream, from: CUstream)
        => copy_of_stream, context, "cuStreamCopyAttributes" @ 11000;
    fn cuStreamCopyAttributes_ptsz(to: CUstream, from: CUstream)
        => copy_of_stream, context, "cuStreamCopyAttributes" @ 11000 ptsz;
    fn cuGraphKernelNodeGetAttribute(node: CUgraphNode, number: i32, value: *mut Value)
        => of_kernel, driver, "cuGraphKernelNodeGetAttribute" @ 11000;
    fn cuGraphKernelNodeSetAttribute(node: CUgraphNode, number: i32, value: *const Value)
        => set_of_kernel, driver, "cuGraphKernelNodeSetAttribute" @ 11000;
    fn cuGraphKernelNodeCopyAttributes(to: CUgraphNode, from: CUgraphNode)
        => copy_of_kernel, driver, "cuGraphKernelNodeCopyAttributes" @ 11000;
}

/// `CUlaunchAttributeValue`
type Value = [u64; 8];
/// The attributes that a stream and a kernel may have, by number.
const OF_STREAM: [i32; 4] = [1, 3, 9, 10];
const OF_KERNEL: [i32; 8] = [1, 2, 4, 5, 8, 9, 10, 14];

/// The attributes of streams and nodes, by handle and number.
#[derive(Default)]
pub(crate) struct Attributes(HashMap<(u64, i32), Value>);

impl Attributes {
    /// Forgets those of an object that is gone.
    pub(crate) fn forget(&mut self, object: u64) {
        self.0.retain(|(of, _), _| *of != object);
    }

    fn copy(&mut self, to: u64, from: u64) {
        let values: Vec<_> = self.0.iter().filter(|((of, _), _)| *of == from).collect();
        let values: Vec<_> = values.into_iter().map(|((_, at), value)| (*at, *value)).collect();
        self.forget(to);
        self.0.extend(values.into_iter().map(|(at, value)| ((to, at), value)));
    }
}

fn known(numbers: &[i32], number: i32) -> CuResult {
    if numbers.contains(&number) { Ok(()) } else { Err(CuError::INVALID_VALUE) }
}

fn stream_handle(stream: CUstream) -> Result<u64, CuError> {
    let current = current()?;
    state()?.stream(stream, current)
}

fn of_stream(stream: CUstream, number: i32, value: Out<Value>) -> CuResult {
    known(&OF_STREAM, number)?;
    let handle = stream_handle(stream)?;
    value.put(state()?.attributes.0.get(&(handle, number)).copied().unwrap_or_default())
}

fn set_of_stream(stream: CUstream, number: i32, value: In<Value>) -> CuResult {
    known(&OF_STREAM, number)?;
    let (handle, value) = (stream_handle(stream)?, value.get()?);
    state()?.attributes.0.insert((handle, number), value);
    Ok(())
}

fn copy_of_stream(to: CUstream, from: CUstream) -> CuResult {
    let (to, from) = (stream_handle(to)?, stream_handle(from)?);
    state()?.attributes.copy(to, from);
    Ok(())
}

fn kernel_handle(node: CUgraphNode) -> Result<u64, CuError> {
    of_node(node, |nodes| matches!(nodes, [Node::Kernel { .. }]).then_some(node.address()))
}

fn of_kernel(node: CUgraphNode, number: i32, value: Out<Value>) -> CuResult {
    known(&OF_KERNEL, number)?;
    let handle = kernel_handle(node)?;
    value.put(state()?.attributes.0.get(&(handle, number)).copied().unwrap_or_default())
}

fn set_of_kernel(node: CUgraphNode, number: i32, value: In<Value>) -> CuResult {
    known(&OF_KERNEL, number)?;
    let (handle, value) = (kernel_handle(node)?, value.get()?);
    state()?.attributes.0.insert((handle, number), value);
    Ok(())
}

fn copy_of_kernel(to: CUgraphNode, from: CUgraphNode) -> CuResult {
    let (to, from) = (kernel_handle(to)?, kernel_handle(from)?);
    state()?.attributes.copy(to, from);
    Ok(())
}
