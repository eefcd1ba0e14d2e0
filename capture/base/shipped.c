/* shipped.c: see shipped.h. */
#include "capture/base/shipped.h"

#include "libref/base/system.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
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

/* Looks for dir + between/folder/name. Returns VN_ERR_NOTFOUND when there is none. Any other
 * failure ends the search, because the next place may hold another version of the file. */
static vn_status find_shipped(char *path, const char *dir, const char *between, const char *folder, const char *name,
                              vn_error *err)
{
	char      detours[PATH_MAX];
	const int n = snprintf(detours, sizeof detours, "%s%s/%s/%s", dir, between, folder, name);

	if (n < 0 || n >= (int)sizeof detours)
		return VN_ERR_NOTFOUND;
	if (realpath(detours, path))
		return VN_OK;
	if (errno == ENOENT || errno == ENOTDIR)
		return VN_ERR_NOTFOUND;
	return vn_fail(err, VN_ERR_IO, "%s: %s", detours, strerror(errno));
}

/* Looks beside the program: in an installed tree, then in a build tree,
 * then in the source around it. */
static vn_status look_beside(char *path, const char *folder, const char *name, vn_error *err)
{
	static const char *const beside[] = { "/../share/vernier", "/../specs", "/../../specs", "/../../../specs" };
	char                     exe[PATH_MAX];
	const ssize_t            n = vn_program_path(exe, sizeof exe - 1);
	vn_status                st = VN_ERR_NOTFOUND;

	if (n < 0 && errno != ENOENT)
		return vn_fail(err, VN_ERR_IO, "the path of this program: %s", strerror(errno));
	if (n <= 0)
		return VN_ERR_NOTFOUND;
	exe[n] = 0;
	char *slash = strrchr(exe, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < sizeof beside / sizeof *beside && st == VN_ERR_NOTFOUND; i++)
		st = find_shipped(path, exe, beside[i], folder, name, err);
	return st;
}

vn_status vn_shipped_find(const char *folder, const char *name, char *path, vn_error *err)
{
	const char *env = getenv("VERNIER_SPECS");
	vn_status   st;

	if (env && *env) {
		st = find_shipped(path, env, "", folder, name, err);
		if (st == VN_ERR_NOTFOUND)
			return vn_fail(err, st, "VERNIER_SPECS=%s: no %s/%s there", env, folder, name);
		return st;
	}
	st = look_beside(path, folder, name, err);
	if (st == VN_ERR_NOTFOUND)
		st = find_shipped(path, VERNIER_SPECS_DIR, "", folder, name, err);
	if (st == VN_ERR_NOTFOUND)
		st = find_shipped(path, VERNIER_SOURCE_SPECS, "", folder, name, err);
	if (st == VN_ERR_NOTFOUND)
		return vn_fail(err, st, "%s/%s: not in %s, nor beside the program; set VERNIER_SPECS", folder, name,
		               VERNIER_SPECS_DIR);
	return st;
}

vn_status vn_shipped_names(const char *folder, const char *ending, char *text, size_t room, vn_error *err)
{
	struct dirent **found;
	char            path[PATH_MAX];
	size_t          used = 0;
	vn_status       st = vn_shipped_find(folder, "", path, err);

	if (st)
		return st;
	const int n = scandir(path, &found, NULL, alphasort);
	if (n < 0)
		return vn_fail(err, VN_ERR_IO, "%s: %s", path, strerror(errno));
	text[0] = '\0';
	for (int i = 0; i < n; i++) {
		const char  *name = found[i]->d_name;
		const size_t length = strlen(name), tail = strlen(ending);
		if (name[0] != '.' && length > tail && strcmp(name + length - tail, ending) == 0 && used + length + 2 < room)
			used += (size_t)snprintf(text + used, room - used, "%s%.*s", used ? "|" : "", (int)(length - tail), name);
		free(found[i]);
	}
	free(found);
	return VN_OK;
}
