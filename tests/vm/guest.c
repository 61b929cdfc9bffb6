// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What a test guest needs and its busybox lacks; the name it is called by
 * chooses:
 *
 *   vm-exit N               ends the VM; QEMU's exit status is (N << 1) | 1
 *   setuidgid USER CMD...   runs CMD as USER (of /etc/passwd), no other group
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <unistd.h>

#define EXIT_PORT 0xf4	/* as given to QEMU's isa-debug-exit */

static int vm_exit(const char *arg)
{
	unsigned char n = (unsigned char)atoi(arg);
	int fd;

	if (!ioperm(EXIT_PORT, 1, 1))
		outb(n, EXIT_PORT);
	/* a kernel without ioperm may still have /dev/port */
	fd = open("/dev/port", O_WRONLY);
	if (fd >= 0 && pwrite(fd, &n, 1, EXIT_PORT) == 1)
		pause();
	perror("vm-exit: neither ioperm nor /dev/port");
	return 1;
}

/* No getpwnam(): in a static program it wants libc's shared objects. */
static int find_user(const char *name, uid_t *uid, gid_t *gid)
{
	FILE *f = fopen("/etc/passwd", "r");
	struct passwd *p;

	while (f && (p = fgetpwent(f))) {
		if (!strcmp(p->pw_name, name)) {
			*uid = p->pw_uid;
			*gid = p->pw_gid;
			fclose(f);
			return 0;
		}
	}
	if (f)
		fclose(f);
	fprintf(stderr, "setuidgid: no user %s in /etc/passwd\n", name);
	return -1;
}

static int run_as(const char *user, char **cmd)
{
	uid_t uid;
	gid_t gid;

	if (find_user(user, &uid, &gid))
		return 125;
	if (setgroups(0, NULL) || setresgid(gid, gid, gid) ||
	    setresuid(uid, uid, uid)) {
		perror("setuidgid");
		return 125;
	}
	execvp(cmd[0], cmd);
	perror(cmd[0]);
	return 127;
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');

	name = name ? name + 1 : argv[0];
	if (!strcmp(name, "vm-exit") && argc == 2)
		return vm_exit(argv[1]);
	if (!strcmp(name, "setuidgid") && argc > 2)
		return run_as(argv[1], argv + 2);
	fprintf(stderr, "usage: vm-exit N | setuidgid USER CMD...\n");
	return 2;
}
