//! Link options that make the library look like the real one.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    // The real libcuda binds its calls to itself when it is linked.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
