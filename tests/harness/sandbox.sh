# A place of its own for one program: sandbox.sh DEV ROOT LIMITS MODE PROGRAM [ARGUMENT...]
#
# Runs in a private mount namespace. DEV, an empty directory, becomes /dev with the harmless nodes only.
# Unless ROOT is empty, it becomes / with everything that the machine has there, and the directory LIMITS appears in
# it as /.gpucap, mounted with MODE (ro or rw): the way a container shows what the hook wrote. The file `ledger` in it
# can be written in any case, and so can `page`, if it is there: `pages/own` by another name. No mount is noted down for
# the machine (-n), which only its root could do.
dev=$1 root=$2 limits=$3 mode=$4
shift 4

mount -n -t tmpfs -o mode=755 dev "$dev"
for node in null zero full random urandom; do
    : >"$dev/$node"
    mount -n --bind "/dev/$node" "$dev/$node"
done
mkdir -m 1777 "$dev/shm"
ln -s /proc/self/fd "$dev/fd"

if [ -z "$root" ]; then
    mount -n --move "$dev" /dev
    exec "$@"
fi

mount -n -t tmpfs -o mode=755 root "$root"
for entry in /*; do
    name=${entry#/}
    if [ -L "$entry" ]; then
        ln -s "$(readlink "$entry")" "$root/$name"
    elif [ "$name" = dev ]; then
        mkdir "$root/dev"
        mount -n --rbind "$dev" "$root/dev"
    elif [ -d "$entry" ]; then
        mkdir "$root/$name"
        mount -n --rbind "$entry" "$root/$name"
    fi
done
mkdir "$root/.gpucap"
mount -n --bind "$limits" "$root/.gpucap"
mount -n -o "remount,bind,$mode" "$root/.gpucap"
mount -n --bind "$limits/ledger" "$root/.gpucap/ledger"
if [ -e "$limits/page" ]; then
    mount -n --bind "$limits/pages/own" "$root/.gpucap/page"
fi
exec chroot "$root" env --chdir="$PWD" "$@"
