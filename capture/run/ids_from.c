/* ids_from.c: see ids_from.h. */
#include "capture/run/ids_from.h"

#include "capture/file/place.h"
#include "capture/recording/recording.h"
#include "capture/run/arguments.h"
#include "capture/view/batched.h"
#include "libref/base/alloc.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static vn_status copy_ids(const char *option, const vn_recording *r, vn_ids_part part, int32_t **ids, int64_t *n,
                          vn_error *err)
{
	const char    *path = vn_recording_path(r);
	const int32_t *all = NULL;
	const int64_t  total = vn_recording_tokens(r, &all, NULL), decoded = vn_recording_decoded(r);
	const int64_t  from = part == VN_IDS_DECODED ? total - decoded : 0,
				  to = part == VN_IDS_PROMPT ? total - decoded : total;

	if (from < 0 || to <= from)
		return vn_fail(err, VN_ERR_USAGE, "%s: %s has no %stoken ids", option, path,
		               part == VN_IDS_DECODED ? "decoded " : "");
	*n = to - from;
	*ids = vn_alloc((size_t)*n, sizeof **ids);
	memcpy(*ids, all + from, (size_t)*n * sizeof **ids);
	return VN_OK;
}

vn_status vn_ids_kept(const char *option, const char *output, const char *path, vn_error *err)
{
	return !vn_same_file(output, path)
	           ? VN_OK
	           : vn_fail(err, VN_ERR_USAGE, "%s: %s reads this recording; write the new one under another name", output,
	                     option);
}

/* Does the file hold ids as --ids takes them? */
static bool is_list(const char *path)
{
	char     file[PATH_MAX + 1];
	int32_t *ids;
	int64_t  n;
	vn_error why;

	if (snprintf(file, sizeof file, "@%s", path) >= (int)sizeof file || vn_arguments_read_ids("", file, &ids, &n, &why))
		return false;
	free(ids);
	return true;
}

/* Takes the prompt that is asked for. */
static vn_status take_row(const vn_ids_source *from, vn_recording **r, vn_error *err)
{
	int64_t         several;
	const vn_status st = vn_batched_take(r, from->row, "--batch-row", &several, err);

	return st || !several ? st
	                      : vn_fail(err, VN_ERR_USAGE,
	                                "%s: %s holds %" PRId64 " prompts one after another: select one with --batch-row 0 "
	                                "to %" PRId64,
	                                from->option, from->path, several, several - 1);
}

vn_status vn_ids_from(const vn_ids_source *from, vn_ids_part part, int32_t **ids, int64_t *n, vn_error *err)
{
	vn_recording *r = NULL;
	vn_status     st = vn_recording_open(from->path, &r, err);

	*ids = NULL;
	*n = 0;
	if (st == VN_ERR_FORMAT && is_list(from->path))
		vn_fail(err, st, "%s: holds a list of token ids, and %s takes a recording: give %.*s @%s", from->path,
		        from->option, (int)(strlen(from->option) - strlen("-from")), from->option, from->path);
	if (!st && !(st = take_row(from, &r, err)))
		st = copy_ids(from->option, r, part, ids, n, err);
	vn_recording_close(r);
	return st;
}
