/* import_write.c: an import into a checkpoint file; see import.h. */
#include "capture/import/import.h"

#include "capture/store/store.h"

#include "libref/base/alloc.h"
#include "libref/base/progress.h"
#include "libref/base/text.h"
#include "libref/text/tokenizer.h"

#include <stdlib.h>
#include <unistd.h>

enum { PIECE = 1 << 20 }; /* bytes copied at a time */

static vn_tensor_label label_of(const vn_entry *e)
{
	/* The order of tensors in an imported file may differ from that of computation, so it is
	 * derived from their names. */
	vn_tensor_label l = vn_label_of_name(e->name);
	snprintf(l.op, sizeof l.op, "%s", e->op);
	snprintf(l.axes, sizeof l.axes, "%s", e->axes);
	snprintf(l.source_line, sizeof l.source_line, "%s", e->source_line);
	return l;
}

static vn_status put_tensor(vn_import *i, vn_store *s, int entry, unsigned char *piece, vn_error *err)
{
	const vn_entry       *e = vn_recording_entry(i->r, entry);
	const vn_tensor_label l = label_of(e);
	const int64_t         n = vn_shape_count(&e->shape), most = PIECE / (int64_t)vn_dtype_size(e->dtype);
	vn_status             st = vn_store_begin(s, &l, e->dtype, &e->shape, err);

	for (int64_t at = 0; !st && at < n; at += most) {
		const int64_t count = n - at < most ? n - at : most;
		if (!(st = vn_recording_read(i->r, entry, at, count, piece, err)))
			st = vn_store_write(s, piece, (size_t)count, err);
	}
	vn_recording_release(i->r, entry);
	return st ? st : vn_store_end(s, err);
}

/* *put: how many tensors were given to the store. */
static vn_status put_steps(vn_import *i, vn_store *s, unsigned char *piece, int *put, vn_error *err)
{
	const vn_step                        *step;
	const int                             n = vn_recording_steps(i->r, &step), count = vn_recording_count(i->r);
	VN_ENDS(vn_progress_stop) vn_progress bar = { 0 };
	vn_status                             st = VN_OK;

	vn_progress_start(&bar, "tensor", count);
	for (int k = 0, e = 0; !st && k < n; k++) {
		st = vn_store_step(s, &step[k], err);
		for (; !st && e < count && vn_recording_entry(i->r, e)->step == step[k].number; e++) {
			vn_progress_at(&bar, e);
			if (i->o->unmapped != VN_UNMAPPED_LEFT_OUT || vn_import_knows(i->plan, vn_recording_entry(i->r, e)->name)) {
				st = put_tensor(i, s, e, piece, err);
				++*put;
			}
		}
	}
	return st;
}

/* The text of the tokens, if the model has a tokenizer. */
static vn_status put_text(vn_import *i, vn_store *s, const int32_t *ids, int64_t n, vn_error *err)
{
	vn_tokenizer *t = NULL;

	if (!i->o->model || vn_tokenizer_open(i->o->model, &t, NULL))
		return VN_OK;
	VN_FREED char **text = vn_alloc((size_t)n, sizeof *text);
	for (int64_t k = 0; k < n; k++)
		text[k] = vn_alloc_check(vn_tokenizer_show(t, ids[k]));
	const vn_status st = vn_store_token_text(s, text, n, err);
	for (int64_t k = 0; k < n; k++)
		free(text[k]);
	vn_tokenizer_close(t);
	return st;
}

/* The weights that the engine lists, or those of the model. */
static vn_status put_model(vn_import *i, vn_store *s, vn_error *err)
{
	const vn_model_words read = { .family = vn_recording_family(i->r), .config = vn_recording_config(i->r) };
	const vn_model_words words = i->model ? (vn_model_words) { .family = vn_model_family(i->model),
		                                                       .config = vn_model_config(i->model),
		                                                       .provenance = vn_model_provenance(i->model),
		                                                       .path = vn_model_path(i->model) }
	                                      : read;
	if (i->dump->n_weights || (!i->model && (words.family || words.config)))
		return vn_store_words(s, &words, i->dump->weight, i->dump->n_weights, err);
	if (!i->model)
		return VN_OK;
	VN_FREED vn_weight_row *rows = vn_alloc_zero((size_t)vn_model_plan(i->model)->n_weights, sizeof *rows);
	const long              threads = sysconf(_SC_NPROCESSORS_ONLN);
	vn_model_table(i->model, threads < 1 ? 1 : (int)threads, rows);
	return vn_store_model(s, i->model, rows, err);
}

static bool holds_weights(const vn_dump *d)
{
	int n = 0;

	for (int k = 0; k < d->n; k++)
		n += vn_text_ends(d->array[k].name, ".weight") || vn_text_ends(d->array[k].name, ".bias");
	return n && n == d->n;
}

vn_status vn_import_write(vn_import *i, const char *path, bool force, int64_t *tensors, int64_t *bytes, vn_error *err)
{
	const int32_t          *ids, *positions;
	const int64_t           n = vn_recording_tokens(i->r, &ids, &positions);
	VN_FREED unsigned char *piece = vn_alloc(1, PIECE);
	vn_store               *s = NULL;
	int                     put = 0;
	vn_status               st = vn_store_create_whole(path, force, &s, err);

	if (!st)
		vn_store_batch(s, vn_recording_batch(i->r));
	if (!st && !(st = vn_store_run(s, vn_recording_run(i->r), ids, positions, n, err)) &&
	    !(st = put_text(i, s, ids, n, err)) && !(st = put_model(i, s, err)) &&
	    !(st = put_steps(i, s, piece, &put, err))) {
		*tensors = vn_store_tensors(s, bytes);
		if (!i->dump->complete)
			vn_store_cut(s);
		/* What was given and is not there failed, and the commit says why. */
		st = put ? vn_store_commit(&s, err)
		         : vn_fail(err, VN_ERR_NOTFOUND, "%s: no tensor of it becomes a checkpoint%s; --dry-run lists them",
		                   vn_recording_path(i->r),
		                   holds_weights(i->dump) ? ": it holds the weights of a model, which vernier capture runs"
		                                          : "");
	}
	vn_store_abandon(&s);
	return st;
}
