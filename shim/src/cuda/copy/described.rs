//! Copies that a structure describes: what their sides are, and how much they move.

use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{
    CU_MEMCPY_OPERAND_TYPE_ARRAY, CU_MEMCPY_OPERAND_TYPE_POINTER, CU_MEMORYTYPE_ARRAY,
    CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_UNIFIED, CUDA_MEMCPY2D, CUDA_MEMCPY2D_v1, CUDA_MEMCPY3D,
    CUDA_MEMCPY3D_BATCH_OP, CUDA_MEMCPY3D_v1, CUdeviceptr,
};

/// What one side of a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyOperand {
    /// Memory of a device, or an array.
    Device,
    /// Memory of the host, or what the driver will refuse.
    Host,
    /// Whatever the driver knows the address as.
    Address(CUdeviceptr),
}

/// A structure that describes a copy.
pub(crate) trait Described: Copy {
    /// From where and to where.
    fn operands(&self) -> [CopyOperand; 2];
    /// How much.
    fn bytes(&self) -> u64;
}

fn operand(memory_type: u32, address: impl Word) -> CopyOperand {
    match memory_type {
        CU_MEMORYTYPE_DEVICE | CU_MEMORYTYPE_ARRAY => CopyOperand::Device,
        CU_MEMORYTYPE_UNIFIED => CopyOperand::Address(address.to_u64()),
        _ => CopyOperand::Host,
    }
}

fn product(sides: [impl Word; 3]) -> u64 {
    sides.into_iter().fold(1, |product, side| product.saturating_mul(side.to_u64()))
}

impl Described for CUDA_MEMCPY2D {
    fn operands(&self) -> [CopyOperand; 2] {
        [self.src, self.dst].map(|side| operand(side.memoryType, side.device))
    }

    fn bytes(&self) -> u64 {
        product([self.WidthInBytes, self.Height, 1])
    }
}

impl Described for CUDA_MEMCPY2D_v1 {
    fn operands(&self) -> [CopyOperand; 2] {
        [(self.srcMemoryType, self.srcDevice), (self.dstMemoryType, self.dstDevice)]
            .map(|(memory_type, address)| operand(memory_type, address))
    }

    fn bytes(&self) -> u64 {
        product([self.WidthInBytes, self.Height, 1])
    }
}

impl Described for CUDA_MEMCPY3D {
    fn operands(&self) -> [CopyOperand; 2] {
        [self.src, self.dst].map(|side| operand(side.memoryType, side.device))
    }

    fn bytes(&self) -> u64 {
        product([self.WidthInBytes, self.Height, self.Depth])
    }
}

impl Described for CUDA_MEMCPY3D_v1 {
    fn operands(&self) -> [CopyOperand; 2] {
        [self.src, self.dst].map(|side| operand(side.memoryType, side.device))
    }

    fn bytes(&self) -> u64 {
        product([self.WidthInBytes, self.Height, self.Depth])
    }
}

impl Described for CUDA_MEMCPY3D_BATCH_OP {
    fn operands(&self) -> [CopyOperand; 2] {
        [self.src, self.dst].map(|side| match side.operandType {
            CU_MEMCPY_OPERAND_TYPE_ARRAY => CopyOperand::Device,
            CU_MEMCPY_OPERAND_TYPE_POINTER => CopyOperand::Address(side.place),
            _ => CopyOperand::Host,
        })
    }

    /// Elements of an array count as one byte: what it takes is measured.
    fn bytes(&self) -> u64 {
        product(self.extent)
    }
}
