# SPDX-License-Identifier: GPL-2.0-only OR MIT
#
# kernel/needs as C.

BEGIN {
	print "/* Made from kernel/needs. */"
	print "#include \"doctor.h\"\n"
	print "const struct need kernel_needs[] = {"
}
/^CONFIG_/ {
	option = $1
	sub(/^[^ \t]+[ \t]+/, "")
	gsub(/["\\]/, "\\\\&")
	printf "\t{ \"%s\", \"%s\" },\n", option, $0
}
END {
	print "\t{ NULL, NULL }"
	print "};"
}
