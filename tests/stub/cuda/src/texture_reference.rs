//! Texture and surface references: the form that came before the objects.
//!
//! A module has one of every name that does not start with `missing`; it lives as long as the
//! process. What a client sets is kept and told again, and no kernel here reads anything. The
//! defaults are the driver's: a float of one channel, read as elements, clamped.

use crate::arg::{In, Out};
use crate::driver::state;
use crate::export::exports;
use crate::state::Table;
use gpucap_abi::arg::Word;
use gpucap_abi::cuda::{CUarray, CUdeviceptr, CUfunction, CUmodule, CuError, CuResult};
use std::ffi::{c_char, c_void};

exports! {
    fn cuModuleGetTexRef(reference: *mut u64, module: CUmodule, name: *const c_char)
        => of_module, context, "cuModuleGetTexRef" @ 2000;
    fn cuModuleGetSurfRef(reference: *mut u64, module: CUmodule, name: *const c_char)
        => of_module, context, "cuModuleGetSurfRef" @ 3000;
    fn cuTexRefCreate(reference: *mut u64) => create, context, "cuTexRefCreate" @ 2000;
    fn cuTexRefDestroy(reference: u64) => destroy, context, "cuTexRefDestroy" @ 2000;
    fn cuParamSetTexRef(function: CUfunction, unit: i32, reference: u64)
        => use_in, context, "cuParamSetTexRef" @ 2000;
    fn cuTexRefSetArray(reference: u64, array: CUarray, flags: u32)
        => set_array, context, "cuTexRefSetArray" @ 2000;
    fn cuTexRefSetMipmappedArray(reference: u64, array: u64, flags: u32)
        => set_mipmapped, context, "cuTexRefSetMipmappedArray" @ 5000;
    fn cuSurfRefSetArray(reference: u64, array: CUarray, flags: u32)
        => set_array, context, "cuSurfRefSetArray" @ 3000;
    /// Every address is aligned as it must be.
    fn cuTexRefSetAddress(offset: *mut u32, reference: u64, address: u32, bytes: u32)
        => set_address, context, "cuTexRefSetAddress" @ 2000;
    /// Every address is aligned as it must be.
    fn cuTexRefSetAddress_v2(offset: *mut usize, reference: u64, address: CUdeviceptr,
        bytes: usize) => set_address, context, "cuTexRefSetAddress" @ 3020;
    fn cuTexRefSetAddress2D(reference: u64, form: *const c_void, address: u32, pitch: u32)
        => set_rows, context, "cuTexRefSetAddress2D" @ 2020;
    fn cuTexRefSetAddress2D_v2(reference: u64, form: *const c_void, address: CUdeviceptr,
        pitch: usize) => set_rows, context, "cuTexRefSetAddress2D" @ 3020;
    fn cuTexRefSetAddress2D_v3(reference: u64, form: *const c_void, address: CUdeviceptr,
        pitch: usize) => set_rows, context, "cuTexRefSetAddress2D" @ 4010;
    fn cuTexRefSetFormat(reference: u64, format: i32, channels: i32)
        => set_format, context, "cuTexRefSetFormat" @ 2000;
    fn cuTexRefSetAddressMode(reference: u64, dimension: i32, mode: i32)
        => set_address_mode, context, "cuTexRefSetAddressMode" @ 2000;
    fn cuTexRefSetFilterMode(reference: u64, mode: i32)
        => set_filter, context, "cuTexRefSetFilterMode" @ 2000;
    fn cuTexRefSetMipmapFilterMode(reference: u64, mode: i32)
        => set_mipmap_filter, context, "cuTexRefSetMipmapFilterMode" @ 5000;
    fn cuTexRefSetMipmapLevelBias(reference: u64, bias: f32)
        => set_bias, context, "cuTexRefSetMipmapLevelBias" @ 5000;
    fn cuTexRefSetMipmapLevelClamp(reference: u64, least: f32, most: f32)
        => set_clamp, context, "cuTexRefSetMipmapLevelClamp" @ 5000;
    fn cuTexRefSetMaxAnisotropy(reference: u64, most: u32)
        => set_anisotropy, context, "cuTexRefSetMaxAnisotropy" @ 5000;
    fn cuTexRefSetBorderColor(reference: u64, color: *mut [f32; 4])
        => set_border, context, "cuTexRefSetBorderColor" @ 8000;
    fn cuTexRefSetFlags(reference: u64, flags: u32)
        => set_flags, context, "cuTexRefSetFlags" @ 2000;
    fn cuTexRefGetArray(array: *mut u64, reference: u64)
        => array, context, "cuTexRefGetArray" @ 2000;
    fn cuTexRefGetMipmappedArray(array: *mut u64, reference: u64)
        => array, context, "cuTexRefGetMipmappedArray" @ 5000;
    fn cuSurfRefGetArray(array: *mut u64, reference: u64)
        => array, context, "cuSurfRefGetArray" @ 3000;
    fn cuTexRefGetAddress(address: *mut u32, reference: u64)
        => address, context, "cuTexRefGetAddress" @ 2000;
    fn cuTexRefGetAddress_v2(address: *mut CUdeviceptr, reference: u64)
        => address, context, "cuTexRefGetAddress" @ 3020;
    fn cuTexRefGetFormat(format: *mut i32, channels: *mut i32, reference: u64)
        => format, context, "cuTexRefGetFormat" @ 2000;
    fn cuTexRefGetAddressMode(mode: *mut i32, reference: u64, dimension: i32)
        => address_mode, context, "cuTexRefGetAddressMode" @ 2000;
    fn cuTexRefGetFilterMode(mode: *mut i32, reference: u64)
        => filter, context, "cuTexRefGetFilterMode" @ 2000;
    fn cuTexRefGetMipmapFilterMode(mode: *mut i32, reference: u64)
        => mipmap_filter, context, "cuTexRefGetMipmapFilterMode" @ 5000;
    fn cuTexRefGetMipmapLevelBias(bias: *mut f32, reference: u64)
        => bias, context, "cuTexRefGetMipmapLevelBias" @ 5000;
    fn cuTexRefGetMipmapLevelClamp(least: *mut f32, most: *mut f32, reference: u64)
        => clamp, context, "cuTexRefGetMipmapLevelClamp" @ 5000;
    fn cuTexRefGetMaxAnisotropy(most: *mut i32, reference: u64)
        => anisotropy, context, "cuTexRefGetMaxAnisotropy" @ 5000;
    fn cuTexRefGetBorderColor(color: *mut [f32; 4], reference: u64)
        => border, context, "cuTexRefGetBorderColor" @ 8000;
    fn cuTexRefGetFlags(flags: *mut u32, reference: u64)
        => flags, context, "cuTexRefGetFlags" @ 2000;
}

/// A reference, as it was set.
#[derive(Clone)]
pub(crate) struct Reference {
    /// The array or mipmapped array it is bound to; 0 is none.
    array: u64,
    address: u64,
    format: (i32, i32),
    modes: [i32; 3],
    filters: [i32; 2],
    bias: f32,
    clamp: (f32, f32),
    anisotropy: u32,
    border: [f32; 4],
    flags: u32,
}

impl Default for Reference {
    fn default() -> Self {
        Self {
            array: 0,
            address: 0,
            format: (FLOAT, 1),
            modes: [CLAMP; 3],
            filters: [0; 2],
            bias: 0.0,
            clamp: (0.0, 0.0),
            anisotropy: 0,
            border: [0.0; 4],
            flags: 0,
        }
    }
}

/// The references of the process.
pub(crate) type References = Table<Reference>;

/// `CU_AD_FORMAT_FLOAT`
const FLOAT: i32 = 0x20;
/// `CU_TR_ADDRESS_MODE_CLAMP`
const CLAMP: i32 = 1;

fn of_module(reference: Out<u64>, module: CUmodule, name: In<c_char>) -> CuResult {
    reference.required()?;
    let name = name.text()?;
    let mut state = state()?;
    state.code.modules.get(module.address()).ok_or(CuError::INVALID_HANDLE)?;
    if name.starts_with("missing") {
        return Err(CuError::NOT_FOUND);
    }
    reference.put(state.references.add(Reference::default()))
}

fn create(reference: Out<u64>) -> CuResult {
    reference.required()?;
    reference.put(state()?.references.add(Reference::default()))
}

fn destroy(reference: u64) -> CuResult {
    state()?.references.remove(reference).map(drop).ok_or(CuError::INVALID_VALUE)
}

fn change(reference: u64, f: impl FnOnce(&mut Reference)) -> CuResult {
    state()?.references.get_mut(reference).map(f).ok_or(CuError::INVALID_VALUE)
}

fn of<T>(reference: u64, f: impl FnOnce(&Reference) -> T) -> Result<T, CuError> {
    state()?.references.get(reference).map(f).ok_or(CuError::INVALID_VALUE)
}

fn use_in(function: CUfunction, _unit: i32, reference: u64) -> CuResult {
    crate::module::of(function, |_| ())?;
    of(reference, |_| ())
}

fn set_array(reference: u64, array: CUarray, flags: u32) -> CuResult {
    set_mipmapped(reference, array.address(), flags)
}

fn set_mipmapped(reference: u64, array: u64, _flags: u32) -> CuResult {
    change(reference, |found| found.array = array)
}

fn set_address<A: Word, S: Word + Copy>(
    offset: Out<S>,
    reference: u64,
    address: A,
    _bytes: S,
) -> CuResult {
    offset.put_if_asked(S::saturating_from(0));
    change(reference, |found| found.address = address.to_u64())
}

fn set_rows<A: Word, S: Word>(reference: u64, form: In<c_void>, address: A, _pitch: S) -> CuResult {
    if form.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    change(reference, |found| found.address = address.to_u64())
}

fn set_format(reference: u64, format: i32, channels: i32) -> CuResult {
    change(reference, |found| found.format = (format, channels))
}

/// One of the three dimensions.
fn dimension(number: i32) -> Result<usize, CuError> {
    usize::try_from(number).ok().filter(|at| *at < 3).ok_or(CuError::INVALID_VALUE)
}

fn set_address_mode(reference: u64, number: i32, mode: i32) -> CuResult {
    let at = dimension(number)?;
    change(reference, |found| found.modes[at] = mode)
}

fn set_filter(reference: u64, mode: i32) -> CuResult {
    change(reference, |found| found.filters[0] = mode)
}

fn set_mipmap_filter(reference: u64, mode: i32) -> CuResult {
    change(reference, |found| found.filters[1] = mode)
}

fn set_bias(reference: u64, bias: f32) -> CuResult {
    change(reference, |found| found.bias = bias)
}

fn set_clamp(reference: u64, least: f32, most: f32) -> CuResult {
    change(reference, |found| found.clamp = (least, most))
}

fn set_anisotropy(reference: u64, most: u32) -> CuResult {
    change(reference, |found| found.anisotropy = most)
}

fn set_border(reference: u64, color: Out<[f32; 4]>) -> CuResult {
    let color = color.get()?;
    change(reference, |found| found.border = color)
}

fn set_flags(reference: u64, flags: u32) -> CuResult {
    change(reference, |found| found.flags = flags)
}

/// INVALID_VALUE if it is bound to none.
fn array(array: Out<u64>, reference: u64) -> CuResult {
    let bound = of(reference, |found| found.array)?;
    if bound == 0 { Err(CuError::INVALID_VALUE) } else { array.put(bound) }
}

/// INVALID_VALUE if it is bound to none.
fn address<A: Word + Copy>(address: Out<A>, reference: u64) -> CuResult {
    let bound = of(reference, |found| found.address)?;
    if bound == 0 { Err(CuError::INVALID_VALUE) } else { address.put_word(bound) }
}

fn format(format: Out<i32>, channels: Out<i32>, reference: u64) -> CuResult {
    let found = of(reference, |found| found.format)?;
    format.put_if_asked(found.0);
    channels.put_if_asked(found.1);
    Ok(())
}

fn address_mode(mode: Out<i32>, reference: u64, number: i32) -> CuResult {
    let at = dimension(number)?;
    mode.put(of(reference, |found| found.modes[at])?)
}

fn filter(mode: Out<i32>, reference: u64) -> CuResult {
    mode.put(of(reference, |found| found.filters[0])?)
}

fn mipmap_filter(mode: Out<i32>, reference: u64) -> CuResult {
    mode.put(of(reference, |found| found.filters[1])?)
}

fn bias(bias: Out<f32>, reference: u64) -> CuResult {
    bias.put(of(reference, |found| found.bias)?)
}

fn clamp(least: Out<f32>, most: Out<f32>, reference: u64) -> CuResult {
    let found = of(reference, |found| found.clamp)?;
    least.put(found.0)?;
    most.put(found.1)
}

fn anisotropy(most: Out<i32>, reference: u64) -> CuResult {
    most.put(i32::try_from(of(reference, |found| found.anisotropy)?).unwrap_or(i32::MAX))
}

fn border(color: Out<[f32; 4]>, reference: u64) -> CuResult {
    color.put(of(reference, |found| found.border)?)
}

fn flags(flags: Out<u32>, reference: u64) -> CuResult {
    flags.put(of(reference, |found| found.flags)?)
}
