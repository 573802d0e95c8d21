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
