# shellcheck shell=bash
# The files that are shipped, built for old machines: the library, and the program that asks the driver, for glibc
# 2.17; the command and the DRA driver without any library. For x86-64 and for arm64.
#
# All are linked by zig, and hold no path of the machine that built them: one commit makes the same bytes in any
# folder. The C library in both is musl's, which may be linked into a program of any licence; glibc's may not without
# more. Lines of the sources (debug information) would make the library six times as long, and they are not read there.
# shellcheck disable=SC2034 # used by the script that sources this

# Chooses the processor for which all below builds: ship_for x86_64|aarch64
ship_for() {
    GNU=$1-unknown-linux-gnu MUSL=$1-unknown-linux-musl
    SHIPPED_LIBRARY=$TARGET/$GNU/release/libgpucap.so
    SHIPPED_COMMAND=$TARGET/$MUSL/release/gpucap
    SHIPPED_DRA=$TARGET/$MUSL/release/gpucap-dra
    SHIPPED_DRIVER=$TARGET/$GNU/release/gpucap-driver
    # The stub driver, for the tests that run in older systems or under emulation.
    SHIPPED_STUB=$TARGET/$GNU/release
}
ship_for x86_64

build_shipped() {
    build_shipped_library
    build_shipped_programs
}

build_shipped_library() {
    shipped_build "$GNU.2.17" -p gpucap-shim -p gpucap-driver
}

build_shipped_command() {
    shipped_build "$MUSL" -p gpucap-hook
}

# Both at once: what they share is compiled once, and each is linked on a processor of its own.
build_shipped_programs() {
    shipped_build "$MUSL" -p gpucap-hook -p gpucap-dra
}

build_shipped_stub() {
    shipped_build "$GNU.2.17" -p gpucap-stub-cuda -p gpucap-stub-nvml
}

# The library with triggers that can be taken out and with the names of its functions, for tests.
build_removable() {
    TARGET=$TARGET/triggers SHIPPED_STRIP=none SHIPPED_FLAGS='--cfg=gpucap_test_triggers' shipped_build "$GNU.2.17" -p gpucap-shim
}

# The stub driver for arm64, linked by GNU tools as real drivers are: zig's start files lack a call by which the shim
# gets to know them. Its code is more than 64 KiB behind its symbol table, as theirs is: no page holds both. In the
# target directory's `emulated`.
build_emulated_stub() {
    local compiler=() std=() flags=()
    has_target "$GNU" || debian_compiler "$GNU"
    env CARGO_TARGET_DIR="$TARGET/emulated" CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Clink-arg=-Wl,--section-start=.init=0x30000 \
        "${compiler[@]}" ci/arm64 run \
        cargo build --locked --release --target "$GNU" -p gpucap-stub-cuda -p gpucap-stub-nvml
}

shipped_build() {
    local triple=$1 home=${CARGO_HOME:-${HOME:-/root}/.cargo} flags compiler=() std=()
    shift
    flags=(--remap-path-prefix="$PWD=." --remap-path-prefix="$home=cargo")
    [[ ! ${SHIPPED_FLAGS-} ]] || flags+=("$SHIPPED_FLAGS")
    has_target "${triple%.2.17}" || debian_compiler "$triple"
    # Parted by a sign that no path has.
    env CARGO_TARGET_DIR="$TARGET" CARGO_PROFILE_RELEASE_STRIP="${SHIPPED_STRIP:-debuginfo}" \
        CARGO_ENCODED_RUSTFLAGS="$(IFS=$'\x1f' && echo "${flags[*]}")" "${compiler[@]}" \
        cargo zigbuild --locked --release --target "$triple" "${std[@]}" "$@"
}

# Whether the compiler of this machine has the standard library for a target.
has_target() {
    [[ -d $(rustc --print sysroot)/lib/rustlib/$1 ]]
}

# Takes Debian's compiler, which has the standard library of glibc; that of musl is made from its sources. Sets what
# `shipped_build` has declared.
debian_compiler() {
    local arm64=${GPUCAP_ARM64:-$PWD/target/arm64}
    compiler=(RUSTC="$arm64/rustc")
    flags+=(--remap-path-prefix="$arm64/usr/lib/rustlib/src=/rust")
    if [[ $1 == *-musl ]]; then
        compiler+=(RUSTC_BOOTSTRAP=1)
        std=("-Zbuild-std=std,panic_abort")
        # The start files and the C library are zig's.
        flags+=(-Clink-self-contained=no)
    fi
}
