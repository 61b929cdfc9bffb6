// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The plug-in: found beside the library, loaded where its runtime is there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gpu.h"

static const char *const names[] = { "libt3-cuda.so", "libt3-hip.so" };

const struct t3_gpu_runtime *gpu;

/* Where the library itself lies, with the slash; "" where that isn't known. */
static void own_folder(char *path, size_t bytes)
{
	const char *folder = secure_getenv("T3_PLUGIN_DIR");
	char *slash;
	Dl_info info;

	path[0] = '\0';
	if (folder && *folder) {
		snprintf(path, bytes, "%s/", folder);
		return;
	}
	if (!dladdr(names, &info) || !info.dli_fname)
		return;
	snprintf(path, bytes, "%s", info.dli_fname);
	slash = strrchr(path, '/');
	path[slash ? slash + 1 - path : 0] = '\0';
}

/* The loader's words without the path that they begin with. */
static const char *last_part(const char *text)
{
	const char *slash = text ? strrchr(text, '/') : NULL;

	return slash ? slash + 1 : text ? text : "unknown";
}

static const struct t3_gpu_runtime *load(const char *name, char *why,
					 size_t bytes)
{
	const struct t3_gpu_runtime *found;
	char path[1024];
	void *handle;

	own_folder(path, sizeof(path) - 64);
	strcat(path, name);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle && path[0] == '/' && access(path, F_OK))
		handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		snprintf(why, bytes, "%s", last_part(dlerror()));
		return NULL;
	}
	found = dlsym(handle, T3_GPU_RUNTIME_SYMBOL);
	if (!found || found->abi != T3_GPU_RUNTIME_ABI) {
		snprintf(why, bytes, "%s is of another version of t3", name);
		dlclose(handle);
		return NULL;
	}
	if (!found->probe(why, bytes))
		return found;
	/* Runtimes do not like to be unloaded: it stays. */
	return NULL;
}

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;

int gpu_probe(char *why, size_t bytes)
{
	char text[2][120] = { "", "" };
	int ret = -ENODEV;
	size_t i;

	pthread_mutex_lock(&load_lock);
	for (i = 0; i < ARRAY_SIZE(names) && !gpu; i++)
		gpu = load(names[i], text[i], sizeof(text[i]));
	if (gpu)
		ret = gpu->probe(why, bytes);
	else
		snprintf(why, bytes, "gpu: %s; %s", text[0], text[1]);
	pthread_mutex_unlock(&load_lock);
	return ret;
}

int gpu_fail(const char *call, int error)
{
	return t3_fail(error < 0 ? -error : error, "%s: the GPU: %s", call,
		       gpu->error());
}
