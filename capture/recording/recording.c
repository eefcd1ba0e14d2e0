/* recording.c: see recording.h. HDF5 itself runs in a child process: scan.h. */
#include "capture/recording/recording_internal.h"
#include "capture/recording/sequence.h"

#include "libref/base/files.h"
#include "libref/base/map.h"
#include "libref/base/order.h"
#include "libref/base/system.h"
#include "libref/model/other_format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ------------------------------------------------------------------------- */

/* For a link to a file that was not fetched (git-annex, git LFS), "no such file" would be puzzling,
 * because a listing shows it. */
static vn_status not_opened(const char *path, vn_error *err)
{
	const int why = errno;
	char      to[512] = "";

	if (why == ENOENT && readlink(path, to, sizeof to - 1) > 0)
		return vn_fail(err, VN_ERR_IO, "%s: a link to %s, which does not exist", path, to);
	return vn_other_address(path, why, err);
}

enum { HEAD = 52 }; /* bytes of a superblock with its end */

static uint64_t number_at(const unsigned char *at)
{
	uint64_t x = 0;
	for (int i = 7; i >= 0; i--)
		x = x << 8 | at[i];
	return x;
}

/* The bytes of the file by its superblock, of versions 0 to 3: its end less its base address, which
 * is that of a user block before it. 0: it does not say. */
static int64_t said_bytes(const unsigned char head[HEAD])
{
	static const struct {
		int width, base, end;
	} where[] = { { 13, 24, 40 }, { 13, 28, 44 }, { 9, 12, 28 }, { 9, 12, 28 } };
	const int version = head[8];

	if (version > 3 || head[where[version].width] != 8)
		return 0;
	const uint64_t base = number_at(head + where[version].base), end = number_at(head + where[version].end);
	return base <= end && end < INT64_MAX ? (int64_t)(end - base) : 0;
}

/* A tar archive may begin with a recording. */
static bool is_archive(int fd)
{
	static const char mark[] = "ustar";
	char              found[sizeof mark - 1];
	const char       *why;

	return vn_pread_all(fd, found, sizeof found, 257, &why) && memcmp(found, mark, sizeof found) == 0;
}

static vn_status open_file(vn_recording *r, vn_error *err)
{
	static const unsigned char signature[8] = { 0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n' };
	unsigned char              head[HEAD];
	const char                *why;
	struct stat                st;

	/* Non-blocking, because opening a pipe without a writer would hang. */
	if ((r->fd = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
		return not_opened(r->path, err);
	if (vn_stat_settled(r->fd, &st) != 0)
		return vn_fail(err, VN_ERR_IO, "%s: %s", r->path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return vn_fail(err, VN_ERR_IO, "%s: is %s", r->path,
		               S_ISDIR(st.st_mode)
		                   ? "a directory; a recording is one file (of a model, vernier points lists the checkpoints)"
		               : S_ISFIFO(st.st_mode) ? "a pipe; a recording is a file: write what comes out of it to one"
		                                      : "not a regular file");
	vn_input_note(r->fd);
	r->bytes = st.st_size;
	r->device = st.st_dev;
	r->inode = st.st_ino;
	r->changed = st.st_mtim;
	r->touched = st.st_ctim;
	if (r->bytes == 0)
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s: the file is empty: did its copy fail, or was its recording killed at once?", r->path);
	/* HDF5 also looks for its signature at 512, 1024, 2048... in files with a user block. */
	for (int64_t at = 0; at + (int64_t)sizeof head <= r->bytes; at = at ? 2 * at : 512) {
		if (!vn_pread_all(r->fd, head, sizeof head, at, &why))
			return vn_fail(err, VN_ERR_IO, "%s: cannot read it: %s", r->path, why);
		if (memcmp(head, signature, sizeof signature) != 0)
			continue;
		if (at && is_archive(r->fd) && vn_other_format(r->path, false, err))
			return VN_ERR_FORMAT;
		return said_bytes(head) <= r->bytes - at
		           ? VN_OK
		           : vn_fail(err, VN_ERR_FORMAT,
		                     "%s: cut: %" PRId64 " of its %" PRId64 " bytes are here; copy it "
		                     "again, or record it again",
		                     r->path, r->bytes - at, said_bytes(head));
	}
	if (vn_other_format(r->path, false, err))
		return VN_ERR_FORMAT;
	return vn_fail(err, VN_ERR_FORMAT,
	               "%s: not an HDF5 file, as recordings are (vernier import converts dumps of other formats)", r->path);
}

static bool second_name(const vn_entry *e)
{
	const char *dot = strrchr(e->name, '.');
	return *e->point && strcmp(dot ? dot + 1 : e->name, e->point) != 0;
}

/* Sorts the entries in execution order: list (n_entries). */
static vn_status in_order(const vn_recording *r, int *list, vn_error *err)
{
	vn_sequence_entry *x = malloc(((size_t)r->n_entries + 1) * sizeof *x);
	if (!x)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d tensors", r->path, r->n_entries);
	for (int i = 0; i < r->n_entries; i++) {
		const vn_entry *e = &r->entry[i];
		x[i] = (vn_sequence_entry) { .name = e->name,
			                         .point = e->point,
			                         .step = e->step,
			                         .layer = e->layer,
			                         .said = e->order,
			                         .second = second_name(e) };
	}
	const vn_status st = vn_sequence(x, r->n_entries, list, err);
	free(x);
	return st;
}

static int in_name_order(const void *a, const void *b, void *ctx)
{
	const vn_recording *r = ctx;
	const vn_entry     *x = &r->entry[*(const int *)a], *y = &r->entry[*(const int *)b];
	return x->step != y->step ? (x->step < y->step ? -1 : 1) : strcmp(x->name, y->name);
}

/* Sorts names of one object together: by address, then place. */
static int in_file_order(const void *a, const void *b, void *ctx)
{
	const vn_recording *r = ctx;
	const int           i = *(const int *)a, j = *(const int *)b;
	const uint64_t      x = r->source[i].address, y = r->source[j].address;
	return x != y ? (x < y ? -1 : 1) : (i > j) - (i < j);
}

VN_ORDER_BY(by_weight, vn_weight_row, strcmp(x->name, y->name))

VN_ORDER_BY(by_step, vn_step, VN_ORDER(x->number, y->number))

/* Moves entry list[i] to place i, in place, because a second copy of millions would double the
 * memory. Overwrites list. */
static void permute_list(vn_recording *r, int *list)
{
	for (int i = 0; i < r->n_entries; i++) {
		const vn_entry        entry = r->entry[i];
		const vn_entry_source source = r->source[i];
		int                   at = i;
		while (list[at] >= 0) { /* follow the cycle that begins at i */
			const int from = list[at];
			list[at] = -1;
			r->entry[at] = from == i ? entry : r->entry[from];
			r->source[at] = from == i ? source : r->source[from];
			at = from;
		}
	}
}

vn_status vn_recording_sort(vn_recording *r, vn_error *err)
{
	const size_t n = (size_t)r->n_entries;
	int         *list = malloc((n + 1) * sizeof *list);
	vn_status    st = list ? in_order(r, list, err)
	                       : vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d tensors", r->path, r->n_entries);

	if (st) {
		free(list);
		return st;
	}
	permute_list(r, list);
	for (size_t i = 0; i < n; i++)
		list[i] = (int)i;

	vn_sort(list, n, sizeof *list, in_file_order, r);
	for (size_t i = 1, first = 0; i < n; i++) {
		if (r->source[list[i]].address == r->source[list[first]].address)
			r->entry[list[i]].same_as = list[first];
		else
			first = i;
	}
	r->by_name = list;
	vn_sort(list, n, sizeof *list, in_name_order, r);
	for (size_t i = 1; i < n && !st; i++)
		if (in_name_order(&list[i - 1], &list[i], r) == 0)
			st = vn_fail(err, VN_ERR_FORMAT, "%s: %s is in step %d twice", r->path, r->entry[list[i]].name,
			             r->entry[list[i]].step);
	return st;
}

static bool is_replayed(const vn_recording *r)
{
	const char *format = vn_recording_root(r, "format");
	return format && strcmp(format, VN_REPLAYED_FORMAT) == 0;
}

/* Checks what only a complete file must have. */
static vn_status check_complete(vn_recording *r, vn_error *err)
{
	const bool  tokens = !r->has_run_plan || r->ids; /* a module may take other inputs */
	const char *missing = !vn_facts_get(&r->run, "engine")      ? "/run has no attribute engine"
	                      : !vn_facts_get(&r->run, "precision") ? "/run has no attribute precision"
	                      : tokens && !r->ids                   ? "no dataset /run/token_ids"
	                      : tokens && !r->positions             ? "no dataset /run/positions"
	                                                            : NULL;

	if (missing && r->complete && !is_replayed(r))
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s", r->path, missing);
	if (!r->complete && r->n_positions > r->n_ids)
		r->n_positions = r->n_ids; /* positions of the steps it did not reach */
	if (r->n_ids != r->n_positions)
		return vn_fail(err, VN_ERR_FORMAT, "%s: /run: %" PRId64 " token ids, but %" PRId64 " positions", r->path,
		               r->n_ids, r->n_positions);
	if (r->token_text && r->n_texts != r->n_ids)
		return vn_fail(err, VN_ERR_FORMAT, "%s: /run: %" PRId64 " token ids, but %d token texts", r->path, r->n_ids,
		               r->n_texts);
	for (int i = 0; i < r->n_steps; i++)
		if (r->step[i].position + r->step[i].tokens > r->n_ids)
			return vn_fail(err, VN_ERR_FORMAT,
			               "%s: /step.%d: %" PRId64 " tokens from position %" PRId64 " exceed the run's %" PRId64,
			               r->path, r->step[i].number, r->step[i].tokens, r->step[i].position, r->n_ids);
	return VN_OK;
}

/* One row a weight. */
static vn_status sort_weights(vn_recording *r, vn_error *err)
{
	if (r->n_weights)
		qsort(r->weight, (size_t)r->n_weights, sizeof *r->weight, by_weight);
	for (int i = 1; i < r->n_weights; i++)
		if (by_weight(&r->weight[i - 1], &r->weight[i]) == 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /model/weights: %s is listed twice", r->path, r->weight[i].name);
	return VN_OK;
}

static bool same_lines(char *const *a, int n, char *const *b, int m)
{
	bool same = n == m;
	for (int i = 0; i < n && same; i++)
		same = strcmp(a[i], b[i]) == 0;
	return same;
}

static bool same_plan(const vn_recording *a, const vn_recording *b)
{
	const vn_plan_text *x = &a->text, *y = &b->text;
	return a->has_plan && a->plan && x->layers == y->layers && x->vocab == y->vocab && x->context == y->context &&
	       same_lines(x->node, x->n_nodes, y->node, y->n_nodes) &&
	       same_lines(x->value, x->n_values, y->value, y->n_values) &&
	       same_lines(x->weight, x->n_weights, y->weight, y->n_weights);
}

/* A recording holds results of its plan, in its order, and inputs of the run (in.NAME). */
static vn_status check_run_plan(const vn_recording *r, vn_error *err)
{
	int last = -1, step = -1;

	for (int i = 0; i < r->n_entries; i++) {
		const vn_entry *e = &r->entry[i];
		const int       node = vn_run_plan_maker(r->run_plan, e->step, e->name);
		if (strncmp(e->name, "in.", 3) == 0)
			continue;
		if (node < 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: step.%d/%s: the plan has no node that makes it", r->path, e->step,
			               e->name);
		if (e->step == step && node < last)
			return vn_fail(err, VN_ERR_FORMAT, "%s: step.%d/%s: its order contradicts the plan", r->path, e->step,
			               e->name);
		step = e->step;
		last = node;
	}
	return VN_OK;
}

/* Makes the plan from its text. others: n recordings with plans; one with the same text shares its
 * plan. */
static vn_status settle_plan(vn_recording *r, vn_recording *const *others, int n, vn_error *err)
{
	const vn_recording *like = NULL;
	vn_status           st;

	if (r->has_run_plan) {
		st = vn_run_plan_read(r->text.node, r->text.n_nodes, &r->run_plan, err);
		return st ? vn_context(err, st, "%s", r->path) : check_run_plan(r, err);
	}
	if (!r->has_plan)
		return VN_OK;
	for (int i = 0; i < n && !like; i++)
		like = same_plan(others[i], r) ? others[i] : NULL;
	st = like ? vn_plan_clone(like->plan, &r->plan, err) : vn_plan_from_text(&r->text, &r->plan, err);
	return st ? vn_context(err, st, "%s", r->path) : VN_OK;
}

vn_status vn_recording_create(const char *path, vn_recording **out, vn_error *err)
{
	vn_recording *r = *out = calloc(1, sizeof *r);

	if (r) {
		r->fd = -1;
		r->path = strdup(path);
		r->root = json_object();
		r->model = json_object();
	}
	if (r && r->path && r->root && r->model)
		return VN_OK;
	vn_recording_close(r);
	*out = NULL;
	return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", path);
}

static vn_status open_recording(const char *path, vn_recording **recording, vn_error *err)
{
	const vn_status st = vn_recording_create(path, recording, err);
	return st ? st : open_file(*recording, err);
}

/* One object has one header. A child that reports two is compromised, and a reader of the second
 * name would trust the first. */
static vn_status check_second_names(const vn_recording *r, vn_error *err)
{
	for (int i = 0; i < r->n_entries; i++) {
		const vn_entry *e = &r->entry[i], *first = e->same_as >= 0 ? &r->entry[e->same_as] : e;
		if (e->dtype != first->dtype || !vn_shape_equal(&e->shape, &first->shape) ||
		    r->source[i].offset != r->source[first - r->entry].offset)
			return vn_fail(err, VN_ERR_FORMAT, "%s: damaged HDF5 structure (%s and %s are one object and differ)",
			               r->path, e->name, first->name);
	}
	return VN_OK;
}

static vn_status check_steps(const vn_recording *r, vn_error *err)
{
	for (int i = 1; i < r->n_steps; i++)
		if (r->step[i].number == r->step[i - 1].number)
			return vn_fail(err, VN_ERR_FORMAT, "%s: damaged HDF5 structure (step.%d appears twice)", r->path,
			               r->step[i].number);
	return VN_OK;
}

/* A tensor that was left out must not also be recorded, or be listed twice: there would be two
 * statements about it. */
static vn_status sort_left_out(vn_recording *r, vn_error *err)
{
	vn_left_out_sort(r->left_out, r->n_left_out);
	for (int i = 0; i < r->n_left_out; i++) {
		const vn_left_out *l = &r->left_out[i];
		if (i > 0 && l[-1].step == l->step && strcmp(l[-1].name, l->name) == 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /run/left_out: %s of step %d is listed twice", r->path, l->name,
			               l->step);
		if (vn_recording_find(r, l->step, l->name) >= 0)
			return vn_fail(err, VN_ERR_FORMAT, "%s: /run/left_out: %s of step %d is recorded", r->path, l->name,
			               l->step);
	}
	return VN_OK;
}

/* Sorts and checks what the child sent. */
static vn_status sort_and_check(vn_recording *r, vn_recording *const *others, int n, vn_error *err)
{
	vn_status st;

	if (r->n_steps)
		qsort(r->step, (size_t)r->n_steps, sizeof *r->step, by_step);
	if ((st = check_steps(r, err)) || (st = vn_recording_sort(r, err)) || (st = check_second_names(r, err)) ||
	    (st = check_complete(r, err)) || (st = sort_weights(r, err)))
		return st;
	vn_recording_mark_rows(r);
	if ((st = vn_proofs_make(r, err)))
		return st;
	st = settle_plan(r, others, n, err);
	return st ? st : sort_left_out(r, err);
}

/* pipe: vn_recording_of_frames; -1: none. replayed: a replay file is expected, else recordings. */
typedef struct vn_opening {
	int  pipe;
	bool replayed;
} vn_opening;

static vn_status check_format(const vn_recording *r, bool replayed, vn_error *err)
{
	if (is_replayed(r) == replayed)
		return VN_OK;
	return vn_fail(err, VN_ERR_FORMAT,
	               !replayed ? "%s: a replay file, not a recording: vernier compare takes it with --replayed"
	                         : "%s: a recording, not a replay file, which python -m vernier_parity replay writes",
	               r->path);
}

static vn_status open_recordings(const char *const *path, int n, vn_opening how, vn_recording **r, vn_error *err)
{
	const int pipe = how.pipe;
	vn_error  why = { "" };
	vn_status unopened = VN_OK, st;
	int       opened = 0;

	for (int i = 0; i < n; i++)
		r[i] = NULL;
	while (opened < n && !(unopened = open_recording(path[opened], &r[opened], &why)))
		opened++;
	if (pipe >= 0 && !opened)
		close(pipe);
	st = pipe >= 0 && opened ? vn_receive_pipe(r[0], pipe, err) : vn_receive(r, opened, err);
	for (int i = 0; i < opened && !st; i++)
		if (!(st = check_format(r[i], how.replayed, err)))
			st = sort_and_check(r[i], r, i, err);
	for (int i = 0; i < opened; i++)
		vn_plan_text_free(&r[i]->text);
	if (!st && (st = unopened) && err)
		*err = why;
	for (int i = 0; i < n && st; i++) {
		vn_recording_close(r[i]);
		r[i] = NULL;
	}
	return st;
}

vn_status vn_recording_of_frames(const char *path, int pipe, vn_recording **r, vn_error *err)
{
	return open_recordings(&path, 1, (vn_opening) { pipe, false }, r, err);
}

vn_status vn_recording_open_all(const char *const *path, int n, vn_recording **r, vn_error *err)
{
	return open_recordings(path, n, (vn_opening) { -1, false }, r, err);
}

vn_status vn_recording_open_replayed(const char *path, vn_recording **r, vn_error *err)
{
	return open_recordings(&path, 1, (vn_opening) { -1, true }, r, err);
}

vn_status vn_recording_open(const char *path, vn_recording **recording, vn_error *err)
{
	return vn_recording_open_all(&path, 1, recording, err);
}

void vn_recording_close(vn_recording *r)
{
	if (!r)
		return;
	vn_recording_unmap(r);
	if (r->fd >= 0)
		close(r->fd);
	json_decref(r->root);
	json_decref(r->model);
	vn_plan_text_free(&r->text);
	vn_plan_destroy(r->plan);
	vn_run_plan_free(r->run_plan);
	for (int k = 0; k < VN_N_REPLAYED_LINES; k++) {
		for (int i = 0; i < r->replayed[k].n; i++)
			free(r->replayed[k].line[i]);
		free(r->replayed[k].line);
	}
	VN_FREE(r->ids, r->positions, r->padding.row);
	for (int i = 0; i < r->n_texts; i++)
		free(r->token_text[i]);
	free(r->token_text);
	for (int i = 0; i < r->n_left_out; i++)
		vn_left_out_finish(&r->left_out[i]);
	free(r->left_out);
	for (int i = 0; i < VN_UNREAD_NAMED; i++)
		free(r->unread[i]);
	VN_FREE(r->weight, r->step);
	for (int i = 0; i < r->n_entries && r->source; i++)
		VN_FREE(r->source[i].view, r->source[i].gathered);
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_close(r->base[i]);
	free(r->base);
	if (r->foreign.close)
		r->foreign.close(r->foreign.context);
	VN_FREE(r->entry, r->source, r->stats);
	vn_proofs_free(r);
	VN_FREE(r->by_name, r->path, r);
}
