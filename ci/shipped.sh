# shellcheck shell=bash
# The files that are shipped, built for old machines: the library, and the program that asks the driver, for glibc
# 2.17; the command and the DRA driver without any library.
#
# All are linked by zig, and hold no path of the machine that built them: one commit makes the same bytes in any
# folder. The C library in both is musl's, which may be linked into a program of any licence; glibc's may not without
# more. Lines of the sources (debug information) would make the library six times as long, and they are not read there.
# shellcheck disable=SC2034 # used by the script that sources this

readonly GNU=x86_64-unknown-linux-gnu MUSL=x86_64-unknown-linux-musl
readonly SHIPPED_LIBRARY=$TARGET/$GNU/release/libgpucap.so
readonly SHIPPED_COMMAND=$TARGET/$MUSL/release/gpucap
readonly SHIPPED_DRA=$TARGET/$MUSL/release/gpucap-dra
readonly SHIPPED_DRIVER=$TARGET/$GNU/release/gpucap-driver
# The stub driver, for the tests that run in older systems.
readonly SHIPPED_STUB=$TARGET/$GNU/release

build_shipped() {
    build_shipped_library
    build_shipped_command
    build_shipped_dra
}

build_shipped_library() {
    shipped_build $GNU.2.17 -p gpucap-shim -p gpucap-driver
}

build_shipped_command() {
    shipped_build $MUSL -p gpucap-hook
}

build_shipped_dra() {
    shipped_build $MUSL -p gpucap-dra
}

build_shipped_stub() {
    shipped_build $GNU.2.17 -p gpucap-stub-cuda -p gpucap-stub-nvml
}

shipped_build() {
    local triple=$1 home=${CARGO_HOME:-${HOME:-/root}/.cargo}
    shift
    # Parted by a sign that no path has.
    CARGO_PROFILE_RELEASE_STRIP=debuginfo \
        CARGO_ENCODED_RUSTFLAGS=--remap-path-prefix=$PWD=.$'\x1f'--remap-path-prefix=$home=cargo \
        cargo zigbuild --locked --release --target "$triple" "$@"
}
