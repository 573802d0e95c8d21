# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Packages out of any suite of the Debian archive that this machine uses, without touching the
# machine's own apt: sources, lists and downloads live below the cache. Sourced by `kernel`.

# One line "URI KEYRING" per apt source that offers binary packages of the component main, in
# the order in which apt reads them; "-" where the source names no keyring of its own.
apt_sources() {
	local etc=/etc/apt

	existing "$etc"/sources.list "$etc"/sources.list.d/*.list | one_line_sources
	existing "$etc"/sources.list.d/*.sources | deb822_sources
}

existing() {
	local file

	for file in "$@"; do
		if [ -r "$file" ]; then
			cat "$file"
			echo
		fi
	done
}

one_line_sources() {
	awk '
		$1 != "deb" { next }
		{
			key = "-"; field = 2
			if ($2 ~ /^\[/) {
				while (field <= NF && $field !~ /\]$/) field++
				options = $0
				gsub(/^[^[]*\[|\].*$/, "", options)
				n = split(options, option, " ")
				for (i = 1; i <= n; i++)
					if (sub(/^signed-by=/, "", option[i])) key = option[i]
				field++
			}
			for (i = field + 2; i <= NF; i++)
				if ($i == "main") print $field, key
		}'
}

# A keyring may also be written into the stanza itself; such sources are third parties' and
# are left out.
deb822_sources() {
	sed 's/^[[:space:]]*$//' | awk '
		BEGIN { RS = ""; FS = "\n" }
		{
			split("", value)
			for (i = 1; i <= NF; i++) {
				if ($i ~ /^#/) continue
				if (match($i, /^[A-Za-z-]+:/)) {
					name = tolower(substr($i, 1, RLENGTH - 1))
					value[name] = substr($i, RLENGTH + 1)
				} else {
					value[name] = value[name] " " $i
				}
			}
			if (value["types"] !~ /(^| )deb( |$)/ || tolower(value["enabled"]) ~ /no|false/)
				next
			if (value["components"] !~ /(^| )main( |$)/ || value["signed-by"] ~ /BEGIN/)
				next
			n = split(value["uris"], uri, " ")
			split(value["signed-by"], key, " ")
			for (i = 1; i <= n; i++) print uri[i], (key[1] ? key[1] : "-")
		}'
}

# The private apt of one suite. Preferences are the machine's own business and must not keep
# packages of another suite away; its hooks must not run for somebody else's download.
private_apt() {
	local suite=$1 root program=$2

	root=$(vm_cache)/apt/$suite
	shift 2
	"$program" -q -c "$root/apt.conf" "$@"
}

write_private_apt() {
	local suite=$1 root=$2 uri=$3 key=$4 option=

	mkdir -p "$root/lists/partial" "$root/cache/archives/partial"
	if [ "$key" != - ]; then option="[signed-by=$key] "; fi
	echo "deb $option$uri $suite main" >"$root/sources.list"
	cat >"$root/apt.conf" <<-CONF
		Dir::Etc::SourceList "$root/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Etc::Preferences "/dev/null";
		Dir::Etc::PreferencesParts "/dev/null";
		Dir::State::Lists "$root/lists";
		Dir::Cache "$root/cache";
		APT::Sandbox::User "root";
		APT::Update::Error-Mode "any";
		Acquire::Languages "none";
		#clear APT::Update::Post-Invoke;
		#clear APT::Update::Post-Invoke-Success;
		#clear Acquire::IndexTargets::deb::DEP-11;
		#clear Acquire::IndexTargets::deb::Contents-deb;
	CONF
}

# Third parties name their suites like the distribution's, so a source is only known to be the
# distribution's archive when the suite asked for is really there.
open_suite() {
	local suite=$1 root uri key

	root=$(vm_cache)/apt/$suite
	while read -r uri key; do
		write_private_apt "$suite" "$root" "$uri" "$key"
		if with_progress "package list of $suite" private_apt "$suite" apt-get update; then
			return 0
		fi
	done < <(apt_sources | awk '!seen[$0]++')
	note "no apt source of this machine has the suite $suite"
	return 1
}

# download_packages SUITE DIR PACKAGE...: into DIR, which is the caller's to make and remove.
download_packages() {
	local suite=$1 dir=$2

	shift 2
	(cd "$dir" && with_progress "download from $suite" private_apt "$suite" apt-get download "$@")
}

package_field() {
	private_apt "$1" apt-cache show --no-all-versions "$2" | sed -n "s/^$3: //p"
}
