#!/bin/sh
# Takes away what install.sh put on a machine.
#
#   [DESTDIR=...] [PREFIX=/opt/gpucap] ./uninstall.sh
#
# The engines come first (`gpucap configure ENGINE --undo`, then restart them): one that names a command that is
# not there starts no container. While one of the files below names it, nothing is taken away. What else lies in the
# prefix belongs to others, and stays.
set -eu
case "$# ${1-}" in
    '0 ') ;;
    '1 --help' | '1 -h')
        echo 'Usage: [DESTDIR=DIRECTORY] [PREFIX=/opt/gpucap] ./uninstall.sh'
        echo 'Removes what install.sh put into PREFIX (below DESTDIR). It takes no arguments.'
        exit 0
        ;;
    *)
        echo 'uninstall.sh: it takes no arguments, only DESTDIR and PREFIX from the environment; nothing was changed' >&2
        exit 2
        ;;
esac
prefix=${DESTDIR:-}${PREFIX:-/opt/gpucap}

for entry in podman:/usr/share/containers/oci/hooks.d/gpucap.json containerd:/etc/gpucap/base-spec.json \
    docker:/etc/docker/daemon.json; do
    file=${DESTDIR:-}${entry#*:}
    if grep -qsF "\"${PREFIX:-/opt/gpucap}/" "$file"; then
        echo "$file still names it: gpucap configure ${entry%%:*} --undo" >&2
        exit 1
    fi
done

for map in /proc/[0-9]*/maps; do
    # `gpucap run`; a container has the file itself.
    if grep -qs '/versions/[^/]*/lib/libgpucap\.so' "$map"; then
        process=${map#/proc/}
        echo "process ${process%/maps} has the library loaded: what it starts from now on is not limited" >&2
    fi
done

# The link first: no process begins to use what is about to be removed.
rm -f "$prefix/current" "$prefix/current.new"
rm -rf "$prefix/versions"
[ ! -d "$prefix" ] || rmdir "$prefix" 2>/dev/null || echo "$prefix stays"
echo "gpucap is gone from $prefix"
