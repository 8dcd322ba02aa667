#!/bin/sh
# What the DaemonSet runs on each node: `node.sh install` or `node.sh uninstall`. Again and again is the same as once.
# More words are for `gpucap configure containerd`: `node.sh install --nri`.
#
# The node's own tools are used in its own mount namespace (`nsenter`): containerd's default specification comes from
# its own `ctr`, and only its own init can restart it. The order is the rule that keeps a node whole: files first, then
# the configuration that names them; when leaving, the configuration and a restart first, then the files. Whatever
# fails stops there, the pod fails, and the kubelet tries again.
#
#   HOST         where the node's PREFIX and ETC are mounted                       /host
#   PREFIX, ETC  where command and library lie, and the node's configuration       /opt/gpucap, /etc/gpucap
#   CONTAINERD   containerd's configuration on the node                            /etc/containerd/config.toml
#   RESTART      how containerd is restarted there; running containers go on       systemctl restart containerd
#   MEASURE      what runs a command there that may use the cards: no device is this pod's, so it cannot be one of its
#                own processes                                   systemd-run --quiet --pipe --wait --collect
#   KUBELET, CDI the directories in which the DRA driver has its files             /var/lib/kubelet, /var/run/cdi
#   SETTINGS     the node's configuration to be installed, if there is such a file /settings/config.json
set -eu
HOST=${HOST-/host}
prefix=${PREFIX:-/opt/gpucap}
etc=${ETC:-/etc/gpucap}
containerd=${CONTAINERD:-/etc/containerd/config.toml}
kubelet=${KUBELET:-/var/lib/kubelet}
cdi=${CDI:-/var/run/cdi}
restart=${RESTART:-systemctl restart containerd}
measure=${MEASURE-systemd-run --quiet --pipe --wait --collect}
settings=${SETTINGS:-/settings/config.json}
here=$(cd "$(dirname "$0")" && pwd)
# Set from before the configuration changes until containerd has read it, so that a pod that was killed between the
# two is followed by one that knows.
mark=$HOST$etc/restart-containerd
config=$etc/config.json

on_node() {
    nsenter -t 1 -m "$@"
}

# With this configuration of the node: `configure FILE [WORD]...`.
configure() {
    file=$1
    shift
    on_node "$prefix/current/bin/gpucap" configure containerd \
        --file "$containerd" --program "$prefix/current/bin/gpucap" \
        --specification "$etc/base-spec.json" --config "$file" "$@"
}

reconfigure() {
    if [ "$(configure "$config" --dry-run "$@")" != 'Nothing to change.' ]; then
        : >"$mark"
        configure "$config" "$@"
    fi
    [ ! -e "$mark" ] || {
        # Words, as in a shell.
        # shellcheck disable=SC2086
        on_node $restart
        rm -f "$mark"
    }
}

word=${1:-}
[ $# -eq 0 ] || shift
case $word in
    install)
        mkdir -p "$HOST$etc"
        DESTDIR=$HOST PREFIX=$prefix "$here/install.sh"
        if [ -e "$settings" ]; then
            # Whole or not at all: a hook may read it now, and half of it refuses every container that asks.
            cp "$settings" "$HOST$config.new"
            # One that cannot be used leaves the one before.
            configure "$config.new" --dry-run "$@" >/dev/null
            mv "$HOST$config.new" "$HOST$config"
        elif [ ! -e "$HOST$config" ]; then
            # The hook reads this one, and takes no defaults in place of a file that was named.
            echo '{}' >"$HOST$config"
        fi
        # A node without its driver yet is limited all the same, by an assumed price.
        # Words, as in a shell.
        # shellcheck disable=SC2086
        on_node $measure "$prefix/current/bin/gpucap" calibrate --if-needed --config "$config" ||
            echo "node.sh: not calibrated; run $prefix/current/bin/gpucap calibrate on the node" >&2
        reconfigure "$@"
        ;;
    uninstall)
        # Removing only the files leaves a configuration that names them.
        [ -e "$HOST$prefix/current/bin/gpucap" ] || DESTDIR=$HOST PREFIX=$prefix "$here/install.sh"
        reconfigure --undo "$@"
        DESTDIR=$HOST PREFIX=$prefix "$here/uninstall.sh"
        rm -f "$HOST$config" "$HOST$config.new"
        # What the DRA driver keeps for its next start. The words are expanded there.
        # shellcheck disable=SC2016
        on_node sh -c 'rm -rf "$1"; rm -f "$2"/gpucap-claim-*.json' sh "$kubelet/plugins/slice.gpucap.io" "$cdi"
        # Here they are mounts; there they are directories, and stay if they contain files of others.
        on_node rmdir "$prefix" "$etc" 2>/dev/null || true
        ;;
    *)
        echo "node.sh: install or uninstall" >&2
        exit 2
        ;;
esac
