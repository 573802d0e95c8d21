# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# To wait without a program: an emulated CPU starts those slowly, above all a busy one. Sourced,
# never run.

# A pipe that nobody writes to.
exec {silence}<> <(:)

# pause SECONDS
pause() {
	read -rt "$1" -u "$silence" || :
}

# eventually COMMAND...: tries until it succeeds; 1 if it does not within $patience seconds.
eventually() {
	# shellcheck disable=SC2154 # whoever calls sets it
	local end=$((SECONDS + patience))

	until "$@"; do
		if [ "$SECONDS" -ge "$end" ]; then return 1; fi
		pause 0.05
	done
}
