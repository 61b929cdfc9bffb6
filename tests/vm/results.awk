# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Reads what a guest's init writes: passes the tests' output on and ends with
# a TAP list, one point a command. Writes "good", "bad", "noload WHAT" or
# "none WHERE" (the guest died) to the file named by out.

function point(good, text) {
	points[++npoints] = (good ? "ok " : "not ok ") npoints " - " text
	if (!good)
		bad = 1
}

BEGIN { verdict = "none"; where = "boot" }

{ sub(/\r$/, "") }

$1 != "@@" {
	# the empty line is the one that init adds
	if ($0 != "")
		print
	if ($0 ~ /^(TAP version|1\.\.[0-9])/)
		tap = 1
	fflush()
	next
}
$2 == "booted" { release = $3; where = "loading the module"; next }
$2 == "noload" { $1 = $2 = ""; verdict = "noload"; where = $0; exit }
$2 == "loaded" { where = "start"; next }
$2 == "start" {
	n = $3
	$1 = $2 = $3 = ""
	sub(/^ +/, "")
	where = name[n] = $0
	tap = 0
	# each command's list is its own
	print "TAP version 13"
	print "# " item ": " name[n]
	fflush()
	next
}
$2 == "dirty" {
	if ($3 ~ /^[0-9]+$/)
		dirty[$3] = 1
	else
		point(0, item " " $3 ": kernel log clean")
	next
}
$2 == "held" { held[$3] = $4; next }
$2 == "nounload" { $1 = $2 = ""; point(0, item " unload:" $0); next }
$2 == "done" {
	why = ""
	if ($4 == 143 || $4 == 124 || $4 == 137)
		why = why ", ended by a signal or the time limit (status " $4 ")"
	else if ($4 != 0 && $4 != 4)
		why = why ", status " $4
	if (dirty[$3])
		why = why ", the kernel log has a complaint"
	if ($3 in held)
		why = why ", the module is still held (" held[$3] " users)"
	if ($4 == 4 && why == "" && !tap)
		point(1, item " " name[$3] " # SKIP status 4")
	else
		point(why == "", item " " name[$3] why)
	where = "after " name[$3]
	next
}
$2 == "end" { verdict = bad ? "bad" : "good"; where = "" ; next }

END {
	# points of commands that ended are known even where the guest died
	if (npoints) {
		print "TAP version 13"
		for (i = 1; i <= npoints; i++)
			print points[i]
		print "1.." npoints
	}
	print verdict, where > out
}
