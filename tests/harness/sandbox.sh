# A place of its own for one program: sandbox.sh DEV ROOT LIMITS MODE PROGRAM [ARGUMENT...]
#
# Runs in a mount namespace that nobody else sees. DEV, an empty directory, becomes /dev with the harmless nodes only.
# Unless ROOT is empty, it becomes / with everything that the machine has there, and the directory LIMITS appears in
# it as /.gpucap, mounted with MODE (ro or rw): the way a container shows what the hook wrote. The file `ledger` in it
# can be written in any case.
dev=$1 root=$2 limits=$3 mode=$4
shift 4

mount -t tmpfs -o mode=755 dev "$dev"
for node in null zero full random urandom; do
    : >"$dev/$node"
    mount --bind "/dev/$node" "$dev/$node"
done
mkdir -m 1777 "$dev/shm"
ln -s /proc/self/fd "$dev/fd"

if [ -z "$root" ]; then
    mount --move "$dev" /dev
    exec "$@"
fi

mount -t tmpfs -o mode=755 root "$root"
for entry in /*; do
    name=${entry#/}
    if [ -L "$entry" ]; then
        ln -s "$(readlink "$entry")" "$root/$name"
    elif [ "$name" = dev ]; then
        mkdir "$root/dev"
        mount --rbind "$dev" "$root/dev"
    elif [ -d "$entry" ]; then
        mkdir "$root/$name"
        mount --rbind "$entry" "$root/$name"
    fi
done
mkdir "$root/.gpucap"
mount --bind "$limits" "$root/.gpucap"
mount -o "remount,bind,$mode" "$root/.gpucap"
mount --bind "$limits/ledger" "$root/.gpucap/ledger"
exec chroot "$root" env --chdir="$PWD" "$@"
