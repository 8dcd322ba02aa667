//! Modules and libraries: code and variables on the card, charged by measurement.
//!
//! No argument says what they take, so the call is [measured](crate::budget::growth), and the measurement is believed up to what
//! the image can take ([`image`]). The charge is made after the fact: if it does not fit, the code is unloaded again
//! before the application has seen it. Drivers load lazily: functions of a module when they are first looked up, a
//! library when it is first used in a context. Such look-ups are measured too. They are not refused, since nothing
//! could be unloaded: what does not fit under the limit any more fills it.

use super::measure::Measure;
use super::{current_context, current_device};
use crate::budget::record::Record;
use crate::call::Call;
use crate::driver::{self, Next};
use crate::holdings::code::NO_OWNER;
use crate::launch;
use crate::session::Session;
use core::ffi::{c_char, c_int, c_void};
use gpucap_abi::arg::{In, Out, Word, Written};
use gpucap_abi::cuda::{CUfunction, CUkernel, CUlibrary, CUmodule, CuError, CuResult};
use gpucap_core::image;

/// `cuModuleLoad`: of a file nothing is known.
pub(crate) fn load_file(
    call: &Call,
    next: impl Next<CuError>,
    module: Out<CUmodule>,
    _path: In<c_char>,
) -> CuResult {
    load(call, next, module, |_| image::UNKNOWN)
}

/// `cuModuleLoadData`, `cuModuleLoadFatBinary`.
pub(crate) fn load_image(
    call: &Call,
    next: impl Next<CuError>,
    module: Out<CUmodule>,
    image: In<c_void>,
) -> CuResult {
    load(call, next, module, |written| most_bytes(image, written))
}

/// `cuModuleLoadDataEx`.
pub(crate) fn load_image_with_options(
    call: &Call,
    next: impl Next<CuError>,
    module: Out<CUmodule>,
    image: In<c_void>,
    _count: u32,
    _options: Out<c_int>,
    _values: Out<*mut c_void>,
) -> CuResult {
    load_image(call, next, module, image)
}

/// `cuLibraryLoadData`: eager loading takes memory now, in the current context as in every other one, of which only
/// the current one is measured.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn load_library(
    call: &Call,
    next: impl Next<CuError>,
    library: Out<CUlibrary>,
    image: In<c_void>,
    _jit_options: Out<c_int>,
    _jit_values: Out<*mut c_void>,
    _jit_count: u32,
    _options: Out<c_int>,
    _values: Out<*mut c_void>,
    _count: u32,
) -> CuResult {
    load(call, next, library, |written| most_bytes(image, written))
}

/// `cuLibraryLoadFromFile`.
#[expect(clippy::too_many_arguments, reason = "the driver's function has these")]
pub(crate) fn load_library_file(
    call: &Call,
    next: impl Next<CuError>,
    library: Out<CUlibrary>,
    _path: In<c_char>,
    _jit_options: Out<c_int>,
    _jit_values: Out<*mut c_void>,
    _jit_count: u32,
    _options: Out<c_int>,
    _values: Out<*mut c_void>,
    _count: u32,
) -> CuResult {
    load(call, next, library, |_| image::UNKNOWN)
}

/// `cuModuleUnload`.
pub(crate) fn unload(call: &Call, next: impl Next<CuError>, module: CUmodule) -> CuResult {
    end(call, next, module.address())
}

/// `cuLibraryUnload`: from all contexts.
pub(crate) fn unload_library(
    call: &Call,
    next: impl Next<CuError>,
    library: CUlibrary,
) -> CuResult {
    end(call, next, library.address())
}

/// `cuModuleGetFunction`.
pub(crate) fn function_of_module(
    call: &Call,
    next: impl Next<CuError>,
    _function: Out<CUfunction>,
    module: CUmodule,
    _name: In<c_char>,
) -> CuResult {
    look_up(call, next, || module.address())
}

/// `cuKernelGetFunction`.
pub(crate) fn function_of_kernel(
    call: &Call,
    next: impl Next<CuError>,
    _function: Out<CUfunction>,
    kernel: CUkernel,
) -> CuResult {
    look_up(call, next, || {
        driver::cuda::code::library_of(call.driver, kernel).map_or(NO_OWNER, CUlibrary::address)
    })
}

/// `cuLibraryGetModule`.
pub(crate) fn module_of_library(
    call: &Call,
    next: impl Next<CuError>,
    _module: Out<CUmodule>,
    library: CUlibrary,
) -> CuResult {
    look_up(call, next, || library.address())
}

/// `cuLibraryGetGlobal`, `cuLibraryGetManaged`.
pub(crate) fn variable_of_library<P: Word>(
    call: &Call,
    next: impl Next<CuError>,
    _pointer: Out<P>,
    _bytes: Out<usize>,
    library: CUlibrary,
    _name: In<c_char>,
) -> CuResult {
    look_up(call, next, || library.address())
}

/// `cuFuncLoad`.
pub(crate) fn load_function(
    call: &Call,
    next: impl Next<CuError>,
    function: CUfunction,
) -> CuResult {
    look_up(call, next, || {
        driver::cuda::code::module_of(call.driver, function).map_or(NO_OWNER, CUmodule::address)
    })
}

/// What the driver gives out for loaded code.
trait Handle: Copy {
    fn number(self) -> u64;
    /// `None`: the driver has not done it.
    fn unload(self, call: &Call) -> Option<()>;
}

impl Handle for CUmodule {
    fn number(self) -> u64 {
        self.address()
    }
    fn unload(self, call: &Call) -> Option<()> {
        driver::cuda::code::unload(call.driver, self)
    }
}

impl Handle for CUlibrary {
    fn number(self) -> u64 {
        self.address()
    }
    fn unload(self, call: &Call) -> Option<()> {
        driver::cuda::code::unload_library(call.driver, self)
    }
}

/// Loads code. `most` says how much of a measurement is believed, once the driver has accepted the image.
fn load<H: Handle>(
    call: &Call,
    next: impl Next<CuError>,
    code: Out<H>,
    most: impl FnOnce(&Written) -> u64,
) -> CuResult {
    let session = call.session()?;
    let here = current_device(call)?; // a library can be loaded where there is no context
    let context = here.map(|_| current_context(call)).transpose()?.unwrap_or_default();
    let measure = here.map(|(_, device)| Measure::begin(call, session, device)).transpose()?;
    let measure = measure.flatten();
    let written = next()?;
    let Some(code) = code.get(&written) else { return Ok(()) };
    let most = most(&written);
    let charge = measure.as_ref().map(|measure| measure.charge_or_refuse(most)).transpose();
    let refused = charge.as_ref().err().copied();
    if refused.is_some() && code.unload(call).is_some() {
        return refused.map_or(Ok(()), Err);
    }
    // It is there: what was refused, too, if the driver does not unload it.
    let fits = || measure.as_ref().and_then(|measure| measure.charge_what_fits(most));
    let charge = charge.unwrap_or_else(|_| fits());
    let stale = session.code.loaded(code.number(), most);
    stale.into_iter().for_each(|record| session.budget.refund(record));
    if let Some(charge) = charge {
        session.code.add(code.number(), charge.at_home_in(context).commit());
    }
    refused.map_or(Ok(()), Err)
}

/// Looks something up that the driver may load for it. Whose it is, is asked of the driver only if that took memory.
fn look_up(call: &Call, next: impl Next<CuError>, owner: impl Fn() -> u64) -> CuResult {
    if !driver::cuda::code::is_lazy(call.driver) {
        return next().map(drop);
    }
    let Some((session, device)) = current_device(call)? else { return next().map(drop) };
    let context = current_context(call)?;
    let measure = Measure::begin(call, session, device)?;
    next()?;
    let Some(measure) = measure.filter(Measure::has_grown) else { return Ok(()) };
    let owner = owner();
    if let Some(charge) = measure.charge_what_fits(session.code.room(owner, context)) {
        session.code.add(owner, charge.at_home_in(context).commit());
    }
    Ok(())
}

/// Ends a module or library, and what is charged for it.
fn end(_call: &Call, next: impl Next<CuError>, code: u64) -> CuResult {
    let Some(session) = Session::begun() else { return next().map(drop) };
    launch::code_ends(session);
    let Some(owner) = session.code.take(code) else { return next().map(drop) };
    match next() {
        Ok(_) => {
            owner.pieces().into_iter().for_each(|record: Record| session.budget.refund(record));
            Ok(())
        }
        Err(error) => {
            session.code.put_back(code, owner);
            Err(error)
        }
    }
}

fn most_bytes(image: In<c_void>, written: &Written) -> u64 {
    image::most_bytes(image.address(), &|address| image.word(written, address))
}
