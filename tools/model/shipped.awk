# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# Machine files as a C table: model_shipped[], NULL-terminated.

BEGIN {
	print "/* made by shipped.awk */"
	print "#include \"machine_file.h\"\n"
	print "const struct model_shipped model_shipped[] = {"
}

FNR == 1 {
	if (NR > 1)
		print "\t},"
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.machine$/, "", name)
	printf "\t{ \"%s\",\n", name
}

{
	gsub(/\\/, "\\\\")
	gsub(/"/, "\\\"")
	gsub(/\t/, "\\t")
	printf "\t  \"%s\\n\"\n", $0
}

END {
	if (NR)
		print "\t},"
	print "\t{ 0, 0 }"
	print "};"
}
