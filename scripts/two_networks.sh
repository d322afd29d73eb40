#!/usr/bin/env bash
# Runs a program in two network namespaces, with a cable between them, as if on two machines:
#
#   scripts/two_networks.sh [--loss PERCENT] FIRST... [-- SECOND...]
#
# FIRST runs at 10.77.0.1 and SECOND at 10.77.0.2, both at once; without SECOND both run FIRST. Each finds its number, 0
# or 1, in LACUNA_TEST_RANK and where to meet in LACUNA_TEST_MEET (tests/support/apart.hpp). With --loss each end drops
# this percentage of the packets that come, by chance. Needs no root where a user may make namespaces. Exits with the
# first status of FIRST and SECOND that is not 0; with 77, having said why, where this machine has no such namespaces or
# cannot drop packets.
set -euo pipefail

skip() {
  echo "two networks: $1" >&2
  exit 77
}

if [ "${LACUNA_TWO_NETWORKS:-}" != inside ]; then
  for tool in unshare nsenter ip; do command -v $tool > /dev/null || skip "no $tool here (Debian: util-linux, iproute2)"; done
  user=()
  [ "$(id -u)" = 0 ] || user=(--user --map-root-user)
  why=$(unshare "${user[@]}" --net true 2>&1) || skip "this machine makes no network namespaces: $why"
  LACUNA_TWO_NETWORKS=inside exec unshare "${user[@]}" --net --kill-child --fork --pid --mount-proc "$0" "$@"
fi
unset LACUNA_TWO_NETWORKS

loss=0
if [ "${1:-}" = --loss ]; then
  loss=$2
  shift 2
fi
first=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  first+=("$1")
  shift
done
second=("${first[@]}")
if [ $# -gt 0 ]; then
  shift
  second=("$@")
else # one report is enough
  for i in "${!second[@]}"; do [[ ${second[i]} != --gtest_output=* ]] || unset "second[i]"; done
fi

unshare --net sleep infinity &
holder=$!
until [ "$(readlink /proc/$holder/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.01; done
there() { nsenter --target $holder --net "$@"; }

why=$(ip link add name cable0 type veth peer name cable1 netns $holder 2>&1) || skip "no cable between namespaces: $why"
ip link set lo up
there ip link set lo up
ip address add 10.77.0.1/24 dev cable0
there ip address add 10.77.0.2/24 dev cable1
ip link set cable0 up
there ip link set cable1 up
# A provider passes over an interface that is not running yet, and takes the loop.
until ip -brief link show cable0 | grep -q ' UP ' && there ip -brief link show cable1 | grep -q ' UP '; do sleep 0.01; done

# A random word of 32 bits below the limit drops a packet (2, TC_ACT_SHOT); netem is not in every kernel.
lose() {
  tc qdisc add dev "$1" clsact
  local limit
  limit=$(awk -v percent="$loss" 'BEGIN { printf "%d", percent / 100 * 4294967296 }')
  tc filter add dev "$1" ingress bpf direct-action bytecode "4,32 0 0 4294963256,53 0 1 $limit,6 0 0 4294967295,6 0 0 2"
}
if [ "$loss" != 0 ]; then
  export -f lose
  export loss
  command -v tc > /dev/null || skip "no tc here (Debian: iproute2)"
  why=$(lose cable0 2>&1 && there bash -c 'lose cable1' 2>&1) || skip "this kernel loses no packets on purpose: $why"
fi

export LACUNA_TEST_MEET=10.77.0.1:7471
LACUNA_TEST_RANK=1 there "${second[@]}" &
other=$!
status=0
LACUNA_TEST_RANK=0 "${first[@]}" || status=$?
other_status=0
wait $other || other_status=$?
if [ "$loss" != 0 ]; then tc -s qdisc show dev cable0; there tc -s qdisc show dev cable1; fi
kill $holder 2> /dev/null || true
[ $status -ne 0 ] || status=$other_status
exit $status
