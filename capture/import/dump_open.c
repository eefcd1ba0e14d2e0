/* dump_open.c: finds the kind of a dump, and opens it; see dump.h. */
#include "capture/import/dump.h"
#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/text.h"
#include "libref/model/other_format.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Explains, for each unsupported format, what to do instead. */
static vn_status refuse_path(const char *path, vn_error *err)
{
	if (vn_other_format(path, false, err))
		return VN_ERR_UNSUPPORTED;
	if (vn_text_ends(path, ".npy"))
		return vn_fail(err, VN_ERR_USAGE,
		               "%s: one tensor; a directory of .npy files is imported: put it in one, under the name of its "
		               "checkpoint (logits.npy)",
		               path);
	if (vn_text_ends(path, ".h5") || vn_text_ends(path, ".hdf5"))
		return vn_fail(
			err, VN_ERR_USAGE,
			"%s: HDF5 files are not imported: vernier compare reads a recording directly (--names translates its "
			"names); save the tensors of another program as .npz",
			path);
	return vn_fail(err, VN_ERR_USAGE,
	               "%s: expected a directory of .npy files, .npz, .safetensors, .gguf, or a tree of transformers' "
	               "model_debugging_utils (.json)",
	               path);
}

static vn_status open_kind(vn_dump *d, vn_error *err)
{
	static const struct {
		const char *ending;
		vn_status (*open)(vn_dump *d, vn_error *err);
	} kind[] = {
		{ ".npz", vn_dump_open_npz },
		{ ".safetensors", vn_dump_open_safetensors },
		{ ".gguf", vn_dump_open_gguf },
		{ ".json", vn_dump_open_tree },
	};
	struct stat s;
	if (stat(d->path, &s) != 0)
		return vn_other_address(d->path, errno, err);
	if (S_ISDIR(s.st_mode))
		return vn_dump_open_directory(d, err);
	for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
		if (vn_text_ends(d->path, kind[i].ending))
			return kind[i].open(d, err);
	return refuse_path(d->path, err);
}

VN_ORDER_BY(by_file, vn_array *const, strcmp((*x)->file, (*y)->file))

/* Tied tensors may be one file. But a list of a few bytes for each name must not turn one file into
 * thousands of tensors. */
static vn_status check_files(const vn_dump *d, vn_error *err)
{
	enum { MOST_NAMES = 64 };
	VN_FREED const vn_array **list = vn_alloc((size_t)d->n, sizeof *list);
	vn_status                 st = VN_OK;
	int                       n = 0;

	for (int i = 0; i < d->n; i++)
		if (d->array[i].file)
			list[n++] = &d->array[i];
	qsort(list, (size_t)n, sizeof *list, by_file);
	for (int i = MOST_NAMES; i < n && !st; i++)
		if (strcmp(list[i]->file, list[i - MOST_NAMES]->file) == 0)
			st = vn_fail(err, VN_ERR_FORMAT, "%s: %s is the file of more than %d tensors", d->path, list[i]->file,
			             MOST_NAMES);
	return st;
}

/* Adds steps that appear only in the names of arrays. */
static vn_status count_steps(vn_dump *d, vn_error *err)
{
	int last = -1;
	if (!d->has_steps)
		vn_dump_calls(d);
	for (int i = 0; i < d->n; i++)
		last = d->array[i].step > last ? d->array[i].step : last;
	while (!d->has_steps && d->n_steps <= last) {
		const vn_status st = vn_dump_step(d, 0, err);
		if (st)
			return st;
	}
	return VN_OK;
}

static vn_status no_tensor(const char *path, vn_error *err)
{
	char config[PATH_MAX];

	if (snprintf(config, sizeof config, "%s/config.json", path) < (int)sizeof config && access(config, F_OK) == 0)
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s: a model, not a dump of its tensors: vernier capture ref %s ... records it", path, path);
	return vn_fail(err, VN_ERR_FORMAT, "%s: holds no tensor of .npy, .npz, safetensors or GGUF", path);
}

vn_status vn_dump_open(const char *path, vn_dump **out, vn_error *err)
{
	vn_dump *d = *out = vn_alloc_zero(1, sizeof *d);
	d->path = vn_alloc_text(path);
	d->held = -1;
	d->complete = true;
	vn_status st = open_kind(d, err);
	if (!st && d->n == 0)
		st = d->n_left ? vn_fail(err, VN_ERR_FORMAT, "%s: none of its tensors is whole: %d, the first: %s", path,
		                         d->n_left, d->left)
		               : no_tensor(path, err);
	st = st ? st : (st = check_files(d, err)) ? st : count_steps(d, err);
	if (st) {
		vn_dump_close(d);
		*out = NULL;
	}
	return st;
}
