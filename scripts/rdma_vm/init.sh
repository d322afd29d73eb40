#!/bin/sh
# The first process of the guest: modules, the network, an RDMA device, then a command under the host's root, which it
# sees and cannot change. From the kernel's command line, as the host names them: lacuna.run, a script; lacuna.results,
# the one folder that it may write into; lacuna.address, on the wire to another machine; lacuna.netem, what becomes of
# packets that leave (loss,1%).
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts /host /top /root
mount -t tmpfs shm /dev/shm

end() {
  echo "GUEST ENDS $1"
  printf "\\x$(printf %x "$1")" | dd of=/dev/port bs=1 seek=244 count=1 2>/dev/null # qemu exits with 2 * $1 + 1
  reboot -f
}

for word in $(cat /proc/cmdline); do
  case $word in lacuna.*=*) eval "${word#lacuna.}" ;; esac
done
for module in $(cat /modules/order); do
  insmod "/modules/$module.ko" || { echo "guest: module $module does not load"; end 100; }
done

mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro host /host &&
  mount -t tmpfs top /top && mkdir /top/upper /top/work &&
  mount -t overlay -o lowerdir=/host,upperdir=/top/upper,workdir=/top/work root /root || { echo "guest: no root"; end 100; }
for folder in proc sys dev; do mount --bind /$folder /root/$folder; done
mount --bind /dev/shm /root/dev/shm
mount -t tmpfs run /root/run

if [ -n "$results" ]; then
  mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 results "/root$results" || { echo "guest: no $results"; end 100; }
fi

ip link set lo up
if [ -n "$address" ]; then
  ip link set eth0 name wire0 || { echo "guest: no wire"; end 100; }
else
  ip link add wire0 type dummy
fi
ip addr add "${address:-10.77.0.1}/24" dev wire0
ip link set wire0 mtu 4200 up # RoCE with 4096
if [ -n "$netem" ]; then
  IFS=,
  chroot /root /sbin/tc qdisc add dev wire0 root netem $netem || { echo "guest: no netem"; end 100; }
  unset IFS
fi
chroot /root rdma link add rxe0 type rxe netdev wire0 || { echo "guest: no rxe"; end 100; }
ulimit -l unlimited

chroot /root /bin/bash "$run"
ended=$?
[ -n "$netem" ] && chroot /root /sbin/tc -s qdisc show dev wire0
end $ended
