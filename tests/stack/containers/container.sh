#!/bin/sh
# Become a container: a root of its own that cannot be written, an unprivileged user, no capability.
#   container.sh NAME ROOT USER [KIND SOURCE TARGET]... -- [VARIABLE=VALUE]... COMMAND...
# KIND is `ro` or `rw`, which show SOURCE at TARGET, or `tmpfs`, whose SOURCE is a size.
# Run it as root, in new mount, PID and UTS namespaces; ROOT is an empty folder.
set -eu
name=$1 root=$2 user=$3
shift 3

# What `docker run` gives an image: a system (this machine's own, in place of the image's), /proc,
# /sys, a few devices, and a hostname.
mount -t tmpfs -o mode=755 root "$root"
for folder in /bin /sbin /lib /lib64 /usr /etc; do
    if [ -L $folder ]; then
        cp -P $folder "$root$folder"
    elif [ -d $folder ]; then
        mkdir "$root$folder"
        mount --bind $folder "$root$folder"
        mount -o remount,bind,ro "$root$folder"
    fi
done
mkdir "$root/proc" "$root/sys" "$root/dev"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
for device in null zero full random urandom; do
    : > "$root/dev/$device"
    mount --bind /dev/$device "$root/dev/$device"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/1 "$root/dev/stdout"
echo "$name" > /proc/sys/kernel/hostname

while [ "$1" != -- ]; do
    kind=$1 source=$2 target=$root$3
    shift 3
    if [ "$kind" = tmpfs ] || [ -d "$source" ]; then
        mkdir -p "$target"
    elif [ ! -e "$target" ]; then
        mkdir -p "$(dirname "$target")"
        : > "$target"
    fi
    case $kind in
        tmpfs) mount -t tmpfs -o "mode=1777,size=$source,noexec,nosuid,nodev" tmpfs "$target" ;;
        rw) mount --bind "$source" "$target" ;;
        ro)
            mount --bind "$source" "$target"
            mount -o remount,bind,ro "$target"
            ;;
    esac
done
shift
mount -o remount,bind,ro "$root"

exec chroot "$root" setpriv --reuid="$user" --regid="$user" --clear-groups --inh-caps=-all \
    --bounding-set=-all --no-new-privs --pdeathsig=KILL env -i "$@"
