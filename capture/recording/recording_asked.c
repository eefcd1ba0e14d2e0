/* recording_asked.c: the functions that return facts about an open recording; see recording.h. */
#include "capture/recording/recording_internal.h"

#include "libref/base/grow.h"
#include "libref/base/intern.h"
#include "libref/base/order.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool vn_pread_all(int fd, void *to, size_t n, int64_t at, const char **why)
{
	for (char *p = to; n > 0;) {
		const ssize_t got = pread(fd, p, n, (off_t)at);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			*why = got < 0 ? strerror(errno) : "the file became shorter";
			return false;
		}
		p += got;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

vn_status vn_recording_bytes(const vn_recording *r, int i, vn_file_part part, void *to, vn_error *err)
{
	const char *why;
	return vn_pread_all(part.fd, to, part.n, part.at, &why)
	           ? VN_OK
	           : vn_fail(err, VN_ERR_IO, "%s: cannot read %s: %s", r->path, r->entry[i].name, why);
}

/* Replaces texts by their copies. Returns false without memory. */
static bool intern_texts(vn_entry *e)
{
	const char **text[] = { &e->name, &e->point, &e->op, &e->basis, &e->axes, &e->source_line, &e->again };

	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		if (*text[i] && !(*text[i] = vn_intern(*text[i])))
			return false;
	return true;
}

bool vn_recording_add(vn_recording *r, const vn_entry *e, const vn_entry_source *s)
{
	const size_t n = (size_t)r->n_entries;
	vn_entry     own = *e;

	if (!intern_texts(&own) || !VN_GROW(r->entry, n) || !VN_GROW(r->source, n))
		return false;
	own.same_as = -1;
	r->entry[n] = own;
	r->source[n] = *s;
	r->n_entries++;
	return true;
}

bool vn_recording_keep_stats(vn_recording *r, vn_entry *e, const vn_stats *stats)
{
	if (!VN_GROW(r->stats, r->n_stats))
		return false;
	r->stats[r->n_stats] = *stats;
	e->stats = ++r->n_stats;
	return true;
}

static const char *text_of(const json_t *words, const char *key)
{
	return json_string_value(json_object_get(words, key));
}

const char *vn_recording_path(const vn_recording *r)
{
	return r->path;
}

const char *vn_recording_shown(const vn_recording *r)
{
	const char *shown = vn_facts_get(vn_recording_run(r), "shown_as");
	return shown ? shown : r->path;
}

static int add_unread(const vn_recording *r, int n, const char **name)
{
	for (int i = 0; i < r->n_unread && i < VN_UNREAD_NAMED; i++)
		if (n + i < VN_UNREAD_NAMED)
			name[n + i] = r->unread[i];
	n += r->n_unread;
	for (int i = 0; i < r->n_bases; i++)
		n = add_unread(r->base[i], n, name);
	return n;
}

int vn_recording_unread(const vn_recording *r, const char *name[VN_UNREAD_NAMED])
{
	return add_unread(r, 0, name);
}

int vn_recording_ranks(const vn_recording *r)
{
	return r->ranks;
}

bool vn_recording_complete(const vn_recording *r)
{
	return r->complete;
}

const vn_facts *vn_recording_run(const vn_recording *r)
{
	return &r->run;
}

const char *vn_recording_root(const vn_recording *r, const char *key)
{
	return text_of(r->root, key);
}

int64_t vn_recording_tokens(const vn_recording *r, const int32_t **ids, const int32_t **positions)
{
	if (ids)
		*ids = r->ids;
	if (positions)
		*positions = r->positions;
	return r->n_ids;
}

int64_t vn_recording_batch(const vn_recording *r)
{
	return r->batch;
}

char *const *vn_recording_token_text(const vn_recording *r)
{
	return r->token_text;
}

int vn_recording_left_out(const vn_recording *r, const vn_left_out **list)
{
	*list = r->left_out;
	return r->n_left_out;
}

const char *vn_recording_family(const vn_recording *r)
{
	return text_of(r->model, "family");
}

const char *vn_recording_config(const vn_recording *r)
{
	return text_of(r->model, "config");
}

const char *vn_recording_model_named(const vn_recording *r)
{
	const char *path = r ? text_of(r->model, "path") : NULL;
	return path && *path ? path : NULL;
}

const char *vn_recording_model_here(const vn_recording *r)
{
	const char *path = vn_recording_model_named(r);
	return path && access(path, R_OK) == 0 ? path : NULL;
}

const char *vn_recording_provenance(const vn_recording *r)
{
	const char *said = text_of(r->model, "provenance");
	return said && (strcmp(said, "trained") == 0 || strcmp(said, "synthetic") == 0) ? said : "unknown";
}

bool vn_recording_copied_weights(const vn_recording *r)
{
	const char *from = vn_facts_get(vn_recording_run(r), VN_WEIGHTS_FROM);
	return from && strcmp(from, "model") == 0;
}

const char *vn_recording_format(const vn_recording *r)
{
	return text_of(r->model, "format");
}

int vn_recording_weights(const vn_recording *r, const vn_weight_row **rows)
{
	*rows = r->weight;
	return r->n_weights;
}

const vn_plan *vn_recording_plan(const vn_recording *r)
{
	return r->plan;
}

bool vn_recording_has_mtp(const vn_recording *r)
{
	const vn_plan *plan = vn_recording_plan(r);

	return plan && vn_plan_of_point(plan, VN_POINT_MTP_LOGITS) >= 0;
}

const vn_run_plan *vn_recording_run_plan(const vn_recording *r)
{
	return r->run_plan;
}

const vn_recording_lines *vn_recording_replayed(const vn_recording *r, vn_replayed_lines which)
{
	return &r->replayed[which];
}

int vn_recording_steps(const vn_recording *r, const vn_step **steps)
{
	*steps = r->step;
	return r->n_steps;
}

static bool same_tokens(const vn_recording *a, const vn_recording *b)
{
	const vn_step *x = a->step, *y = b->step;
	const int      n = a->n_steps - 1, m = b->n_steps - 1;

	return n >= 0 && m >= 0 && x->position == y->position && x[n].position + x[n].tokens == y[m].position + y[m].tokens;
}

int vn_recording_calls(const vn_recording *r, const vn_step **calls)
{
	const vn_recording *all = r;

	for (const vn_recording *of = r; of->n_bases && same_tokens(r, of->base[0]); of = of->base[0])
		all = of->base[0]->n_steps > all->n_steps ? of->base[0] : all;
	*calls = all->step;
	return all->n_steps;
}

VN_ORDER_BY(compare_numbers, vn_step, VN_ORDER(x->number, y->number))

const vn_step *vn_recording_step(const vn_recording *r, int number)
{
	const vn_step key = { .number = number };
	return r->n_steps ? bsearch(&key, r->step, (size_t)r->n_steps, sizeof key, compare_numbers) : NULL;
}

int64_t vn_recording_decoded(const vn_recording *r)
{
	const vn_step *step;
	int64_t        n = 0;

	for (int i = vn_recording_steps(r, &step) - 1; i > 0 && step[i].tokens == 1; i--)
		n++;
	return n;
}

int vn_recording_layers(const vn_recording *r)
{
	const vn_plan *plan = vn_recording_plan(r);
	int            last = -1;
	for (int i = 0; !plan && i < vn_recording_count(r); i++)
		last = vn_recording_entry(r, i)->layer > last ? vn_recording_entry(r, i)->layer : last;
	return plan ? plan->layers : last + 1;
}

int vn_recording_count(const vn_recording *r)
{
	return r->n_entries;
}

const vn_entry *vn_recording_entry(const vn_recording *r, int i)
{
	return &r->entry[i];
}

const char *vn_recording_say_tensors(const vn_recording *r, int from, int to, char words[VN_TENSORS_WORDS])
{
	int second = 0, n;

	for (int i = from; i < to; i++)
		second += r->entry[i].same_as >= 0;
	n = snprintf(words, VN_TENSORS_WORDS, "%d tensor%s", to - from - second, to - from - second == 1 ? "" : "s");
	if (second)
		snprintf(words + n, (size_t)(VN_TENSORS_WORDS - n), ", %d of them also under a second name", second);
	return words;
}

static int find_exactly(const vn_recording *r, int step, const char *name)
{
	int low = 0, high = r->n_entries;

	while (low < high) {
		int             mid = low + (high - low) / 2, i = r->by_name[mid];
		const vn_entry *e = &r->entry[i];
		int             c = e->step != step ? (e->step < step ? -1 : 1) : strcmp(e->name, name);
		if (c == 0)
			return i;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return -1;
}

int vn_recording_find(const vn_recording *r, int step, const char *name)
{
	int i = find_exactly(r, step, name);
	int v = i < 0 && r->plan ? vn_plan_find(r->plan, name) : -1;

	if (v < 0)
		return i;
	v = vn_plan_root(r->plan, v);
	for (int w = 0; w < r->plan->n_values && i < 0; w++)
		if (vn_plan_root(r->plan, w) == v)
			i = find_exactly(r, step, r->plan->value[w].name);
	return i;
}

const vn_stats *vn_recording_stats(const vn_recording *r, const vn_entry *e)
{
	return e->stats > 0 && r->stats ? &r->stats[e->stats - 1] : NULL;
}

void vn_recording_drop_stats(vn_recording *r)
{
	free(r->stats);
	r->stats = NULL;
	r->n_stats = 0;
	for (int i = 0; i < r->n_bases; i++)
		vn_recording_drop_stats(r->base[i]);
}
