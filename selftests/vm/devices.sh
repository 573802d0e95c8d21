# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The two ends of a veth pair and the soft-RoCE devices on them, and the HCAs for tests. Sourced,
# never run.

# shellcheck source=SCRIPTDIR/../pause.sh
. "${BASH_SOURCE[0]%/*}/../pause.sh"

# make_veth [FIRST SECOND NET]: NET, two digits, is in the hardware addresses.
make_veth() {
	local first=${1:-v0} second=${2:-v1} net=${3:-77} device

	ip -batch - <<-COMMANDS || return
		link set lo up
		link add $first address 02:00:00:$net:00:01 type veth peer name $second address 02:00:00:$net:00:02
	COMMANDS
	for device in all "$first" "$second"; do
		echo 1 >"/proc/sys/net/ipv4/conf/$device/accept_local"
		echo 0 >"/proc/sys/net/ipv4/conf/$device/rp_filter"
		echo 0 >"/proc/sys/net/ipv6/conf/$device/accept_dad"
	done
}

# Traffic between two devices of one network namespace would go over lo: martian checks off
# and neighbours that need no asking make it cross the pair. A link that was down gets back
# what it has forgotten.
bring_up_veth() {
	local first=${1:-v0} second=${2:-v1} net=${3:-77}

	ip -batch - <<-COMMANDS
		link set $first up
		link set $second up
		address replace 10.$net.0.1/24 dev $first
		address replace 10.$net.0.2/24 dev $second
		address replace fd$net::1/64 dev $first nodad
		address replace fd$net::2/64 dev $second nodad
		neighbour replace 10.$net.0.2 lladdr 02:00:00:$net:00:02 dev $first nud permanent
		neighbour replace 10.$net.0.1 lladdr 02:00:00:$net:00:01 dev $second nud permanent
		neighbour replace fd$net::2 lladdr 02:00:00:$net:00:02 dev $first nud permanent
		neighbour replace fd$net::1 lladdr 02:00:00:$net:00:01 dev $second nud permanent
	COMMANDS
}

# Each end in a VRF of its own, which takes the addresses of IPv6 and the neighbours away.
enter_vrfs() {
	ip -batch - <<-COMMANDS && bring_up_veth
		link add vrf8 type vrf table 108
		link add vrf9 type vrf table 109
		link set vrf8 up
		link set vrf9 up
		link set v0 master vrf8
		link set v1 master vrf9
	COMMANDS
}

leave_vrfs() {
	ip -batch - <<-COMMANDS && bring_up_veth
		link delete vrf8
		link delete vrf9
	COMMANDS
}

# set_up_veth FIRST SECOND: names of the devices.
set_up_veth() {
	make_veth && bring_up_veth && add_device "$1" v0 1 && add_device "$2" v1 2
}

# add_device NAME NETDEV NUMBER: until it has the addresses that end in NUMBER.
add_device() {
	rdma link add "$1" type rxe netdev "$2" && wait_for_gids "$1" "$3"
}

wait_for_gids() {
	wait_for_gid "$1" "0000:0000:0000:0000:0000:ffff:0a4d:000$2" &&
		wait_for_gid "$1" "fd77:0000:0000:0000:0000:0000:0000:000$2"
}

# has_gid NAME GID [PORT]: rxe has a thousand slots and fills them from the first; the addresses
# above need three.
has_gid() {
	local slot gid

	for slot in 0 1 2 3 4 5; do
		read -r gid <"/sys/class/infiniband/$1/ports/${3:-1}/gids/$slot" || continue
		if [ "$gid" = "$2" ]; then return 0; fi
	done
	return 1
}

# A worker of ib_core adds the GIDs; nothing says when it is done.
wait_for_gid() {
	if patience=20 eventually has_gid "$@"; then return 0; fi
	echo "$1 never got the GID $2" >&2
	return 1
}

# delete_device NAME: returns when it has left. An HCA loses its driver, as one that is pulled out
# of its slot does.
delete_device() {
	local bus

	case $1 in
	hca*)
		bus=$(readlink -f "/sys/class/infiniband/$1/device") &&
			echo "${bus##*/}" >/sys/bus/pci/drivers/ibchan_hca/unbind
		;;
	*) rdma link delete "$1" ;;
	esac
}

# The first HCA without a driver gets it back.
add_hca() {
	local bus

	for bus in /sys/bus/pci/devices/*; do
		if [ "$(<"$bus/vendor"):$(<"$bus/device")" != 0x1234:0x11e8 ] ||
			[ -e "$bus/driver" ]; then continue; fi
		echo "${bus##*/}" >/sys/bus/pci/drivers/ibchan_hca/bind
		return
	done
	echo "no HCA has left" >&2
	return 1
}
