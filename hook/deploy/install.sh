#!/bin/sh
# Puts this release on a machine: $DESTDIR$PREFIX/versions/VERSION, and the link `current` that names it.
#
#   [DESTDIR=...] [PREFIX=/opt/gpucap] ./install.sh
#
# The files of one release are a directory of their own, and become the current ones by one rename of
# the link: no container meets the command of one version with the library of another, or half a file. Engines are
# configured with $PREFIX/current/bin/gpucap (`gpucap configure ENGINE --program ...`), so an upgrade changes nothing that they
# have read. The version before stays, for hooks that run while the link moves, and so does each one whose library a
# process has loaded: what it starts loads the library by the same path, and would run without a limit. Others go.
set -eu
case "$# ${1-}" in
    '0 ') ;;
    '1 --help' | '1 -h')
        echo 'Usage: [DESTDIR=DIRECTORY] [PREFIX=/opt/gpucap] ./install.sh'
        echo 'Installs this release into PREFIX (below DESTDIR). It takes no arguments.'
        exit 0
        ;;
    *)
        echo 'install.sh: it takes no arguments, only DESTDIR and PREFIX from the environment; nothing was changed' >&2
        exit 2
        ;;
esac
umask 022
here=$(cd "$(dirname "$0")" && pwd)
version=$(cat "$here/VERSION")
prefix=${DESTDIR:-}${PREFIX:-/opt/gpucap}
processor=$(cat "$here/PROCESSOR")
# Below a DESTDIR there may be another machine's files.
if [ -z "${DESTDIR:-}" ] && [ "$processor" != "$(uname -m)" ]; then
    echo "install.sh: this release is for $processor, this machine is $(uname -m)" >&2
    exit 1
fi
new=$prefix/versions/$version

before=$(readlink "$prefix/current" 2>/dev/null || true)
mkdir -p "$prefix/versions"
# Never written in place: a process that maps the library would see it change.
rm -rf "$new.new" "$new.old"
cp -R "$here/files" "$new.new"
chmod 755 "$new.new/bin/gpucap" "$new.new/lib/gpucap-driver"
same=yes
for file in bin/gpucap lib/libgpucap.so lib/gpucap-driver; do
    cmp -s "$new.new/$file" "$new/$file" || same=
done
if [ "$same" ]; then
    rm -rf "$new.new"
else
    # The same version built anew; a hook that starts between the two renames finds no command and refuses.
    [ ! -e "$new" ] || mv "$new" "$new.old"
    mv "$new.new" "$new"
    rm -rf "$new.old"
fi
rm -f "$prefix/current.new"
ln -s "versions/$version" "$prefix/current.new"
mv -T "$prefix/current.new" "$prefix/current"

# In the mappings a path ends like this, in whichever mount namespace. Processes of other users are seen by root alone.
is_loaded() {
    cat /proc/[0-9]*/maps 2>/dev/null | grep -qF "/versions/$1/lib/libgpucap.so"
}

for old in "$prefix/versions"/*; do
    case versions/${old##*/} in
        "versions/$version" | "$before") ;;
        *) [ "$before" = "versions/$version" ] || is_loaded "${old##*/}" || rm -rf "$old" ;;
    esac
done
echo "gpucap $version is in $prefix/current"
