# A machine of its own for an engine: enclosure.sh USR ETC [SCRIPT]
#
# Is the first process of a process namespace, in a mount namespace, both of which end with it; with a script, which has
# to end what the engine started, among the processes of the machine. /etc, /run, /var and
# /dev/shm are new and in memory, so an engine finds its usual places and shares nothing with one of the machine. USR
# becomes /usr; what is written there is in memory too. ETC/containers is what its packages configure. Prints its
# process number as the machine sees it, once the place is ready, and lives until its standard input ends.
read -r pid rest </proc/self/stat

mount -t proc proc /proc
mount -t tmpfs shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mkdir /run/etc
for file in passwd group hosts hostname resolv.conf nsswitch.conf subuid subgid; do
    [ ! -e "/etc/$file" ] || cp -L "/etc/$file" /run/etc
done
if [ "$1" = /usr ]; then
    cp -a /etc/ld.so.c* /etc/alternatives /run/etc
fi
[ ! -d "$2/containers" ] || cp -a "$2/containers" /run/etc
mount -t tmpfs -o mode=755 var /var
mkdir -p /var/lib /var/log /var/cache
mkdir -m 1777 /var/tmp
ln -s /run /var/run
mount -t tmpfs -o mode=755 etc /mnt
cp -a /run/etc/. /mnt
mount --move /mnt /etc
rm -r /run/etc
# crun goes without a mixed hierarchy of cgroups.
! mountpoint -q /sys/fs/cgroup/unified || umount /sys/fs/cgroup/unified
mkdir -p /var/usr/new /var/usr/work
mount -t overlay -o "lowerdir=$1,upperdir=/var/usr/new,workdir=/var/usr/work" usr /usr

echo "$pid"
# The shell waits for orphaned processes here, too.
cat >/dev/null
sh -c "${3:-:}" >/dev/null 2>&1
exit
