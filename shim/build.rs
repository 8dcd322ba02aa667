//! Puts the unwinder into the library, so that a plain build needs no `libgcc_s.so.1`.
//!
//! The standard library refers to an unwinder even where a panic aborts. As a library of its own it would be mapped into
//! every process of a container: three times what the shim itself costs at a process's start. Cross builds by
//! cargo-zigbuild bring an unwinder of their own; where the compiler has no `libgcc_eh.a`, the link goes as usual.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".into());
    if linker.contains("zig") {
        return;
    }
    let Ok(answer) = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output() else {
        return;
    };
    let path = String::from_utf8_lossy(&answer.stdout);
    // A compiler that has no such file answers with the bare name.
    if let Some(directory) =
        Path::new(path.trim()).parent().filter(|directory| directory.is_absolute())
    {
        println!("cargo::rustc-link-search=native={}", directory.display());
        println!("cargo::rustc-link-lib=static:+whole-archive=gcc_eh");
    }
}
