// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * t3ctl doctor: the device's node, its group, and the next boot.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "doctor.h"

#define RULE	"udevadm control --reload && udevadm trigger /sys/class/misc/t3"
#define IN_CONTAINER	\
	"in a container: docker run --device /dev/t3, or DeviceAllow=/dev/t3 rw"

/* --- node ---------------------------------------------------------------------- */

static char *group_name(gid_t gid)
{
	struct group *group = getgrgid(gid);

	return group ? must_strdup(group->gr_name) : text_of("%u", gid);
}

static char *node_text(const struct stat *st)
{
	char *group = group_name(st->st_gid);
	char *text = text_of("/dev/t3, group %s, mode %04o", group,
			     st->st_mode & 07777);

	free(group);
	return text;
}

/* Is it what the driver made, or a file that was left or made by hand? */
static bool is_the_drivers(const struct stat *st)
{
	char *text = read_text_of("/sys/class/misc/t3/dev");
	unsigned int major_nr, minor_nr;
	bool same;

	same = !text || sscanf(text, "%u:%u", &major_nr, &minor_nr) != 2 ||
	       (S_ISCHR(st->st_mode) && major(st->st_rdev) == major_nr &&
		minor(st->st_rdev) == minor_nr);
	free(text);
	return same;
}

static bool is_the_groups(const struct stat *st)
{
	char *group = group_name(st->st_gid);
	bool same = !strcmp(group, "t3");

	free(group);
	return same;
}

static void can_be_opened(struct findings *f, const char *path,
			  const struct stat *st)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	int why = errno;

	if (fd >= 0) {
		close(fd);
		found(f, HEALTHY, "node", node_text(st), NULL, NULL);
	} else {
		found(f, PROBLEM, "node",
		      text_of("/dev/t3: this user can't open it: %s",
			      strerror(why)),
		      "libt3 uses its soft engine.",
		      why == EACCES ?
		      must_strdup("join its group: usermod -aG t3 USER, then log in again") :
		      must_strdup(IN_CONTAINER));
	}
}

void examine_node(struct findings *f)
{
	char *path = path_of("/dev/t3");
	bool loaded;
	struct stat st;
	char *sys = path_of("/sys/class/misc/t3");

	loaded = !access(sys, F_OK);
	free(sys);
	if (stat(path, &st)) {
		/* that the module is not loaded has a row of its own */
		if (loaded)
			found(f, PROBLEM, "node",
			      must_strdup("/dev/t3 is not there, but the module is loaded"),
			      "Nobody can open the device.",
			      must_strdup(IN_CONTAINER "; else: " RULE ". Never mknod"));
	} else if (!is_the_drivers(&st)) {
		found(f, PROBLEM, "node",
		      text_of("/dev/t3 is not the driver's: a leftover, or made by hand"),
		      "Who opens it gets another device, or none.",
		      must_strdup("rm /dev/t3, then " RULE));
	} else if (st.st_mode & 0007) {
		found(f, PROBLEM, "node", node_text(&st),
		      "Everybody on this machine can open it and pin memory.",
		      must_strdup("chmod 0660 /dev/t3; find the rule that says otherwise: " RULE));
	} else if (!is_the_groups(&st)) {
		found(f, WARNING, "node", node_text(&st),
		      "Only root can open it: it should be for the group t3.",
		      must_strdup(RULE));
	} else {
		can_be_opened(f, path, &st);
	}
	free(path);
}

/* --- group --------------------------------------------------------------------- */

/* The group's line in /etc/group below the sysroot, or the system's own. */
static bool group_of_t3(gid_t *gid)
{
	struct group *group = NULL;
	bool there = false;
	char *path;
	FILE *file;

	if (!*options.sysroot) {
		group = getgrnam("t3");
		if (group)
			*gid = group->gr_gid;
		return group;
	}
	path = path_of("/etc/group");
	file = fopen(path, "re");
	free(path);
	while (file && (group = fgetgrent(file)))
		if (!strcmp(group->gr_name, "t3")) {
			*gid = group->gr_gid;
			there = true;
		}
	if (file)
		fclose(file);
	return there;
}

static bool in_group(gid_t gid)
{
	gid_t groups[1024];
	int i, n = getgroups(1024, groups);

	for (i = 0; i < n; i++)
		if (groups[i] == gid)
			return true;
	return getegid() == gid;
}

static void group_is_there(struct findings *f, gid_t gid)
{
	struct passwd *user = getpwuid(getuid());

	if (!geteuid())
		found(f, HEALTHY, "group",
		      must_strdup("t3 is there; root needs no group"), NULL, NULL);
	else if (in_group(gid))
		found(f, HEALTHY, "group",
		      text_of("%s is in t3", user ? user->pw_name : "this user"),
		      NULL, NULL);
	else
		found(f, WARNING, "group",
		      text_of("%s is not in t3", user ? user->pw_name : "this user"),
		      "Only root and members of the group may open /dev/t3.",
		      text_of("usermod -aG t3 %s, then log in again",
			      user ? user->pw_name : "USER"));
}

void examine_group(struct findings *f)
{
	gid_t gid = 0;

	if (group_of_t3(&gid))
		group_is_there(f, gid);
	else
		found(f, PROBLEM, "group", must_strdup("there is no group t3"),
		      "/dev/t3 is root's alone.",
		      must_strdup("systemd-sysusers, or groupadd -r t3; then " RULE));
}

/* --- the next boot --------------------------------------------------------------- */

static bool loads(const char *directory)
{
	char *text = read_text_of("%s/t3.conf", directory);
	const char *at = text;
	bool yes = false;

	while (at && !yes) {
		at += strspn(at, " \t\n");
		yes = !strncmp(at, "t3", 2) && strchr(" \t\n", at[2]);
		at = strchr(at, '\n');
	}
	free(text);
	return yes;
}

void examine_boot(struct findings *f)
{
	static const char * const directories[] = {
		"/etc/modules-load.d", "/usr/lib/modules-load.d",
		"/usr/local/lib/modules-load.d", "/run/modules-load.d",
	};
	size_t i;

	for (i = 0; i < sizeof(directories) / sizeof(*directories); i++) {
		if (!loads(directories[i]))
			continue;
		found(f, HEALTHY, "next boot",
		      text_of("%s/t3.conf loads the module", directories[i]),
		      NULL, NULL);
		return;
	}
	found(f, WARNING, "next boot", must_strdup("nothing loads the module"),
	      "After a reboot there is no /dev/t3.",
	      must_strdup("echo t3 >/etc/modules-load.d/t3.conf; make install does that"));
}
