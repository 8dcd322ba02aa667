# shellcheck shell=bash
# The two files that are shipped, built for old machines: the library for glibc 2.17, the command without any library.
# shellcheck disable=SC2034 # whoever sources this uses them

readonly X86_64=x86_64-unknown-linux-gnu
readonly SHIPPED_LIBRARY=$TARGET/$X86_64/release/libgpucap.so
readonly SHIPPED_COMMAND=$TARGET/static/$X86_64/release/gpucap

build_shipped() {
    build_shipped_library
    RUSTFLAGS='-C target-feature=+crt-static' CARGO_TARGET_DIR=$TARGET/static \
        cargo build --locked --release --target $X86_64 -p gpucap-hook
}

build_shipped_library() {
    cargo zigbuild --locked --release --target $X86_64.2.17 -p gpucap-shim
}
