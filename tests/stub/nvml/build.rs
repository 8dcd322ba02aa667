//! Link options that make the library look like the real one.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
    // The real library is not symbolic and binds its calls to itself lazily.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,lazy");
}
