#!/bin/sh
# Takes away what install.sh put on a machine.
#
#   [DESTDIR=...] [PREFIX=/opt/gpucap] ./uninstall.sh
#
# Tell the engines first (`gpucap configure ENGINE --undo`, then restart them): one that names a command that is
# not there starts no container. What else lies in the prefix is somebody's own, and stays.
set -eu
prefix=${DESTDIR:-}${PREFIX:-/opt/gpucap}

# The link first: nobody begins to use what is about to go.
rm -f "$prefix/current" "$prefix/current.new"
rm -rf "$prefix/versions"
[ ! -d "$prefix" ] || rmdir "$prefix" 2>/dev/null || echo "$prefix stays"
echo "gpucap is gone from $prefix"
