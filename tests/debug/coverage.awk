# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Reads gcov's annotated sources, any number of them for each file: a line is
# reached where any of them says so.

function percent(a, b) { return b ? 100 * a / b : 0 }

function row(name, a, b) {
	printf "%-28s %5d of %5d lines  %5.1f%%\n", name, a, b, percent(a, b)
}

BEGIN {
	FS = ":"
	n = split(files, known, " ")
	for (i = 1; i <= n; i++)
		ours[known[i]] = 1
}

$2 + 0 == 0 && $3 == "Source" {
	file = $4
	if (match(file, /kernel\/(core\/)?[a-z0-9_]+\.[ch]$/))
		file = substr(file, RSTART)
	if (!(file in ours))
		file = ""
	next
}

file == "" { next }

{
	count = $1
	gsub(/[ *]/, "", count)
	if (count == "-")
		next
	key = file SUBSEP ($2 + 0)
	if (!(key in seen)) {
		seen[key] = 1
		lines[file]++
	}
	if (count !~ /^[#=]+$/ && !(key in hit)) {
		hit[key] = 1
		reached[file]++
	}
}

END {
	for (i = 1; i <= n; i++) {
		f = known[i]
		if (!lines[f])
			continue
		row(f, reached[f], lines[f])
		core = f ~ /^kernel\/core\//
		all[core] += lines[f]
		got[core] += reached[f]
		if (!list)
			continue
		for (k = 1; k < 5000; k++)
			if ((f, k) in seen && !((f, k) in hit))
				printf "    %s:%d\n", f, k
	}
	print ""
	row("kernel/core", got[1], all[1])
	row("the driver", got[0], all[0])
	row("kernel/", got[0] + got[1], all[0] + all[1])
	exit percent(got[1], all[1]) < 98 || percent(got[0], all[0]) < 90
}
