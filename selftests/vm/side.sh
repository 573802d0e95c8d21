# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What a script needs that `pair` runs in both guests. Sourced there, never run.
#
#   IBCHAN_ROLE        a or b; both have the device rxe0 on the netdev v0
#   IBCHAN_OWN_IPV4    IBCHAN_OWN_IPV6    this guest's addresses
#   IBCHAN_PEER_IPV4   IBCHAN_PEER_IPV6   the other guest's
#   IBCHAN_MEET        a folder that both see, also while nothing else connects them

# shellcheck source=SCRIPTDIR/../pause.sh
. "${BASH_SOURCE[0]%/*}/../pause.sh"

case ${IBCHAN_ROLE:?only the guests of pair have a role} in
a) own=1 other=2 IBCHAN_PEER=b ;;
b) own=2 other=1 IBCHAN_PEER=a ;;
esac
export IBCHAN_OWN_IPV4=10.77.0.$own IBCHAN_PEER_IPV4=10.77.0.$other
export IBCHAN_OWN_IPV6=fd77::$own IBCHAN_PEER_IPV6=fd77::$other
export IBCHAN_MEET=/run/ibchan-meet IBCHAN_PEER

# tell NAME WORD...: for the other side to hear.
tell() {
	local file=$IBCHAN_MEET/$1.$IBCHAN_ROLE

	shift
	echo "$*" >"$file.partial"
	mv "$file.partial" "$file"
}

# hear NAME [SECONDS]: prints what the other side told under this name, once it has; fails
# when it has not after that time (default 60).
hear() {
	local file=$IBCHAN_MEET/$1.$IBCHAN_PEER

	if ! patience=${2:-60} eventually test -e "$file"; then
		echo "side $IBCHAN_PEER did not come to \"$1\" within ${2:-60} s" >&2
		return 1
	fi
	cat "$file"
}

# meet NAME [SECONDS]: returns when both sides are here. A place is met at once only.
meet() {
	tell "$1" here
	hear "$@" >/dev/null
}

# die: this guest is gone as if its power had failed, with all it has not sent yet. The run
# counts that as the success of its command; whatever else ends a guest remains a failure.
die() {
	# shellcheck source=/dev/null
	(. "$VM_REQUEST" && printf '%s\n' setup=0 command=0 finish=0 >"$VM_PLUMBING/status")
	sync
	echo b >/proc/sysrq-trigger
}
