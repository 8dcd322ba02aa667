//! arm64, after the ELF and the procedure call standard for it (AAPCS64, AAELF64).

use core::arch::asm;

/// The kinds of relocation whose slot may hold the address of another object's function: `R_AARCH64_ABS64` (data),
/// `R_AARCH64_GLOB_DAT` (GOT), `R_AARCH64_JUMP_SLOT` (PLT, one that protects branches too). Packed relocations
/// (`DT_RELR`) name no symbol.
pub(crate) const FUNCTION_RELOCATIONS: [u32; 3] = [257, 1025, 1026];

/// The body of an exported function: save the arguments, let `$before` see the first two of them, or the address to
/// which the function returns (`caller`); then return what that answered or, for null, jump to the address in place
/// `$index` of `$next` with everything as it was.
macro_rules! trigger_body {
    ($before:path, $next:path, $index:expr $(, $caller:ident)?) => {
        core::arch::naked_asm!(
            "hint #34", // `bti c`, in the form that processors without it skip
            "stp x29, x30, [sp, #-64]!",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "str x4, [sp, #48]",
            $(concat!("mov x0, x30 // ", stringify!($caller)),)?
            "bl {before}",
            "mov x17, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x2, x3, [sp, #32]",
            "ldr x4, [sp, #48]",
            "ldp x29, x30, [sp], #64",
            "cbnz x17, 2f",
            "adrp x16, {next}",
            "add x16, x16, :lo12:{next}",
            "ldr x16, [x16, #8 * {index}]",
            "br x16", // by this register a `bti c` may be reached
            "2: mov x0, x17",
            "ret",
            before = sym $before,
            next = sym $next,
            index = const $index,
        )
    };
}
pub(crate) use trigger_body;

/// How far `gpucap_own` is aligned: as the loader's blocks of threads are, and no further (`TCB_ALIGNMENT` of glibc), or no
/// program could load the library late.
pub(crate) const OWN_ALIGNED: usize = 16;

/// The calling thread's `gpucap_own`.
#[inline]
pub(crate) fn own_place<T>() -> *const T {
    let place: *const T;
    // SAFETY: reads two words that never change in a thread: the distance, which the loader has filled in, and the
    // thread's pointer, where the ABI keeps it.
    unsafe {
        asm!(
            "adrp {place}, :gottprel:gpucap_own",
            "ldr {place}, [{place}, :gottprel_lo12:gpucap_own]",
            "mrs {thread}, tpidr_el0",
            "add {place}, {place}, {thread}",
            place = out(reg) place,
            thread = out(reg) _,
            options(pure, nomem, nostack),
        );
    }
    place
}
