# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Judges one suite's log. Given: status, its exit status; limit, its time limit.
# Prints "PASSED FAILED SKIPPED", then a line "failed WHAT" or "skipped WHAT"
# for each of these.

function fail(what) { failed++; notes = notes "failed " what "\n" }

# A list ends where the next begins, or with the log.
function close_list() {
	if (cut)
		;	# the time limit says enough
	else if (plan < 0 && points)
		fail("a list of " points " tests has no plan: it broke off")
	else if (plan >= 0 && points != plan)
		fail("the plan says " plan " tests, " points " ran")
	if (plan >= 0 || points)
		lists++
	plan = -1
	points = 0
}

BEGIN { plan = -1 }

{ sub(/\r$/, "") }

/^TAP version/ { close_list(); next }

/^1\.\.[0-9]+/ {
	if (plan >= 0)
		close_list()
	match($0, /^1\.\.[0-9]+/)
	plan = substr($0, 4, RLENGTH - 3) + 0
	if (plan == 0) {
		skipped++
		sub(/^1\.\.0 *(# *)?/, "")
		notes = notes "skipped " $0 "\n"
	}
	next
}

/^(not )?ok( |$)/ {
	points++
	text = $0
	sub(/^(not )?ok *[0-9]* *(- *)?/, "", text)
	if (toupper(text) ~ /# *SKIP/) {
		skipped++
		sub(/ *# *[Ss][Kk][Ii][Pp]:? */, ": ", text)
		notes = notes "skipped " text "\n"
	} else if (/^ok/) {
		passed++
	} else {
		fail(text)
	}
	next
}

/^Bail out!/ { sub(/^Bail out! */, ""); fail($0); next }

{ if ($0 !~ /^[ \t]*$/) last = $0 }

END {
	cut = status == 124 || status == 137
	close_list()
	if (cut)
		fail("ended by the time limit of " limit " s, or killed")
	else if (!lists && status == 4) {
		skipped++
		notes = notes "skipped " last "\n"
	} else if (!lists && status == 0 && !failed)
		passed++
	else if (status != 0 && !failed && !(status == 4 && skipped))
		fail("exit status " status)
	print passed + 0, failed + 0, skipped + 0
	printf "%s", notes
}
