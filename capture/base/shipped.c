/* shipped.c: see shipped.h. */
#include "capture/base/shipped.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef VERNIER_SPECS_DIR
#define VERNIER_SPECS_DIR "/usr/local/share/vernier"
#endif
#ifndef VERNIER_SOURCE_SPECS
#define VERNIER_SOURCE_SPECS "specs"
#endif

static bool readable(char *path, const char *dir, const char *between, const char *folder, const char *name)
{
	char plain[PATH_MAX];
	const int n = snprintf(path, PATH_MAX, "%s%s/%s/%s", dir, between, folder, name);
	if (n < 0 || n >= PATH_MAX || access(path, R_OK) != 0)
		return false;
	/* Reports quote it: without the detours, where that is possible. */
	if (realpath(path, plain))
		memcpy(path, plain, strlen(plain) + 1);
	return true;
}

vn_status vn_shipped_find(const char *folder, const char *name, char *path, vn_error *err)
{
	static const char *const beside[] = { "/../share/vernier", "/../../specs", "/../../../specs" };
	const char *env = getenv("VERNIER_SPECS");
	char exe[PATH_MAX];

	if (env && *env) {
		if (readable(path, env, "", folder, name))
			return VN_OK;
		return vn_fail(err, VN_ERR_NOTFOUND, "VERNIER_SPECS=%s: no %s/%s there", env, folder, name);
	}
	const ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	if (n > 0) {
		exe[n] = 0;
		char *slash = strrchr(exe, '/');
		if (slash)
			*slash = 0;
		for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
			if (readable(path, exe, beside[i], folder, name))
				return VN_OK;
	}
	if (readable(path, VERNIER_SPECS_DIR, "", folder, name) || readable(path, VERNIER_SOURCE_SPECS, "", folder, name))
		return VN_OK;
	return vn_fail(err, VN_ERR_NOTFOUND, "%s/%s: not in %s, nor beside the program; set VERNIER_SPECS",
	               folder, name, VERNIER_SPECS_DIR);
}
