// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl doctor: the kernel and the module.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <t3.h>

#include "doctor.h"

static bool exists(const char *fmt, const char *arg)
{
	char *path = path_of("%s%s", fmt, arg);
	bool there = !access(path, F_OK);

	free(path);
	return there;
}

/* --- options --------------------------------------------------------------- */

/* A compressed file's text, or NULL. */
static char *unpacked(const char *path)
{
	char *command = text_of("gzip -dc '%s%s' 2>/dev/null", options.sysroot,
				path);
	FILE *p = popen(command, "re");
	char *text = p ? read_stream(p) : NULL;

	free(command);
	if (p && !pclose(p))
		return text;
	free(text);
	return NULL;
}

/* The running kernel's configuration, and where it is: owned, both. */
static char *kernel_config(const char *release, char **where)
{
	static const struct {
		const char *before;
		const char *after;
	} places[] = {
		{ "/boot/config-", "" },
		{ "/lib/modules/", "/config" },
		{ "/lib/modules/", "/build/.config" },
	};
	char *text;
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		*where = text_of("%s%s%s", places[i].before, release,
				 places[i].after);
		text = read_text_of("%s", *where);
		if (text)
			return text;
		free(*where);
	}
	*where = must_strdup("/proc/config.gz");
	text = unpacked("/proc/config.gz");
	if (!text)
		free(*where);
	return text;
}

static bool option_is_on(const char *config, const char *option)
{
	size_t n = strlen(option);
	const char *at = config;

	while ((at = strstr(at, option))) {
		if ((at == config || at[-1] == '\n') && at[n] == '=' &&
		    (at[n + 1] == 'y' || at[n + 1] == 'm'))
			return true;
		at += n;
	}
	return false;
}

void examine_options(struct findings *f)
{
	char *where, *config = kernel_config(f->release, &where);
	const struct need *need;
	bool fine = true;

	if (!config) {
		found(f, WARNING, "kernel options",
		      text_of("the configuration of %s was not found",
			      f->release),
		      "Whether this kernel can have the module is not known.",
		      text_of("install the package that has /boot/config-%s",
			      f->release));
		return;
	}
	for (need = kernel_needs; need->option; need++) {
		if (option_is_on(config, need->option))
			continue;
		fine = false;
		found(f, PROBLEM, "kernel options",
		      text_of("%s lacks %s: %s", f->release, need->option,
			      need->why),
		      "The module can't be built or loaded on this kernel.",
		      text_of("use a kernel with %s=y; DKMS skips this one",
			      need->option));
	}
	if (fine)
		found(f, HEALTHY, "kernel options",
		      text_of("%s has all that the module needs (%s)",
			      f->release, where), NULL, NULL);
	free(config);
	free(where);
}

/* --- headers ----------------------------------------------------------------- */

void examine_headers(struct findings *f)
{
	char *path = text_of("/lib/modules/%s/build", f->release);

	if (exists(path, "/Makefile"))
		found(f, HEALTHY, "kernel headers", must_strdup(path), NULL, NULL);
	else
		found(f, exists("/sys/module/t3", "") ? WARNING : PROBLEM,
		      "kernel headers", text_of("%s is not there", path),
		      "The module can't be built for the running kernel.",
		      text_of("apt-get install linux-headers-%s; DKMS then builds it",
			      f->release));
	free(path);
}

/* --- versions ---------------------------------------------------------------- */

/* The file that modprobe would take, or NULL. */
static char *installed_module(const struct findings *f)
{
	static const char * const places[] = {
		"updates/dkms/t3.ko", "updates/dkms/t3.ko.xz",
		"updates/dkms/t3.ko.zst", "updates/dkms/t3.ko.gz",
		"updates/t3.ko", "extra/t3.ko", "kernel/drivers/misc/t3.ko",
	};
	size_t i;

	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		char *path = text_of("/lib/modules/%s/%s", f->release,
				     places[i]);

		if (exists(path, ""))
			return path;
		free(path);
	}
	return NULL;
}

/* modinfo knows every compression; "" where it can't tell. */
static char *file_version(const char *path)
{
	char *command = text_of("PATH=$PATH:/usr/sbin:/sbin modinfo -F version '%s%s' 2>/dev/null",
				options.sysroot, path);
	FILE *p = popen(command, "re");
	char line[64] = "";

	free(command);
	if (!p)
		return must_strdup("");
	if (!fgets(line, sizeof(line), p))
		line[0] = 0;
	pclose(p);
	line[strcspn(line, "\n")] = 0;
	return must_strdup(line);
}

static char *version_number(int version)
{
	return text_of("%d.%d.%d", version / 10000, version / 100 % 100,
		       version % 100);
}

static void compare_library(struct findings *f)
{
	char *library = version_number(t3_version());
	char *header = text_of("%d.%d.%d", T3_VERSION_MAJOR, T3_VERSION_MINOR,
			       T3_VERSION_PATCH);

	if (!strcmp(library, header))
		found(f, HEALTHY, "libt3", must_strdup(library), NULL, NULL);
	else
		found(f, WARNING, "libt3",
		      text_of("%s, but t3ctl was built for %s", library, header),
		      "Two versions are installed.",
		      must_strdup("install one of them anew: make install"));
	free(library);
	free(header);
}

static void not_loaded(struct findings *f, const char *path)
{
	if (path)
		found(f, PROBLEM, "module",
		      text_of("not loaded; %s is there", path),
		      "There is no /dev/t3: libt3 uses its soft engine.",
		      must_strdup("modprobe t3, and dmesg where that fails"));
	else
		found(f, PROBLEM, "module",
		      text_of("not built for %s", f->release),
		      "There is no /dev/t3: libt3 uses its soft engine.",
		      text_of("dkms install t3/%d.%d.%d -k %s && modprobe t3",
			      T3_VERSION_MAJOR, T3_VERSION_MINOR,
			      T3_VERSION_PATCH, f->release));
}

static void compare_module(struct findings *f, const char *loaded,
			   const char *path)
{
	char *library = version_number(t3_version());
	char *on_disk = path ? file_version(path) : must_strdup("");

	if (*on_disk && strcmp(on_disk, loaded))
		found(f, WARNING, "module",
		      text_of("%s is loaded, %s is installed", loaded, on_disk),
		      "The installed one comes with the next boot.",
		      must_strdup("modprobe -r t3 && modprobe t3, when nobody uses it (t3ctl ls)"));
	else if (strcmp(loaded, library))
		found(f, WARNING, "module",
		      text_of("%s is loaded, libt3 is %s", loaded, library),
		      "They agree on what both know; what only one knows is not used.",
		      must_strdup("install module and library of one version: make install"));
	else
		found(f, HEALTHY, "module",
		      text_of("%s is loaded%s%s", loaded, path ? ", from " : "",
			      path ? path : ""), NULL, NULL);
	free(library);
	free(on_disk);
}

void examine_versions(struct findings *f)
{
	char *loaded = read_text_of("/sys/module/t3/version");
	char *path = installed_module(f);

	compare_library(f);
	if (loaded)
		compare_module(f, loaded, path);
	else if (exists("/sys/module/t3", ""))
		compare_module(f, "an unnamed version", path);
	else
		not_loaded(f, path);
	free(loaded);
	free(path);
}

/* --- lockdown and signatures ----------------------------------------------------- */

/* "none [integrity] confidentiality" */
static char *lockdown_level(void)
{
	char *text = read_text_of("/sys/kernel/security/lockdown");
	char *begin = text ? strchr(text, '[') : NULL;
	char *word = begin ? text_of("%.*s", (int)strcspn(begin + 1, "]"),
				     begin + 1) : must_strdup("none");

	free(text);
	return word;
}

/* The variable has four bytes of attributes, then 1 or 0. */
static bool secure_boot(void)
{
	char *path = path_of("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c");
	FILE *file = fopen(path, "re");
	unsigned char bytes[5] = { 0 };
	bool on = false;

	free(path);
	if (file) {
		on = fread(bytes, 1, 5, file) == 5 && bytes[4] == 1;
		fclose(file);
	}
	return on;
}

static bool must_be_signed(void)
{
	char *text = read_text_of("/sys/module/module/parameters/sig_enforce");
	bool enforced = text && *text == 'Y';

	free(text);
	return enforced;
}

static char *how_to_sign(const struct findings *f, const char *path)
{
	return text_of("/lib/modules/%s/build/scripts/sign-file sha256 /var/lib/dkms/mok.key /var/lib/dkms/mok.pub %s; once, to have the key believed: mokutil --import /var/lib/dkms/mok.pub, then reboot and confirm it",
		       f->release, path ? path : "t3.ko");
}

void examine_signing(struct findings *f)
{
	bool secure = secure_boot(), enforced = must_be_signed();
	bool loaded = exists("/sys/module/t3", "");
	char *down = lockdown_level(), *path = installed_module(f);
	bool asked = enforced || strcmp(down, "none");
	char *is = text_of("Secure Boot %s, lockdown %s, %s",
			   secure ? "on" : "off", down,
			   asked ? "modules must be signed" :
				   "unsigned modules load");

	if (!asked || loaded)
		found(f, HEALTHY, "signing", is, NULL, NULL);
	else
		found(f, WARNING, "signing", is,
		      "The module loads only if it is signed with a key that the firmware believes; else: \"Key was rejected by service\".",
		      how_to_sign(f, path));
	free(down);
	free(path);
}
