//! Code: modules and their functions.
//!
//! An image is not looked at, but null is refused. Every name is a function unless it starts with
//! `missing`. Its duration comes from the end of its name (`spin_40ms`, `k_10us`, `k_500ns`);
//! `spin_ns` lasts as many nanoseconds as its first parameter says; other names last
//! `STUB_GPU_KERNEL_NS`. A module belongs to a context and costs `STUB_GPU_MODULE_MEM` when it is
//! loaded. A function costs `STUB_GPU_FUNCTION_MEM` when it is first looked up, loaded or launched,
//! unless `CUDA_MODULE_LOADING` says `EAGER`: then it is part of the module.

use crate::arg::{In, Out};
use crate::context::current;
use crate::driver::state;
use crate::export::exports;
use crate::memory::{Kind, charge, refund};
use crate::state::{State, Table};
use gpucap_abi::cuda::{CUdeviceptr, CUfunction, CUmodule, CuError, CuResult};
use gpucap_stub_device::catalog::Unit;
use gpucap_stub_device::settings;
use std::ffi::{c_char, c_void};

exports! {
    /// The file must exist.
    fn cuModuleLoad(module: *mut CUmodule, path: *const c_char)
        => load_file, context, "cuModuleLoad" @ 2000;
    /// The image is not looked at.
    fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void)
        => load, context, "cuModuleLoadData" @ 2000;
    /// The image and the options are not looked at.
    fn cuModuleLoadDataEx(module: *mut CUmodule, image: *const c_void, count: u32,
        options: *mut i32, values: *mut *mut c_void)
        => load_with_options, context, "cuModuleLoadDataEx" @ 2010;
    /// The image is not looked at.
    fn cuModuleLoadFatBinary(module: *mut CUmodule, image: *const c_void)
        => load, context, "cuModuleLoadFatBinary" @ 2000;
    /// Ends its functions too.
    fn cuModuleUnload(module: CUmodule) => unload, context, "cuModuleUnload" @ 2000;
    /// Every name is known that does not start with `missing`.
    fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char)
        => get_function, context, "cuModuleGetFunction" @ 2000;
    /// A variable of 4 KiB, part of the module's memory.
    fn cuModuleGetGlobal(pointer: *mut u32, bytes: *mut u32, module: CUmodule, name: *const c_char)
        => get_global_v1, context, "cuModuleGetGlobal" @ 2000;
    /// A variable of 4 KiB, part of the module's memory.
    fn cuModuleGetGlobal_v2(pointer: *mut CUdeviceptr, bytes: *mut usize, module: CUmodule,
        name: *const c_char) => get_global, context, "cuModuleGetGlobal" @ 3020;
    /// 1: eager, 2: lazy.
    fn cuModuleGetLoadingMode(mode: *mut i32)
        => loading_mode, driver, "cuModuleGetLoadingMode" @ 11070;
    /// Name it was looked up by.
    fn cuFuncGetName(name: *mut *const c_char, function: CUfunction)
        => name_of, driver, "cuFuncGetName" @ 12030;
    /// Name it was looked up by.
    fn cuKernelGetName(name: *mut *const c_char, kernel: CUfunction)
        => name_of, driver, "cuKernelGetName" @ 12030;
    /// Module it was looked up in.
    fn cuFuncGetModule(module: *mut CUmodule, function: CUfunction)
        => module_of, driver, "cuFuncGetModule" @ 11000;
    /// Constants.
    fn cuFuncGetAttribute(value: *mut i32, attribute: i32, function: CUfunction)
        => attribute, context, "cuFuncGetAttribute" @ 2020;
    /// Accepted and not kept.
    fn cuFuncSetAttribute(function: CUfunction, attribute: i32, value: i32)
        => set_attribute, context, "cuFuncSetAttribute" @ 9000;
    /// Accepted and not kept.
    fn cuFuncSetCacheConfig(function: CUfunction, config: i32)
        => set_cache, context, "cuFuncSetCacheConfig" @ 3000;
    /// Loads it, if it is not.
    fn cuFuncLoad(function: CUfunction) => function_load, context, "cuFuncLoad" @ 12040;
    /// 0: not yet, 1: it is.
    fn cuFuncIsLoaded(state: *mut i32, function: CUfunction)
        => is_loaded, context, "cuFuncIsLoaded" @ 12040;
    /// As many as fit: all threads of a multiprocessor.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut i32, function: CUfunction,
        threads: i32, shared: usize)
        => occupancy, context, "cuOccupancyMaxActiveBlocksPerMultiprocessor" @ 6050;
    /// As many as fit: all threads of a multiprocessor.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks: *mut i32, function: CUfunction,
        threads: i32, shared: usize, flags: u32)
        => occupancy_with_flags, context,
        "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" @ 7000;
}

/// A module, or a library.
pub(crate) struct Module {
    /// `None` for a library, which belongs to none.
    pub(crate) context: Option<u64>,
    /// Its variables by name.
    pub(crate) globals: Vec<(String, u64)>,
}

/// A function, or a kernel of a library.
pub(crate) struct Function {
    pub(crate) module: u64,
    name: std::ffi::CString,
    pub(crate) duration: Duration,
    /// Threads of a block, for the first API's launches.
    pub(crate) block: u32,
}

/// What code takes of a card, in one context.
pub(crate) struct Piece {
    /// The module or library.
    owner: u64,
    /// The function; `None` for the module itself.
    function: Option<u64>,
    context: u64,
    unit: Unit,
    bytes: u64,
}

/// How long a function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duration {
    Fixed(u64),
    /// As long as its first parameter says.
    Parameter,
}

/// The code of the process.
#[derive(Default)]
pub(crate) struct Code {
    pub(crate) modules: Table<Module>,
    pub(crate) functions: Table<Function>,
    pieces: Vec<Piece>,
}

const GLOBAL_BYTES: u64 = 4096;
const FILE_NOT_FOUND: CuError = CuError::new(301).unwrap();

impl State {
    /// Forgets the modules of a context.
    pub(crate) fn end_modules(&mut self, context: u64) {
        let ends = |module: &Module| module.context == Some(context);
        let gone: Vec<_> =
            self.code.modules.iter().filter(|(_, m)| ends(m)).map(|(h, _)| h).collect();
        for handle in gone {
            self.unload(handle);
        }
        self.give_back(|piece| piece.context == context);
    }

    fn give_back(&mut self, condition: impl Fn(&Piece) -> bool) {
        for piece in self.code.pieces.extract_if(.., |piece| condition(piece)) {
            refund(piece.unit, piece.bytes);
        }
    }

    /// Loads a module or library into a context, or with it one of its functions; once.
    pub(crate) fn pay(
        &mut self,
        owner: u64,
        function: Option<u64>,
        (context, unit): (u64, Unit),
    ) -> CuResult {
        let same = |p: &Piece| p.owner == owner && p.function == function && p.context == context;
        if self.code.pieces.iter().any(same) {
            return Ok(());
        }
        let bytes = match function {
            None => settings().module_memory,
            Some(_) if settings().eager => 0,
            Some(_) => settings().function_memory,
        };
        charge(unit, bytes)?;
        self.code.pieces.push(Piece { owner, function, context, unit, bytes });
        Ok(())
    }

    pub(crate) fn unload(&mut self, handle: u64) {
        let Some(module) = self.code.modules.remove(handle) else { return };
        self.code.functions.drain_if(|function| function.module == handle);
        for (_, address) in &module.globals {
            self.memory.remove(*address);
        }
        self.give_back(|piece| piece.owner == handle);
    }

    /// A function of a module.
    pub(crate) fn function(&mut self, module: u64, name: &str) -> Result<u64, CuError> {
        self.code.modules.get(module).ok_or(CuError::INVALID_HANDLE)?;
        if name.is_empty() || name.starts_with("missing") {
            return Err(CuError::NOT_FOUND);
        }
        let same = |f: &Function| f.module == module && f.name.as_bytes() == name.as_bytes();
        if let Some((handle, _)) = self.code.functions.iter().find(|(_, function)| same(function)) {
            return Ok(handle);
        }
        let c_name = std::ffi::CString::new(name).map_err(|_| CuError::INVALID_VALUE)?;
        let made = Function { module, name: c_name, duration: duration(name), block: 1 };
        Ok(self.code.functions.add(made))
    }
}

/// The duration that a name asks for.
fn duration(name: &str) -> Duration {
    if name == "spin_ns" {
        return Duration::Parameter;
    }
    let units = [("ns", 1), ("us", 1_000), ("ms", 1_000_000)];
    let said = name.rsplit_once('_').and_then(|(_, end)| {
        units.iter().find_map(|(suffix, unit)| {
            end.strip_suffix(suffix)?.parse::<u64>().ok()?.checked_mul(*unit)
        })
    });
    Duration::Fixed(said.unwrap_or_else(|| settings().kernel_ns))
}

fn load_file(module: Out<CUmodule>, path: In<c_char>) -> CuResult {
    exists(path)?;
    add_module(module)
}

pub(crate) fn exists(path: In<c_char>) -> CuResult {
    if std::path::Path::new(&path.text()?).exists() { Ok(()) } else { Err(FILE_NOT_FOUND) }
}

fn load(module: Out<CUmodule>, image: In<c_void>) -> CuResult {
    if image.is_null() {
        return Err(CuError::INVALID_VALUE);
    }
    add_module(module)
}

fn load_with_options(
    module: Out<CUmodule>,
    image: In<c_void>,
    _count: u32,
    _options: Out<i32>,
    _values: Out<*mut c_void>,
) -> CuResult {
    load(module, image)
}

fn add_module(module: Out<CUmodule>) -> CuResult {
    module.required()?;
    let (context, unit) = current()?;
    let mut state = state()?;
    let made = Module { context: Some(context), globals: Vec::new() };
    let handle = state.code.modules.add(made);
    if let Err(error) = state.pay(handle, None, (context, unit)) {
        state.code.modules.remove(handle);
        return Err(error);
    }
    module.put(CUmodule(handle as *mut c_void))
}

pub(crate) fn unload(module: CUmodule) -> CuResult {
    let mut state = state()?;
    state.code.modules.get(module.address()).ok_or(CuError::INVALID_HANDLE)?;
    state.unload(module.address());
    Ok(())
}

pub(crate) fn get_function(
    function: Out<CUfunction>,
    module: CUmodule,
    name: In<c_char>,
) -> CuResult {
    function.required()?;
    let name = name.text()?;
    let found = state()?.function(module.address(), &name)?;
    load_now(found)?;
    function.put(CUfunction(found as *mut c_void))
}

/// Loads a function, and the library that it may be of, into the current context.
pub(crate) fn load_now(function: u64) -> CuResult {
    let here = current()?;
    let mut state = state()?;
    let found = state.code.functions.get(function).ok_or(CuError::INVALID_HANDLE)?;
    let owner = found.module;
    state.pay(owner, None, here)?;
    state.pay(owner, Some(function), here)
}

/// Address and size of a variable.
pub(crate) fn global(module: CUmodule, name: In<c_char>, low: bool) -> Result<u64, CuError> {
    let name = name.text()?;
    let current = current()?;
    let mut state = state()?;
    let found = state.code.modules.get(module.address()).ok_or(CuError::INVALID_HANDLE)?;
    if name.starts_with("missing") {
        return Err(CuError::NOT_FOUND);
    }
    if let Some((_, address)) = found.globals.iter().find(|(known, _)| *known == name) {
        return Ok(*address);
    }
    let address = state.memory.place(low, GLOBAL_BYTES, current, Kind::Global)?;
    if let Some(found) = state.code.modules.get_mut(module.address()) {
        found.globals.push((name, address));
    }
    Ok(address)
}

fn get_global_v1(
    pointer: Out<u32>,
    bytes: Out<u32>,
    module: CUmodule,
    name: In<c_char>,
) -> CuResult {
    let address = global(module, name, true)?;
    pointer.put_if_asked(u32::try_from(address).unwrap_or(u32::MAX));
    bytes.put_if_asked(4096);
    Ok(())
}

fn get_global(
    pointer: Out<CUdeviceptr>,
    bytes: Out<usize>,
    module: CUmodule,
    name: In<c_char>,
) -> CuResult {
    let address = global(module, name, false)?;
    pointer.put_if_asked(address);
    bytes.put_if_asked(4096);
    Ok(())
}

fn loading_mode(mode: Out<i32>) -> CuResult {
    mode.put(if settings().eager { 1 } else { 2 })
}

/// A fact about a function.
pub(crate) fn of<T>(function: CUfunction, f: impl FnOnce(&Function) -> T) -> Result<T, CuError> {
    state()?.code.functions.get(function.address()).map(f).ok_or(CuError::INVALID_HANDLE)
}

fn name_of(name: Out<*const c_char>, function: CUfunction) -> CuResult {
    name.put(of(function, |function| function.name.as_ptr())?)
}

fn module_of(module: Out<CUmodule>, function: CUfunction) -> CuResult {
    module.put(CUmodule(of(function, |function| function.module)? as *mut c_void))
}

/// Threads per block, registers and the like.
pub(crate) fn attribute(value: Out<i32>, attribute: i32, function: CUfunction) -> CuResult {
    of(function, |_| ())?;
    value.put(match attribute {
        0 => 1024,
        4 => 16,
        5 | 6 => 80,
        8 => 49152,
        1..=16 => 0,
        _ => return Err(CuError::INVALID_VALUE),
    })
}

fn set_attribute(function: CUfunction, _attribute: i32, _value: i32) -> CuResult {
    of(function, |_| ())
}

fn set_cache(function: CUfunction, _config: i32) -> CuResult {
    of(function, |_| ())
}

fn function_load(function: CUfunction) -> CuResult {
    load_now(function.address())
}

fn is_loaded(loaded: Out<i32>, function: CUfunction) -> CuResult {
    of(function, |_| ())?;
    let (context, _) = current()?;
    let state = state()?;
    let loaded_here =
        |piece: &Piece| piece.function == Some(function.address()) && piece.context == context;
    loaded.put(state.code.pieces.iter().any(loaded_here).into())
}

fn occupancy(blocks: Out<i32>, function: CUfunction, threads: i32, _shared: usize) -> CuResult {
    of(function, |_| ())?;
    if threads < 1 {
        return Err(CuError::INVALID_VALUE);
    }
    blocks.put((2048 / threads).min(32))
}

fn occupancy_with_flags(
    blocks: Out<i32>,
    function: CUfunction,
    threads: i32,
    shared: usize,
    _flags: u32,
) -> CuResult {
    occupancy(blocks, function, threads, shared)
}
