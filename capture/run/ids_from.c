/* ids_from.c: see ids_from.h. */
#include "capture/run/ids_from.h"

#include "capture/file/place.h"
#include "capture/recording/recording.h"
#include "capture/run/arguments.h"

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

	if (vn_recording_batch(r))
		return vn_fail(err, VN_ERR_USAGE, "%s: %s holds a batch of prompts; --ids takes the tokens of one", option,
		               path);
	if (from < 0 || to <= from)
		return vn_fail(err, VN_ERR_USAGE, "%s: %s has no %stoken ids", option, path,
		               part == VN_IDS_DECODED ? "decoded " : "");
	*n = to - from;
	if (!(*ids = malloc((size_t)*n * sizeof **ids)))
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for the token ids", path);
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

vn_status vn_ids_from(const char *option, const char *path, vn_ids_part part, int32_t **ids, int64_t *n, vn_error *err)
{
	vn_recording *r = NULL;
	vn_status     st = vn_recording_open(path, &r, err);

	*ids = NULL;
	*n = 0;
	if (st == VN_ERR_FORMAT && is_list(path))
		vn_fail(err, st, "%s: holds a list of token ids, and %s takes a recording: give %.*s @%s", path, option,
		        (int)(strlen(option) - strlen("-from")), option, path);
	if (!st)
		st = copy_ids(option, r, part, ids, n, err);
	vn_recording_close(r);
	return st;
}
