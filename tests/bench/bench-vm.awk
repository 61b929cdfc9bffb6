# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# bench-vm's table and JSON from the guest's lines:
#	R|time|WHO|BYTES|us|SETTING		WHO is t3 or mpi
#	R|bytes|WHO|BYTES|READ|WRITTEN		for each byte reduced
#	R|count|WHO|BYTES|WHAT|NUMBER		of an epoch; WHAT is a system call, or faults
#	R|tile|WAY|ns|SYSTEM-CALLS

$2 == "time" {
	with = $6 == "" ? "default" : $6
	k = $3 SUBSEP $4 SUBSEP with
	n[k]++
	v[k, n[k]] = $5 + 0
	setting[$3, $4] = setting[$3, $4] SUBSEP with
	next
}
$2 == "bytes" { got[$3, $4] = $5 + 0; put[$3, $4] = $6 + 0; next }
$2 == "count" {
	if ($5 == "faults") { faults[$3, $4] = $6 + 0; next }
	calls[$3, $4] += $6
	what[$3, $4] = what[$3, $4] (what[$3, $4] != "" ? ", " : "") $5 " " $6
	next
}
$2 == "tile" { ns[$3] = $4; syscalls[$3] = $5 }

function median(k,	m, i, j, a, t) {
	m = n[k]
	for (i = 1; i <= m; i++) {
		t = v[k, i]
		for (j = i; j > 1 && a[j - 1] > t; j--) a[j] = a[j - 1]
		a[j] = t
	}
	return m % 2 ? a[(m + 1) / 2] : (a[m / 2] + a[m / 2 + 1]) / 2
}

# The best setting's median of one size.
function best(who, b,	s, i, c, t) {
	c = split(substr(setting[who, b], 2), s, SUBSEP)
	us[who] = -1
	for (i = 1; i <= c; i++) {
		t = median(who SUBSEP b SUBSEP s[i])
		if (us[who] < 0 || t < us[who]) { us[who] = t; name[who] = s[i] }
	}
}

function half(who, b) {
	return sprintf("\"read_per_byte\": %.3f, \"written_per_byte\": %.3f, \"system_calls\": %.2f, \"by_call\": \"%s\", \"faults\": %.2f",
		got[who, b], put[who, b], calls[who, b], what[who, b], faults[who, b])
}

END {
	c = split(sizes, size, " ")
	printf "%9s %11s %11s %7s  %-13s %13s %13s %15s %13s\n", "", "t3", "Open MPI", "MPI /", "best",
		"read per byte", "written/byte", "system calls", "faults"
	printf "%9s %11s %11s %7s  %-13s %13s %13s %15s %13s\n", "bytes", "us", "us", "t3", "MPI setting",
		"t3     MPI", "t3     MPI", "t3       MPI", "t3      MPI"
	printf "{\n \"reduce_scatter\": [" >out
	for (i = 1; i <= c; i++) {
		b = size[i]
		best("t3", b)
		best("mpi", b)
		if (us["t3"] < 0 || us["mpi"] < 0) missing = 1
		ratio = us["t3"] > 0 ? us["mpi"] / us["t3"] : 0
		printf "%9d %11.1f %11.1f %7.2f  %-13s %6.2f %6.2f %6.2f %6.2f %7.2f %7.2f %6.2f %6.2f\n", b,
			us["t3"], us["mpi"], ratio, name["mpi"],
			got["t3", b], got["mpi", b], put["t3", b], put["mpi", b],
			calls["t3", b], calls["mpi", b], faults["t3", b], faults["mpi", b]
		printf "%s\n  {\"bytes\": %d, \"ratio\": %.3f, \"mpi_setting\": \"%s\",\n   \"t3\": {\"us\": %.3f, %s},\n   \"mpi\": {\"us\": %.3f, %s}}",
			(i > 1 ? "," : ""), b, ratio, name["mpi"], us["t3"], half("t3", b), us["mpi"], half("mpi", b) >out
	}
	printf "\nSystem calls of an epoch, both ranks (the harness's barrier among them):\n"
	for (i = 1; i <= c; i++)
		printf "%9d  t3: %s\n%9s  MPI: %s\n", size[i], what["t3", size[i]], "", what["mpi", size[i]]
	printf "\nA tile that completes nothing: T3_NOTIFY %.0f ns, %g system calls; mapped counter %.0f ns, %g system calls\n",
		ns["notify"], syscalls["notify"], ns["mapping"], syscalls["mapping"]
	printf "\n ],\n \"tile\": {\"notify_ns\": %.1f, \"notify_system_calls\": %g, \"mapping_ns\": %.1f, \"mapping_system_calls\": %g}\n}\n",
		ns["notify"], syscalls["notify"], ns["mapping"], syscalls["mapping"] >out
	exit missing
}
