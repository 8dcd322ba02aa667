# shellcheck shell=bash
# Debian packages for tests and builds, fetched and unpacked beside the machine's own: for ci/arm64, clients, drivers,
# engines, systems.
#
# apt runs with configuration, lists and cache of its own, so what the machine has installed and configured stays as
# it is. The mirror and the proxy are the machine's. Who sources this says `say` and has set `root` and `cache`.

# Writes the configuration and the list of sources to the directory, and fetches the package lists:
#
#   apt_prepare DIRECTORY COMPONENT ARCHITECTURES SUITE...
#
# ARCHITECTURES, as in amd64,arm64, are those whose packages may be asked for: of the first by name alone, of others as
# NAME:ARCHITECTURE. A suite that cannot be had must not cost the others: what is missing shows when a package is asked
# for.
apt_prepare() {
    local uri suite key=/usr/share/keyrings/debian-archive-keyring.gpg signed='' component=$2 architectures=$3
    apt=$1
    shift 3
    mkdir -p "$apt"/lists/partial "$apt"/cache/archives/partial "$apt"/debs
    : >"$apt/status"
    {
        apt-config dump | grep -E '^Acquire::(http|https|ftp|Retries|Check-)' || true
        cat <<CONF
Dir::Etc::Main "/dev/null";
Dir::Etc::Parts "/dev/null";
Dir::Etc::SourceList "$apt/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::State::Lists "$apt/lists";
Dir::Cache "$apt/cache";
Dir::Log "$apt";
APT::Architecture "${architectures%%,*}";
APT::Architectures { "${architectures//,/\";\"}"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
CONF
    } >"$apt/conf"
    # shellcheck disable=SC2016 # apt expands it
    uri=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -m1 -E '/debian/?$' || true)
    [[ ! -e $key ]] || signed=" signed-by=$key"
    for suite; do
        printf 'deb [arch=%s%s] %s %s %s\n' "$architectures" "$signed" "${uri:-http://deb.debian.org/debian}" "$suite" "$component"
    done >"$apt/sources.list"
    private_apt update 2>"$apt/update.err" || say "package lists incomplete: $(tail -n1 "$apt/update.err")"
}

private_apt() {
    APT_CONFIG=$apt/conf apt-get -qq "$@"
}

# Unpacks a package, without what it depends on: apt_unpack SUITE PACKAGE TREE
apt_unpack() {
    (cd "$apt/debs" && private_apt download "$2/$1") 2>"$apt/fetch.err" || return
    dpkg -x "$apt/debs/${2%:*}"_*.deb "$3"
    rm -f "$apt/debs/${2%:*}"_*.deb
}

# Fetches packages with all that they depend on, for `apt_unpack_fetched`: apt_fetch SUITE PACKAGE...
apt_fetch() {
    private_apt --yes --download-only --target-release "$1" install "${@:2}" >"$apt/fetch.log" 2>"$apt/fetch.err"
}

# Unpacks all that was fetched since: apt_unpack_fetched TREE
apt_unpack_fetched() {
    local package
    for package in "$apt"/cache/archives/*.deb; do
        [[ ! -e $package ]] || dpkg -x "$package" "$1"
    done
    rm -f "$apt"/cache/archives/*.deb
}

# Why the last package could not be had.
apt_why() {
    tail -n1 "$apt/fetch.err"
}
