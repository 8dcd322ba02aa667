//! x86-64, after its System V ABI.

use core::arch::asm;

/// The kinds of relocation whose slot may hold the address of another object's function: `R_X86_64_64` (data),
/// `R_X86_64_GLOB_DAT` (GOT), `R_X86_64_JUMP_SLOT` (PLT). Packed relocations (`DT_RELR`) name no symbol.
pub(crate) const FUNCTION_RELOCATIONS: [u32; 3] = [1, 6, 7];

/// The body of an exported function: save the arguments, let `$before` see the first two of them, or the address to
/// which the function returns (`caller`); then return what that answered or, for null, jump to the address in place
/// `$index` of `$next` with everything as it was.
macro_rules! trigger_body {
    ($before:path, $next:path, $index:expr $(, $caller:ident)?) => {
        core::arch::naked_asm!(
            "endbr64",
            // Five words bring the stack to the alignment that a call needs.
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            $(concat!("mov rdi, [rsp + 40] # ", stringify!($caller)),)?
            "call {before}",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "test rax, rax",
            "jnz 2f",
            "lea rax, [rip + {next}]",
            "jmp [rax + 8 * {index}]",
            "2: ret",
            before = sym $before,
            next = sym $next,
            index = const $index,
        )
    };
}
pub(crate) use trigger_body;

/// How far `gpucap_own` is aligned: to a line of the cache, which the loader's blocks of threads are, too.
pub(crate) const OWN_ALIGNED: usize = 64;

/// The calling thread's `gpucap_own`.
#[inline]
pub(crate) fn own_place<T>() -> *const T {
    let place: *const T;
    // SAFETY: reads two words that never change in a thread: the distance, which the loader has filled in, and the
    // thread's pointer, where the ABI keeps it.
    unsafe {
        asm!(
            "mov {place}, qword ptr [rip + gpucap_own@GOTTPOFF]",
            "add {place}, qword ptr fs:[0]",
            place = out(reg) place,
            options(pure, nomem, nostack),
        );
    }
    place
}
