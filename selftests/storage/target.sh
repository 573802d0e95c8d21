# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel's NVMe target and host on the two soft-RoCE devices: the target is served on rxe0,
# hosts connect from rxe1. Sourced, never run, by scripts that have set:
#
#   here                the folder selftests
#   limit               seconds that a command may take
#   patience            seconds to wait for what is sure to come
#   reconnect_patience  the same, for a host that comes back
#   io_timeout          seconds until a host takes an answer for lost
#   transport           the module that carries the target
#   transport_file      where it is; empty for one of the kernel's own
#   logs                a folder for what commands say
#
# Nothing here waits without an end, and no function leaves the script: each returns 1 when what
# it is for has not come about.
: "${here:?}" "${limit:?}" "${patience:?}" "${reconnect_patience:?}" "${io_timeout:?}"
: "${transport:?}" "${logs:?}"
# shellcheck source=SCRIPTDIR/../modules.sh
. "$here/modules.sh"
# shellcheck source=SCRIPTDIR/../vm/devices.sh
. "$here/vm/devices.sh"

nvmet=/sys/kernel/config/nvmet
target_address=10.77.0.1 host_address=10.77.0.2
# The port of the target that is meant, and how it is reached.
port=1 trtype=rdma service=4420
# The number of the host that connects; a host has a name and an identity of its own.
host=1
# How long the last timed command took, and which disk was found last.
ms=0 disk=''

ms_since() {
	echo $(((${EPOCHREALTIME//[.,]/} - ${1//[.,]/}) / 1000))
}

# timed COMMAND...
timed() {
	local begin=$EPOCHREALTIME code=0

	bounded "$@" || code=$?
	ms=$(ms_since "$begin")
	return "$code"
}

# Where the kernel may not answer: a write in a process that can be left behind.
write_to() {
	bounded put "$2" "$1"
}

put() {
	{ echo "$1" >"$2"; } 2>>"$logs/commands"
}

# --- modules ---

# Before any port: the first one that is enabled has the kernel load its own transport.
load_transport() {
	case $transport_file in
	'') bounded modprobe "$transport" ;;
	*) load "$transport_file" ;;
	esac
}

unload_transport() {
	unload "$transport"
}

load_storage() {
	bounded modprobe -a nvmet && load_transport && load_host
}

load_host() {
	local kind

	bounded modprobe -a nvme-rdma ext4 || return
	for kind in io admin; do
		echo "$io_timeout" >"/sys/module/nvme_core/parameters/${kind}_timeout" || return
	done
}

# In the order of who uses whom; a module that is not loaded is no problem.
unload_storage() {
	local module problem=0

	for module in "$transport" nvmet_rdma nvmet nvme_rdma nvme_fabrics; do
		[ ! -e "/sys/module/$module" ] || unload "$module" || problem=1
	done
	return "$problem"
}

# --- disks of the target ---

# make_disks COUNT KIB: /dev/ram0 and so on, which read as zeroes.
make_disks() {
	bounded modprobe brd "rd_nr=$1" "rd_size=$2"
}

# With their memory.
free_disks() {
	[ ! -e /sys/module/brd ] || eventually disks_go
}

disks_go() {
	rmmod brd 2>>"$logs/commands"
}

# --- the target ---

# add_subsystem NQN DISK...: to any host; the first disk is namespace 1.
add_subsystem() {
	local folder=$nvmet/subsystems/$1 number=0 path

	mkdir "$folder" && echo 1 >"$folder/attr_allow_any_host" || return
	for path in "${@:2}"; do
		number=$((number + 1))
		add_namespace "$1" "$number" "$path" || return
	done
}

# add_namespace NQN NUMBER PATH: of a block device, or of a file by way of the page cache.
add_namespace() {
	local folder=$nvmet/subsystems/$1/namespaces/$2

	mkdir "$folder" && echo "$3" >"$folder/device_path" || return
	if [ -f "$3" ]; then echo 1 >"$folder/buffered_io" || return; fi
	write_to "$folder/enable" 1
}

# remove_namespace NQN NUMBER
remove_namespace() {
	local folder=$nvmet/subsystems/$1/namespaces/$2

	write_to "$folder/enable" 0 && bounded rmdir "$folder"
}

# allow_only NQN HOST
allow_only() {
	local name

	name=$(host_name "$2")
	echo 0 >"$nvmet/subsystems/$1/attr_allow_any_host" && mkdir -p "$nvmet/hosts/$name" &&
		ln -s "$nvmet/hosts/$name" "$nvmet/subsystems/$1/allowed_hosts/$name"
}

# add_port [INLINE]: INLINE bytes of a command may come with it.
add_port() {
	local folder=$nvmet/ports/$port

	mkdir "$folder" && echo ipv4 >"$folder/addr_adrfam" && echo "$trtype" >"$folder/addr_trtype" &&
		echo "$target_address" >"$folder/addr_traddr" &&
		echo "$service" >"$folder/addr_trsvcid" || return
	if [ $# -gt 0 ]; then echo "$1" >"$folder/param_inline_data_size"; fi
}

# The first subsystem enables the port, and its transport listens; the last one that goes
# disables it.
link_subsystem() {
	bounded ln -s "$nvmet/subsystems/$1" "$nvmet/ports/$port/subsystems/$1"
}

unlink_subsystem() {
	bounded rm -f "$nvmet/ports/$port/subsystems/$1"
}

# serve NQN DISK...: of a new subsystem, on a port of its own.
serve() {
	add_subsystem "$@" && add_port && link_subsystem "$1"
}

remove_links() {
	local link

	for link in "$@"; do
		[ ! -L "$link" ] || bounded rm -f "$link" || return
	done
}

remove_folders() {
	local folder

	for folder in "$@"; do bounded rmdir "$folder" || return; done
}

remove_target() {
	local folder

	[ -d "$nvmet" ] || return 0
	remove_links "$nvmet"/ports/*/subsystems/* && remove_folders "$nvmet"/ports/* || return
	for folder in "$nvmet"/subsystems/*/namespaces/*; do
		write_to "$folder/enable" 0 && bounded rmdir "$folder" || return
	done
	remove_links "$nvmet"/subsystems/*/allowed_hosts/* &&
		remove_folders "$nvmet"/subsystems/* "$nvmet"/hosts/*
}

# --- the host ---

host_name() {
	echo "nqn.2014-08.example.ibchan:host$1"
}

# nvme_command VERB [OPTION...]: with the address of the port and the identity of the host.
nvme_command() {
	bounded nvme "$1" -t rdma -a "$target_address" -s "$service" -w "$host_address" \
		--hostnqn="$(host_name "$host")" \
		--hostid="00000000-0000-0000-0000-00000000000$host" "${@:2}" \
		>"$logs/nvme" 2>&1
}

# connect NQN [OPTION...]: a host that loses the target tries each second to come back, and takes
# it for lost when it has not answered for five.
connect() {
	nvme_command connect -n "$1" --reconnect-delay=1 --ctrl-loss-tmo=600 --keep-alive-tmo=5 \
		"${@:2}"
}

# connect_to_disk NQN [OPTION...]: leaves namespace 1 in $disk.
connect_to_disk() {
	connect "$@" && find_disk "$1"
}

controllers() {
	local folder

	for folder in /sys/class/nvme/nvme*; do
		if [ "$(attribute "$folder/subsysnqn")" = "$1" ]; then echo "${folder##*/}"; fi
	done
}

# What goes away while it is read is empty.
attribute() {
	{ cat "$1"; } 2>/dev/null
}

# state_of NQN: of its only controller.
state_of() {
	attribute "/sys/class/nvme/$(controllers "$1")/state"
}

is_in_state() {
	[ "$(state_of "$1")" = "$2" ]
}

has_left_state() {
	! is_in_state "$@"
}

# Of several paths to a disk each is hidden.
has_disk() {
	local folder

	for folder in /sys/block/nvme*; do
		if [ "$(attribute "$folder/hidden")" != 1 ] &&
			[ "$(attribute "$folder/device/subsysnqn")" = "$1" ] &&
			[ "$(attribute "$folder/nsid")" = "$2" ] && [ -b "/dev/${folder##*/}" ]; then
			disk=/dev/${folder##*/}
			return 0
		fi
	done
	return 1
}

has_no_disk() {
	! has_disk "$@"
}

# find_disk NQN [NUMBER]
find_disk() {
	eventually has_disk "$1" "${2:-1}"
}

has_no_controller() {
	[ -z "$(controllers "$1")" ]
}

disconnect() {
	bounded nvme disconnect -n "$1" >"$logs/nvme" 2>&1 && eventually has_no_controller "$1"
}

disconnect_all() {
	local folder

	for folder in /sys/class/nvme/nvme*; do
		write_to "$folder/delete_controller" 1
	done
	eventually has_no_controllers
}

has_no_controllers() {
	local folders=(/sys/class/nvme/nvme*)

	[ ${#folders[@]} -eq 0 ]
}

# --- load ---

# The 512 bytes travel inside the command, the rest is read and written by the target.
mixed='--bssplit=512/25:4k/25:16k/20:64k/20:1m/10'
load_pid=''

# What it writes it reads again and compares.
fio=(fio --name=load --ioengine=libaio --direct=1 --thread --rw=randrw --verify=crc32c
	--verify_fatal=1 --verify_state_save=0)

# start_load DISK [OPTION...]: until it is ended. The process is fio's own: it gets the signals.
start_load() {
	"${fio[@]}" --filename="$1" --bssplit=512/25:4k/25:16k/25:64k/25 --iodepth=16 --size=16m \
		--time_based --runtime=600 --verify_backlog=32 "${@:2}" \
		>"$logs/load.${1##*/}" 2>&1 </dev/null &
	load_pid=$!
}

# requests DISK: those that have ended, on all paths to the disk.
requests() {
	local name=${1##*/} file count=0 fields

	for file in "/sys/block/$name" /sys/block/"${name%n*}"c*n"${name##*n}"; do
		{ read -ra fields <"$file/stat"; } 2>/dev/null || continue
		count=$((count + fields[0] + fields[4]))
	done
	echo "$count"
}

requests_exceed() {
	[ "$(requests "$1")" -gt "$2" ]
}

# load_goes_on [DISK]: more requests end than were under way. Soft-RoCE of 6.1 that sends again
# ends a queue pair that has registered memory, and tells nobody (rxe_mr.c: "not free"): the host
# goes on after a time-out and a reconnect.
load_goes_on() {
	patience=$reconnect_patience eventually requests_exceed "${1:-$disk}" $(($(requests "${1:-$disk}") + 100))
}

# end_load PID: 1 unless it ended because it was told to, and without an error: a job that
# fails adds to the code that fio has for a signal.
end_load() {
	local code=0

	kill -INT "$1" 2>/dev/null
	ends_in_time "$1" || {
		echo "    # the load does not end"
		return 1
	}
	{ wait "$1" || code=$?; } 2>/dev/null
	[ "$code" = 128 ] || {
		grep -h -E '^(fio|verify)|err=' "$logs"/load.* | head -n 10 | sed 's/^/    # /'
		echo "    # the load has ended with $code"
		return 1
	}
}

# load_fails PID: by itself, with an error of the disk.
load_fails() {
	local code=0

	ends_in_time "$1" || {
		echo "    # the load does not end"
		return 1
	}
	{ wait "$1" || code=$?; } 2>/dev/null
	[ "$code" != 0 ] && grep -q -h -E 'error on file|err= *[1-9]' "$logs"/load.*
}

# What bash has to say about it is no news.
kill_load() {
	{
		kill -KILL "$1"
		ends_in_time "$1" && { wait "$1" || :; }
	} 2>/dev/null
}

# --- what is left ---

# Verbs objects by device, kind and owner: completion queues of the kernel's pool stay, but
# nobody may use them.
verbs_objects() {
	printf 'resource show %s\n' qp cq mr pd cm_id srq | rdma -b - | awk '
		{
			owner = "?"; users = 1
			for (i = 3; i < NF; i++) {
				if ($i == "comm") owner = $(i + 1)
				if ($i == "users") users = $(i + 1)
			}
			if ($3 != "cqn" || users > 0) print $2, $3, owner
		}' | sort | uniq -c
}

# Everything that a case could leave behind, one a line, and which transports the kernel has loaded.
# What lasts while a port is enabled is compared with the same state.
left() {
	local path module

	verbs_objects
	for module in "$transport" nvmet nvme_rdma; do
		echo "users of $module: $(attribute "/sys/module/$module/refcnt")"
	done
	for path in /sys/module/nvmet_* /sys/class/nvme/nvme* /sys/class/nvme-subsystem/nvme* \
		/sys/block/nvme* "$nvmet"/{subsystems,ports,hosts}/* \
		/sys/kernel/debug/nvmet/*/ctrl*; do
		echo "$path"
	done
}

left_is() {
	[ "$(left)" = "$1" ]
}

# is_left_as BEFORE: what `left` said.
is_left_as() {
	eventually left_is "$1" || {
		diff <(echo "$1") <(left) | sed -n 's/^[<>]/    # &/p'
		return 1
	}
}
