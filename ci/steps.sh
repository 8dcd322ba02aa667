# shellcheck shell=bash
# The steps of ci/run, in order. A step is one function `step_<name>() { # what holds when it passes`.
#
# It fails by a status other than 0, or by a `check` that does not hold. Its tests are the ones that its test
# binaries report, plus its checks; with neither, the step is one test.

# shellcheck source=ci/shipped.sh
source ci/shipped.sh

step_fmt() { # the sources are formatted
    cargo fmt --all --check
}

step_clippy() { # no lint warns, in any target of any crate
    cargo clippy --locked --workspace --all-targets -- -D warnings
}

step_build() { # what `gpucap demo` needs builds as it is shipped
    cargo build --locked --release
}

step_demo() { # the README's first command shows what it promises
    cargo build --locked --release
    "$TARGET/release/gpucap" demo
}

step_unit() { # each crate keeps its own promises
    cargo test --locked --workspace --exclude gpucap-tests --no-fail-fast
}

step_loom() { # ledger, bucket and what threads of the shim tell each other hold in every order of every access; each model states its bound
    CARGO_TARGET_DIR=$TARGET/loom RUSTFLAGS='--cfg loom' \
        cargo test --locked --release -p gpucap-core --lib -- ledger::models throttle::models
    CARGO_TARGET_DIR=$TARGET/loom RUSTFLAGS='--cfg loom' cargo test --locked -p gpucap-shim --lib -- orders::
}

step_layering() { # layers, unsafe code and the form of files are as CONTRIBUTING.md says
    tests layering
}

step_spelling() { # no word is misspelt, in sources and documents; ci/typos.toml has the exceptions
    need typos
    check 'no word is misspelt' typos --config ci/typos.toml --format brief
}

step_routes() { # every way a program can look a driver function up ends at the shim
    tests routes
}

step_limits() { # the limit holds to the byte, every way back refunds, and the program sees its slice
    tests limits
}

step_throttle() { # every launch pays for its time and waits its turn, and without a limit of time none is touched
    tests throttle
}

step_conformance() { # under limits that have no say, a program sees the same with the shim and without
    tests conformance
}

step_lifecycle() { # the budget is right through fork, exec, exit and death at any moment
    tests lifecycle
}

step_clients() { # programs of other people see the slice as if it were the card, and cannot take more
    tests clients
}

step_oracle() { # real drivers answer look-ups behind the shim as without it, and the stub answers as they do
    tests oracle
}

step_cli() { # run, status, explain and demo do as they say, on the stub driver
    tests cli
}

step_containers() { # under real runtimes, a container that asked for a slice has it or does not start
    tests containers
}

step_deploy() { # a release installs and leaves nothing behind, and so does it on a node; the Helm chart agrees with it
    tests deploy
}

step_dra() { # the DRA driver publishes cards, prepares claims for a kubelet of our own, and each failure has its rule
    tests dra
}

step_cluster() { # the DRA driver serves a Kubernetes: its scheduler, API server and kubelet (KUBE_BIN or PATH has them)
    tests cluster
}

step_versions() { # files of another version are understood or refused; with --full those of an earlier commit, too
    if [[ $CI_FULL ]] && build_earlier; then
        GPUCAP_EARLIER=$(realpath "$TARGET/earlier/release")
        export GPUCAP_EARLIER
        cargo test --locked -p gpucap-tests --test containers -- 'earlier '
    fi
    tests versions
}

step_coverage() { # each name of a driver that a limit would have to know is intercepted, or there is a reason
    tests coverage
}

step_manual() { # the documents' links lead somewhere, and what they show or quote is what the code says
    tests manual
}

step_book() { # the documentation builds as a book without a warning, and each link in it leads to a page and a place
    need mdbook
    local book=$PWD/$TARGET/book
    [[ $TARGET != /* ]] || book=$TARGET/book
    rm -rf "$book"
    check 'it builds without a warning' silent env MDBOOK_LOG=warn mdbook build docs --dest-dir "$book"
    GPUCAP_BOOK=$book cargo test --locked -p gpucap-tests --test manual -- 'of the built book'
}

# Runs a command; true if it ends well and says nothing.
silent() {
    local said
    if said=$("$@" 2>&1) && [[ -z $said ]]; then
        return 0
    fi
    echo "$said"
    return 1
}

step_probe() { # the questions we ask a real card run to their end on the stub
    need gcc python3
    cargo build --locked --release
    ci/gpu probe --selftest "$TARGET/release"
}

step_card() { # what a card will be asked runs on the stub, from the archive that would be carried there
    need gcc python3
    cargo build --locked --release
    ci/gpu rehearse "$TARGET/release"
}

step_bench-smoke() { # each bench runs, and what it checks of itself holds; its figures say nothing here
    need gcc
    cargo run --locked --release -p gpucap-bench -- --quick
}

step_doc() { # the documentation builds without a warning
    # Private items are documented too, so a link to one is no mistake.
    export RUSTDOCFLAGS='-D warnings -A rustdoc::private-intra-doc-links'
    local document=(cargo doc --locked --no-deps --document-private-items)
    # The library and the command are both called gpucap, and so are the directories of their pages: documented at the
    # same time, one removes what the other is writing.
    "${document[@]}" --workspace --exclude gpucap-hook
    "${document[@]}" --package gpucap-hook
}

step_deny() { # licences, sources and advisories of every crate we use
    need cargo-deny
    local deny=(cargo deny --locked --config ci/deny.toml)
    check 'licences, bans and sources' "${deny[@]}" check licenses bans sources
    # The database of advisories is renewed if there is a network; an older copy still says something.
    "${deny[@]}" fetch db || echo 'the database of advisories was not renewed'
    if compgen -G "${CARGO_HOME:-${HOME:-/root}/.cargo}/advisory-dbs/*/crates" >/dev/null; then
        check 'advisories' "${deny[@]}" --offline check advisories
    else
        skip 'advisories: their database is not here and cannot be fetched'
    fi
}

step_shellcheck() { # no warning in any shell script
    need shellcheck
    local scripts=()
    mapfile -t scripts < <(
        find . \( -name target -o -name .git -o -name .cache \) -prune -o -type f -print0 |
            xargs -0 grep -lE -m1 '^#!.*\b(ba)?sh$|^# shellcheck shell=' | sort
    )
    printf 'checking %s\n' "${scripts[@]}"
    shellcheck --external-sources "${scripts[@]}"
}

step_symbols() { # the shipped files ask little of a machine and show it nothing but our six triggers
    need readelf cargo-zigbuild zig
    build_shipped_library
    symbols_of_libraries
    have musl || { skip 'gpucap and gpucap-dra: musl is missing (ci/run --install gets it)' && return; }
    build_shipped_programs
    symbols_of_programs
}

step_shipped() { # with --full: the files built for old machines pass the same tests
    [[ $CI_FULL ]] || { skip 'the tests on the files for old machines: ci/run --full shipped' && return; }
    need cargo-zigbuild zig musl
    cargo build --locked --release
    build_shipped
    build_shipped_stub
    # Everything as built for this machine, but what ships and the stub, which has to run in older systems too.
    GPUCAP_ARTIFACTS=$(mktemp -d)
    export GPUCAP_ARTIFACTS
    trap 'rm -rf "$GPUCAP_ARTIFACTS"' EXIT
    cp "$TARGET"/release/{gpucap*,lib*.so} "$GPUCAP_ARTIFACTS"
    cp "$SHIPPED_LIBRARY" "$SHIPPED_DRIVER" "$SHIPPED_COMMAND" "$SHIPPED_DRA" "$GPUCAP_ARTIFACTS"
    # With the stub as it is built here: zig's start files lack the call of gcc's, and so of real drivers, by which the
    # shim gets them.
    tests routes
    cp "$SHIPPED_STUB"/libgpucap_stub_*.so "$GPUCAP_ARTIFACTS"
    local binaries
    mapfile -t binaries < <(sed -n '/^\[\[test\]\]/,/^path/s/^name = "\(.*\)"/\1/p' tests/Cargo.toml | grep -vxE 'layering|manual|routes')
    tests "${binaries[@]}"
}

step_arm64() { # with --full: what ships for arm64 asks as little of a machine, and passes the tests under emulation
    [[ $CI_FULL ]] || { skip 'the files for arm64: ci/run --full arm64' && return; }
    build_for_arm64 || return 0
    build_shipped
    symbols_of_libraries
    symbols_of_programs
    local failed=0
    emulated_tests '' routes limits conformance lifecycle coverage
    # zig takes the names of functions out of what ships with the lines of the sources, and these tests ask for them.
    [[ ! ${GPUCAP_ARTIFACTS-} ]] || GPUCAP_ARTIFACTS=$GPUCAP_ARTIFACTS/named emulated_tests '' oracle
    return "$failed"
}

step_arm64-pages() { # with --full: the same with pages of 16 and 64 KiB, as far as programs have to do with them
    [[ $CI_FULL ]] || { skip 'arm64 with larger pages: ci/run --full arm64-pages' && return; }
    build_for_arm64 || return 0
    build_shipped_library
    build_shipped_command
    local pages failed=0
    for pages in 16 64; do
        echo "pages of $pages KiB"
        emulated_tests "$pages" routes limits conformance lifecycle
    done
    return "$failed"
}

# Chooses arm64 for what is built; false if it cannot be built here.
build_for_arm64() {
    need readelf cargo-zigbuild zig
    has_target aarch64-unknown-linux-musl || [[ -x $TARGET/arm64/rustc ]] ||
        { skip 'the standard library for arm64 is missing (rustup target add, or ci/arm64)' && return 1; }
    ship_for aarch64
}

# Runs test binaries on what ships for arm64, with pages of 4 KiB or of PAGES KiB: emulated_tests PAGES BINARY...
# Sets `failed` of its caller.
emulated_tests() {
    local GPUCAP_ARM64_PAGES=$1 binaries=("${@:2}")
    export GPUCAP_ARM64_PAGES
    ci/arm64 run true || { skip 'no arm64 program runs here; ci/arm64 says why' && return; }
    if [[ $1 ]]; then
        check "programs find pages of $1 KiB" ci/arm64 run \
            python3 -c 'import os, sys; sys.exit(os.sysconf("SC_PAGESIZE") != int(sys.argv[1]) * 1024)' "$1"
    fi
    if [[ ! ${GPUCAP_ARTIFACTS-} ]]; then
        GPUCAP_ARTIFACTS=$(mktemp -d)
        trap 'rm -rf "$GPUCAP_ARTIFACTS"' EXIT
        build_removable
        build_emulated_stub
        mkdir "$GPUCAP_ARTIFACTS/triggers"
        cp "$SHIPPED_LIBRARY" "$SHIPPED_DRIVER" "$SHIPPED_COMMAND" \
            "$TARGET/emulated/$GNU"/release/libgpucap_stub_*.so "$GPUCAP_ARTIFACTS"
        cp "$TARGET/triggers/$GNU/release/libgpucap.so" "$GPUCAP_ARTIFACTS/triggers"
        mkdir "$GPUCAP_ARTIFACTS/named"
        cp "$GPUCAP_ARTIFACTS"/{gpucap*,lib*.so} "$GPUCAP_ARTIFACTS/named"
        cp "$GPUCAP_ARTIFACTS/triggers/libgpucap.so" "$GPUCAP_ARTIFACTS/named"
        export GPUCAP_ARTIFACTS GPUCAP_TEST_MACHINE=aarch64 GPUCAP_DRIVERS=${GPUCAP_DRIVERS:-$PWD/target/drivers}/arm64
    fi
    # Built out here, by the machine's own compiler and linker.
    cargo test --locked -p gpucap-tests --no-run "${binaries[@]/#/--test=}"
    ci/arm64 run cargo test --locked -p gpucap-tests --no-fail-fast "${binaries[@]/#/--test=}" || failed=1
}

step_release() { # with --full: a commit makes one archive in any folder; it installs, is upgraded and leaves nothing
    [[ $CI_FULL ]] || { skip 'a release, made twice: ci/run --full release' && return; }
    need cargo-zigbuild zig musl python3
    local work archive
    [[ -z $(git status --porcelain --untracked-files=no) ]] || { skip 'a release is made of a commit' && return; }
    work=$(mktemp -d)
    # shellcheck disable=SC2064 # it is a local
    trap "rm -rf '$work'" EXIT
    archive=$(ci/release --output "$work/here" | tail -n 1)
    git clone --quiet . "$work/another folder"
    (cd "$work/another folder" && CARGO_TARGET_DIR=$work/target ci/release --output "$work/there")
    check 'it is the same to the byte in another folder' cmp "$archive" "$work/there/${archive##*/}"
    check 'its files name no folder of this machine' \
        none_of "$PWD" "${CARGO_HOME:-$HOME/.cargo}" <(tar -xzOf "$archive" --wildcards '*/files/*')
    GPUCAP_RELEASE=$archive tests deploy
}

# Whether none of the first words occurs in the file, which is the last.
none_of() {
    ! grep -aqF "$(printf '%s\n' "${@:1:$#-1}")" "${!#}"
}

# Containers that this commit's users may still run, by the latest release or, before there is one, by this commit.
readonly EARLIER=4b2ae23

# Builds its library and command in the target directory's `earlier`.
build_earlier() {
    local commit sources=$TARGET/earlier/sources
    commit=$(git describe --tags --abbrev=0 --match 'v*' 'HEAD^' 2>/dev/null || echo $EARLIER)
    git cat-file -e "$commit^{commit}" 2>/dev/null || { skip "commit $commit is not here" && return 1; }
    rm -rf "$sources"
    mkdir -p "$sources"
    git archive "$commit" | tar -x -C "$sources"
    (cd "$sources" && CARGO_TARGET_DIR=$(realpath ..) cargo build --locked --release -p gpucap-shim -p gpucap-hook)
}

# Runs test binaries; they have the libraries that they load built as they are shipped.
tests() {
    cargo test --locked -p gpucap-tests --no-fail-fast "${@/#/--test=}"
}

# Prints the lines of the second text that the first lacks; true if there are none.
none_beyond() {
    local beyond
    beyond=$(comm -13 <(sort -u <<<"$1") <(sort -u <<<"$2") | sed '/^$/d')
    [[ -z $beyond ]] || { echo "$beyond" && return 1; }
}

symbols_of_libraries() {
    symbols_of_library "$SHIPPED_LIBRARY"
    check 'gpucap-driver asks for nothing newer than glibc 2.17' is_for_old_glibc "$SHIPPED_DRIVER"
}

symbols_of_programs() {
    symbols_of_program "$SHIPPED_COMMAND"
    symbols_of_program "$SHIPPED_DRA"
    # What each node pulls for it; a new dependency shows here.
    check 'gpucap-dra has at most 10 MiB' test "$(stat -c %s "$SHIPPED_DRA")" -le $((10 << 20))
}

symbols_of_library() {
    local allowed='__gmon_start__ dlmopen dlopen dlsym dlvsym sched_get_priority_max' exported needed
    allowed=${allowed// /$'\n'}
    exported=$(readelf -W --dyn-syms "$1" | awk '$5 != "LOCAL" && $7 != "UND" && NR > 3 { print $8 }' |
        sed 's/@.*//')
    needed=$(readelf -W -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    check 'exports all our triggers' none_beyond "$exported" "$allowed"
    check 'exports nothing else' none_beyond "$allowed" "$exported"
    # An old glibc has these in files of their own.
    check 'needs libc and the loader alone' none_beyond \
        $'libc.so.6\nld-linux-x86-64.so.2\nld-linux-aarch64.so.1\nlibpthread.so.0\nlibdl.so.2\nlibm.so.6' "$needed"
    check 'asks for nothing newer than glibc 2.17' is_for_old_glibc "$1"
    check 'has no executable stack' grep -qE 'GNU_STACK.* RW ' <(readelf -W -l "$1")
    check 'needs at most 768 bytes of the static memory of threads' test "$(static_tls "$1")" -le 768
}

# How much of it a library needs: of the 1664 bytes that a glibc sets aside for those that are loaded late.
static_tls() {
    printf '%d' "$(readelf -W -l "$1" | awk '$1 == "TLS" { print $6 }')"
}

is_for_old_glibc() {
    local newest
    newest=$(readelf -W -V "$1" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
    echo "newest version asked for: $newest"
    test "$(printf '%s\nGLIBC_2.17\n' "$newest" | sort -V | tail -n 1)" = GLIBC_2.17
}

symbols_of_program() {
    check "${1##*/} has no interpreter" test -z "$(readelf -W -l "$1" | grep -w INTERP)"
    check "${1##*/} needs no library" test -z "$(readelf -W -d "$1" | grep -F '(NEEDED)')"
}
