/* show_text.c: prints a recording, its weights, or one of its tensors, as text. */
#include "capture/show/show_text.h"
#include "capture/recording/left_out.h"
#include "capture/recording/numbers.h"
#include "libref/base/alloc.h"
#include "libref/base/say.h"
#include "libref/base/text.h"
#include "libref/base/utf8.h"
#include "libref/family/family.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much of a tensor is printed. */
enum { FIRST_ROWS = 16, FIRST_COLUMNS = 6, FIRST_PROMPTS = 8, FIRST_TOKENS = 16, FIRST_BYTES = 96, UNSOUND = 8 };

size_t vn_show_put(const char *text, FILE *out)
{
	VN_FREED char *shown = vn_utf8_shown(text, strlen(text));
	const size_t   n = strlen(shown ? shown : "?");

	fputs(shown ? shown : "?", out);
	return n;
}

double vn_show_value(const void *data, vn_dtype dtype, int64_t k)
{
	double x;
	vn_to_f64(&x, (const char *)data + (size_t)k * vn_dtype_size(dtype), dtype, 1);
	return x;
}

static void put_fact(const char *key, const char *value, FILE *out)
{
	fprintf(out, "  ");
	for (size_t n = vn_show_put(key, out); n < 16; n++)
		fputc(' ', out);
	fputc(' ', out);
	vn_show_put(value ? value : "unknown", out);
	fputc('\n', out);
}

void vn_show_state(const vn_recording *r, FILE *out)
{
	char words[VN_TENSORS_WORDS];

	vn_show_put(vn_recording_path(r), out);
	if (vn_recording_complete(r)) {
		fprintf(out, ": complete");
	} else {
		fprintf(out, ": INCOMPLETE: its run was interrupted or is still running");
	}
	vn_say(out, "; %s", vn_recording_say_tensors(r, 0, vn_recording_count(r), words));
}

/* Prints the text of n tokens together, because a character may span several. */
static void put_said(char *const *text, int64_t n, FILE *out)
{
	size_t room = 1, length = 0;

	for (int64_t i = 0; i < n; i++)
		room += strlen(text[i]);
	VN_FREED char *all = vn_alloc_zero(room, 1);
	for (int64_t i = 0; i < n; i++)
		length = (size_t)(stpcpy(all + length, text[i]) - all);
	length = vn_utf8_unescape(all);
	size_t shown = length < FIRST_BYTES ? length : FIRST_BYTES;
	while (shown < length && shown > FIRST_BYTES - 4 && vn_utf8_length_before(all, shown) == 0)
		shown--; /* do not cut inside a character */
	VN_FREED char *line = vn_alloc_check(vn_utf8_escape(all, shown));
	vn_say(out, "  %-16s %s%s\n", "text", line, shown < length ? " ..." : "");
}

/* text: the tokens' text, or NULL. */
static void put_ids(const char *key, const int32_t *ids, char *const *text, int64_t n, FILE *out)
{
	vn_say(out, "  %-16s %" PRId64 ":", key, n);
	for (int64_t i = 0; i < n && i < FIRST_TOKENS; i++)
		fprintf(out, " %" PRId32, ids[i]);
	vn_say(out, "%s\n", n > FIRST_TOKENS ? " ..." : "");
	if (text)
		put_said(text, n, out);
}

static void show_unread(const vn_recording *r, FILE *out)
{
	const char *name[VN_UNREAD_NAMED];
	const int   n = vn_recording_unread(r, name);
	char        text[32];

	for (int i = 0; i < n && i < VN_UNREAD_NAMED; i++)
		put_fact(i ? "" : "not read", name[i], out);
	snprintf(text, sizeof text, "and %d more", n - VN_UNREAD_NAMED);
	if (n > VN_UNREAD_NAMED)
		put_fact("", text, out);
}

static void show_left_out(const vn_recording *r, FILE *out)
{
	const vn_left_out *list;
	const int          n = vn_recording_left_out(r, &list);
	char               text[80];

	snprintf(text, sizeof text, "%d tensor%s, which agreed with the reference", n, n == 1 ? "" : "s");
	if (n)
		put_fact("left out", text, out);
}

static void show_run(const vn_recording *r, FILE *out)
{
	const vn_facts *f = vn_recording_run(r);
	const vn_step  *step;
	const int32_t  *ids;
	int64_t         n = vn_recording_tokens(r, &ids, NULL);
	int             steps = vn_recording_steps(r, &step);
	char *const    *said = vn_recording_token_text(r);
	const int64_t   batch = vn_recording_batch(r);
	const int64_t   prompt = steps > 1 && batch == 0 && step[0].position == 0 ? step[0].tokens : n;

	fprintf(out, "\nrun\n");
	put_fact("created", vn_recording_root(r, "created"), out);
	put_fact("tool", vn_recording_root(r, "tool"), out);
	put_fact("tool_version", vn_recording_root(r, "tool_version"), out);
	for (int i = 0; i < f->n; i++)
		put_fact(f->fact[i].key, f->fact[i].value, out);
	if (batch) {
		char text[96];
		snprintf(text, sizeof text, "%" PRId64 " prompt%s of %" PRId64 " tokens", batch, batch == 1 ? "" : "s",
		         n / batch);
		put_fact("batch", text, out);
	}
	for (int64_t i = 0; i < batch && i < FIRST_PROMPTS; i++)
		put_ids(i == 0 ? "tokens" : "", ids + i * (n / batch), said ? said + i * (n / batch) : NULL, n / batch, out);
	if (!batch)
		put_ids("tokens", ids, said, prompt, out);
	if (prompt < n)
		put_ids("then", ids + prompt, said ? said + prompt : NULL, n - prompt, out);
	show_left_out(r, out);
	show_unread(r, out);
}

/* The settings of a node that engines read from the config. Returns their kind; NULL: none. */
static const char *write_settings(const vn_plan *p, const vn_node *n, char text[120])
{
	static const char *const rope[VN_N_ROPES] = { "no scaling", "linear", "yarn", "llama3", "dynamic", "longrope" };
	const vn_rope           *r = &n->c.rope.rope;

	switch (n->op) {
	case VN_OP_RMS_NORM:
	case VN_OP_LAYER_NORM:
	case VN_OP_GATED_NORM: snprintf(text, 120, "%g", n->c.norm.eps); return "eps";
	case VN_OP_ROPE:
		snprintf(text, 120, "theta %g, %d of %d columns, %s", r->theta, r->rotary_dim, p->value[n->out[0]].size[2],
		         rope[r->type]);
		if (r->type != VN_ROPE_DEFAULT)
			vn_text_add(text, 120, ", factor %g", r->factor);
		return "rope";
	case VN_OP_ATTENTION:
		snprintf(text, 120, "%d query heads and %d key heads of %d columns, scale %g", n->c.attention.heads,
		         n->c.attention.kv_heads, n->c.attention.head_dim, n->c.attention.scale);
		if (n->c.attention.window)
			vn_text_add(text, 120, ", window %d", n->c.attention.window);
		if (n->c.attention.cap != 0)
			vn_text_add(text, 120, ", cap %g", n->c.attention.cap);
		return "attention";
	case VN_OP_DELTA_RULE:
		snprintf(text, 120, "%d key heads of %d columns, %d value heads of %d", n->c.delta.key_heads,
		         n->c.delta.key_dim, n->c.delta.value_heads, n->c.delta.value_dim);
		return "delta rule";
	default: return NULL;
	}
}

/* Prints different settings once each. */
static void show_settings(const vn_recording *r, FILE *out)
{
	enum { SETTINGS = 32 };
	const char    *config = vn_recording_config(r);
	vn_plan       *made = vn_recording_plan(r) || !config ? NULL : vn_family_plan(config, NULL);
	const vn_plan *p = vn_recording_plan(r) ? vn_recording_plan(r) : made;
	char           said[SETTINGS][120];
	int            n = 0;

	for (int i = 0; p && i < p->n_nodes && n < SETTINGS; i++) {
		const char *kind = write_settings(p, &p->node[i], said[n]);
		bool        known = false;
		if (!kind)
			continue;
		for (int k = 0; k < n; k++)
			known = known || strcmp(said[k], said[n]) == 0;
		if (!known)
			put_fact(kind, said[n++], out);
	}
	vn_plan_destroy(made);
}

static void show_model(const vn_recording *r, FILE *out)
{
	const vn_weight_row *w;
	int                  n = vn_recording_weights(r, &w);
	int64_t              values = 0, odd = 0;
	char                 text[96];

	fprintf(out, "\nmodel\n");
	put_fact("family", vn_recording_family(r), out);
	put_fact("provenance", vn_recording_provenance(r), out);
	put_fact("format", vn_recording_format(r), out);
	for (int i = 0; i < n; i++) {
		values += w[i].stats.n;
		odd += w[i].stats.nan + w[i].stats.inf;
	}
	snprintf(text, sizeof text, "%d tensor%s, %" PRId64 " values, %" PRId64 " of them not finite", n, n == 1 ? "" : "s",
	         values, odd);
	put_fact("weights", n ? text : "not recorded", out);
	for (int i = 0, told = 0; i < n && told < UNSOUND; i++)
		if (w[i].stats.nan + w[i].stats.inf) {
			snprintf(text, sizeof text, "%" PRId64 " NaN, %" PRId64 " infinite", w[i].stats.nan, w[i].stats.inf);
			put_fact(w[i].name, text, out);
			told++;
		}
	put_fact("plan", vn_recording_plan(r) || vn_recording_run_plan(r) ? "recorded" : "not recorded", out);
	show_settings(r, out);
}

static void put_statistics(const vn_stats *s, FILE *out)
{
	fprintf(out, " %11.4g %11.4g %11.4g %11.4g", s->min, s->max, s->mean, s->rms);
}

/* Prints the weight table, which reveals another revision or a matrix that was never loaded. */
void vn_show_weights(const vn_recording *r, FILE *out)
{
	const vn_weight_row *w;
	int                  n = vn_recording_weights(r, &w);
	char                 shape[VN_SHAPE_TEXT];

	vn_say(out, "%-50s dtype %-18s %11s %11s %11s %11s %8s %8s  digest\n", "weight", "shape", "min", "max", "mean",
	       "rms", "nan", "inf");
	for (int i = 0; i < n; i++) {
		const size_t n_name = vn_show_put(w[i].name, out);
		vn_say(out, "%*s %-5s %-18s", (int)(n_name < 50 ? 50 - n_name : 0), "", vn_dtype_name(w[i].dtype),
		       vn_shape_text(&w[i].shape, shape));
		put_statistics(&w[i].stats, out);
		vn_say(out, " %8" PRId64 " %8" PRId64 "  %s\n", w[i].stats.nan, w[i].stats.inf, w[i].digest.hex);
	}
}

/* Statistics from the file, or else computed from the numbers.
 * False: the numbers cannot be read. */
static bool statistics_of(vn_recording *r, int entry, vn_stats *stats)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	vn_numbers     *numbers;

	if (vn_recording_stats(r, e)) {
		*stats = *vn_recording_stats(r, e);
		return true;
	}
	if (!(numbers = vn_numbers_open(r, entry, NULL)))
		return false;
	const vn_status st = vn_numbers_stats(numbers, stats, NULL);
	vn_numbers_close(numbers);
	vn_recording_forget(r);
	return !st;
}

void vn_show_step(vn_recording *r, const vn_step *s, FILE *out)
{
	char     shape[VN_SHAPE_TEXT];
	vn_stats stats;

	vn_say(out, "\nstep.%d: %" PRId64 " token%s from position %" PRId64 ", %" PRId64 " row%s from row %" PRId64 "\n",
	       s->number, s->tokens, s->tokens == 1 ? "" : "s", s->position, s->rows, s->rows == 1 ? "" : "s",
	       s->first_row);
	vn_say(out, "  %5s %-28s %-5s %-18s %11s %11s %11s %11s %8s %8s\n", "order", "name", "dtype", "shape", "min", "max",
	       "mean", "rms", "nan", "inf");
	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		if (e->step != s->number)
			continue;
		fprintf(out, "  %5d ", e->order);
		const size_t n_name = vn_show_put(e->name, out);
		vn_say(out, "%*s %-5s %-18s", n_name < 28 ? 28 - (int)n_name : 0, "", vn_dtype_name(e->dtype),
		       vn_shape_text(&e->shape, shape));
		if (e->same_as >= 0) {
			fprintf(out, " the same as ");
			vn_show_put(vn_recording_entry(r, e->same_as)->name, out);
		} else if (statistics_of(r, i, &stats)) {
			put_statistics(&stats, out);
			fprintf(out, " %8" PRId64 " %8" PRId64, stats.nan, stats.inf);
		}
		fputc('\n', out);
	}
}

/* Returns the index after the last tensor of a step; at: the index of its first. */
static int count_behind(const vn_recording *r, const vn_step *s, int at)
{
	while (at < vn_recording_count(r) && vn_recording_entry(r, at)->step == s->number)
		at++;
	return at;
}

/* tensors: in words */
static void show_alike(const vn_step *first, const vn_step *last, const char *tensors, FILE *out)
{
	fprintf(out, "\nstep.%d", first->number);
	if (last > first)
		fprintf(out, " to step.%d", last->number);
	vn_say(out, ": %" PRId64 " token%s%s from position %" PRId64, first->tokens, first->tokens == 1 ? "" : "s",
	       last > first ? " each," : "", first->position);
	if (last > first)
		fprintf(out, " (step.%d: %" PRId64 ")", last->number, last->position);
	vn_say(out, ", %s%s (vernier show FILE step.%d)\n", last > first ? "each with " : "", tensors, first->number);
}

/* Shows the first step in full. Decoding may add thousands, so equal steps share a line. */
static void show_steps(vn_recording *r, FILE *out)
{
	const vn_step *step;
	const int      n = vn_recording_steps(r, &step);
	int            at = n ? count_behind(r, &step[0], 0) : 0;
	char           words[VN_TENSORS_WORDS];

	if (n)
		vn_show_step(r, &step[0], out);
	for (int i = 1, j; i < n; i = j) {
		int       next = count_behind(r, &step[i], at), more;
		const int tensors = next - at;
		for (j = i + 1; j < n && step[j].tokens == step[i].tokens; j++, next = more)
			if ((more = count_behind(r, &step[j], next)) - next != tensors)
				break;
		show_alike(&step[i], &step[j - 1], vn_recording_say_tensors(r, at, at + tensors, words), out);
		at = next;
	}
}

void vn_show_all(vn_recording *r, FILE *out)
{
	vn_show_state(r, out);
	fputc('\n', out);
	show_run(r, out);
	show_model(r, out);
	show_steps(r, out);
}

/* ---- one tensor ------------------------------------------------------------------- */

/* Shows the first rows, each with statistics and first values. */
static void show_rows(const vn_entry *e, const void *data, FILE *out)
{
	const int64_t n = vn_shape_count(&e->shape), rows = e->shape.rank > 1 ? e->shape.dim[0] : 1;
	const int64_t width = rows ? n / rows : 0;

	if (n == 0)
		return;
	vn_say(out, "\n  %5s %11s %11s %11s %11s   first of %" PRId64 " values\n", "row", "min", "max", "mean", "rms",
	       width);
	for (int64_t t = 0; t < rows && t < FIRST_ROWS; t++) {
		const char *row = (const char *)data + (size_t)(t * width) * vn_dtype_size(e->dtype);
		vn_stats    s = vn_stats_of(row, e->dtype, (size_t)width);
		fprintf(out, "  %5" PRId64, t);
		put_statistics(&s, out);
		fprintf(out, "  ");
		for (int64_t k = 0; k < width && k < FIRST_COLUMNS; k++)
			fprintf(out, " %.9g", vn_show_value(row, e->dtype, k));
		vn_say(out, "%s\n", width > FIRST_COLUMNS ? " ..." : "");
	}
	if (rows > FIRST_ROWS)
		fprintf(out, "  ... %" PRId64 " more rows\n", rows - FIRST_ROWS);
}

static void put_real(const char *key, double x, FILE *out)
{
	char text[40];
	snprintf(text, sizeof text, "%.9g", x);
	put_fact(key, text, out);
}

static void put_whole(const char *key, int64_t x, FILE *out)
{
	char text[40];
	snprintf(text, sizeof text, "%" PRId64, x);
	put_fact(key, text, out);
}

void vn_show_tensor(const vn_recording *r, int i, const void *data, FILE *out)
{
	const vn_entry *e = vn_recording_entry(r, i);
	const size_t    n = (size_t)vn_shape_count(&e->shape);
	const vn_stats  s = vn_stats_of(data, e->dtype, n);
	const vn_digest digest = vn_entry_digest(e);
	char            shape[VN_SHAPE_TEXT];

	vn_show_state(r, out);
	fprintf(out, "\n\nstep.%d/", e->step);
	vn_show_put(e->name, out);
	fputc('\n', out);
	put_fact("dtype", vn_dtype_name(e->dtype), out);
	put_fact("shape", vn_shape_text(&e->shape, shape), out);
	put_fact("axes", *e->axes ? e->axes : NULL, out);
	put_fact("basis", *e->basis ? e->basis : NULL, out);
	put_fact("point", *e->point ? e->point : NULL, out);
	put_fact("op", *e->op ? e->op : NULL, out);
	if (*e->source_line)
		put_fact("recorded at", e->source_line, out);
	put_whole("layer", e->layer, out);
	put_whole("order", e->order, out);
	if (e->same_as >= 0)
		put_fact("the same as", vn_recording_entry(r, e->same_as)->name, out);
	put_fact("digest", *digest.hex ? digest.hex : NULL, out);
	put_real("min", s.min, out);
	put_real("max", s.max, out);
	put_real("mean", s.mean, out);
	put_real("rms", s.rms, out);
	put_real("absmax", s.absmax, out);
	put_whole("nan", s.nan, out);
	put_whole("inf", s.inf, out);
	show_rows(e, data, out);
}
