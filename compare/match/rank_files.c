/* rank_files.c: see rank_files.h. */
#include "compare/match/rank_files.h"
#include "compare/match/folders.h"

#include "libref/base/alloc.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool vn_rank_files_named(const char *argument)
{
	return vn_match_is_folder(argument) || (strchr(argument, ',') && access(argument, F_OK) != 0);
}

static vn_status add_path(vn_rank_files *ranks, const char *path, size_t n)
{
	ranks->file = vn_alloc_resized(ranks->file, (size_t)ranks->n + 1, sizeof *ranks->file);
	ranks->file[ranks->n++] = vn_alloc_check(strndup(path, n));
	return VN_OK;
}

static vn_status list_folder(const char *folder, vn_rank_files *ranks, vn_error *err)
{
	VN_ENDS(vn_folder_pairs_free) vn_folder_pairs p = { 0 };
	char                                          path[PATH_MAX];
	vn_status                                     st = vn_folder_pairs_of(&folder, 1, &p, err);

	if (!st)
		vn_folder_pairs_by_number(&p);
	for (int i = 0; i < p.n && !st; i++) {
		const size_t n = strlen(folder);
		const int    room = snprintf(path, sizeof path, "%s%s%s", folder, n && folder[n - 1] == '/' ? "" : "/",
		                             p.pair[i].name);
		st = room < PATH_MAX ? add_path(ranks, path, (size_t)room)
		                     : vn_fail(err, VN_ERR_USAGE, "%s/%s: the path is too long", folder, p.pair[i].name);
	}
	return st;
}

vn_status vn_rank_files_of(const char *argument, vn_rank_files *ranks, vn_error *err)
{
	vn_status st = VN_OK;

	*ranks = (vn_rank_files) { 0 };
	if (vn_match_is_folder(argument))
		return list_folder(argument, ranks, err);
	if (!vn_rank_files_named(argument))
		return add_path(ranks, argument, strlen(argument));
	for (const char *at = argument; at && !st;) {
		const size_t n = strcspn(at, ",");
		st = n ? add_path(ranks, at, n)
		       : vn_fail(err, VN_ERR_USAGE, "%s: an empty name: the files of one candidate are joined by single commas",
		                 argument);
		at = at[n] ? at + n + 1 : NULL;
	}
	return st;
}

void vn_rank_files_free(vn_rank_files *ranks)
{
	for (int i = 0; i < ranks->n; i++)
		free(ranks->file[i]);
	free(ranks->file);
	*ranks = (vn_rank_files) { 0 };
}
