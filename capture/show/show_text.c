/* show_text.c: a recording, its weights and one tensor of it, for people. */
#include "capture/show/show.h"
#include "capture/base/warnings.h"
#include "capture/recording/numbers.h"
#include "libref/base/text.h"
#include "libref/base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much of a tensor is printed. */
enum { FIRST_ROWS = 16, FIRST_COLUMNS = 6, FIRST_PROMPTS = 8, FIRST_TOKENS = 16, FIRST_BYTES = 96, UNSOUND = 8 };

size_t vn_show_put(const char *text)
{
	char        *shown = vn_utf8_shown(text, strlen(text));
	const size_t n = strlen(shown ? shown : "?");

	fputs(shown ? shown : "?", stdout);
	free(shown);
	return n;
}

double vn_show_value(const void *data, vn_dtype dtype, int64_t k)
{
	double x;
	vn_to_f64(&x, (const char *)data + (size_t)k * vn_dtype_size(dtype), dtype, 1);
	return x;
}

static void put_fact(const char *key, const char *value)
{
	printf("  ");
	for (size_t n = vn_show_put(key); n < 16; n++)
		putchar(' ');
	putchar(' ');
	vn_show_put(value ? value : "unknown");
	putchar('\n');
}

void vn_show_state(const vn_recording *r)
{
	vn_show_put(vn_recording_path(r));
	if (vn_recording_complete(r)) {
		printf(": complete");
	} else {
		printf(": INCOMPLETE: its run was interrupted or still goes on");
	}
	printf("; %d tensor%s\n", vn_recording_count(r), vn_recording_count(r) == 1 ? "" : "s");
}

/* Prints the text of n tokens together, because a character may span several. */
static void put_said(char *const *text, int64_t n)
{
	size_t room = 1, length = 0;

	for (int64_t i = 0; i < n; i++)
		room += strlen(text[i]);
	char *all = malloc(room);
	for (int64_t i = 0; all && i < n; i++)
		length = (size_t)(stpcpy(all + length, text[i]) - all);
	length = all && length ? vn_utf8_unescape(all) : 0;
	size_t shown = length < FIRST_BYTES ? length : FIRST_BYTES;
	while (shown < length && shown > FIRST_BYTES - 4 && vn_utf8_length_before(all, shown) == 0)
		shown--; /* do not cut inside a character */
	char *line = vn_utf8_escape(all, shown);
	if (line)
		printf("  %-16s %s%s\n", "text", line, shown < length ? " ..." : "");
	free(line);
	free(all);
}

/* text: the tokens' text, or NULL. */
static void put_ids(const char *key, const int32_t *ids, char *const *text, int64_t n)
{
	printf("  %-16s %" PRId64 ":", key, n);
	for (int64_t i = 0; i < n && i < FIRST_TOKENS; i++)
		printf(" %" PRId32, ids[i]);
	printf("%s\n", n > FIRST_TOKENS ? " ..." : "");
	if (text)
		put_said(text, n);
}

static void show_unread(const vn_recording *r)
{
	const char *name[VN_UNREAD_NAMED];
	const int   n = vn_recording_unread(r, name);
	char        text[32];

	for (int i = 0; i < n && i < VN_UNREAD_NAMED; i++)
		put_fact(i ? "" : "not read", name[i]);
	snprintf(text, sizeof text, "and %d more", n - VN_UNREAD_NAMED);
	if (n > VN_UNREAD_NAMED)
		put_fact("", text);
}

static void show_run(const vn_recording *r)
{
	const vn_facts *f = vn_recording_run(r);
	const vn_step  *step;
	const int32_t  *ids;
	int64_t         n = vn_recording_tokens(r, &ids, NULL);
	int             steps = vn_recording_steps(r, &step);
	char *const    *said = vn_recording_token_text(r);
	const int64_t   batch = vn_recording_batch(r);
	const int64_t   prompt = steps > 1 && batch == 0 && step[0].position == 0 ? step[0].tokens : n;

	printf("\nrun\n");
	put_fact("created", vn_recording_root(r, "created"));
	put_fact("tool", vn_recording_root(r, "tool"));
	put_fact("tool_version", vn_recording_root(r, "tool_version"));
	for (int i = 0; i < f->n; i++)
		put_fact(f->fact[i].key, f->fact[i].value);
	if (batch) {
		char text[96];
		snprintf(text, sizeof text, "%" PRId64 " prompt%s of %" PRId64 " tokens", batch, batch == 1 ? "" : "s",
		         n / batch);
		put_fact("batch", text);
	}
	for (int64_t i = 0; i < batch && i < FIRST_PROMPTS; i++)
		put_ids(i == 0 ? "tokens" : "", ids + i * (n / batch), said ? said + i * (n / batch) : NULL, n / batch);
	if (!batch)
		put_ids("tokens", ids, said, prompt);
	if (prompt < n)
		put_ids("then", ids + prompt, said ? said + prompt : NULL, n - prompt);
	show_unread(r);
}

static void show_model(const vn_recording *r)
{
	const vn_weight_row *w;
	int                  n = vn_recording_weights(r, &w);
	int64_t              values = 0, odd = 0;
	char                 text[96];

	printf("\nmodel\n");
	put_fact("family", vn_recording_family(r));
	put_fact("provenance", vn_recording_provenance(r));
	put_fact("format", vn_recording_format(r));
	for (int i = 0; i < n; i++) {
		values += w[i].stats.n;
		odd += w[i].stats.nan + w[i].stats.inf;
	}
	snprintf(text, sizeof text, "%d tensor%s, %" PRId64 " values, %" PRId64 " of them not finite", n, n == 1 ? "" : "s",
	         values, odd);
	put_fact("weights", n ? text : "not recorded");
	for (int i = 0, told = 0; i < n && told < UNSOUND; i++)
		if (w[i].stats.nan + w[i].stats.inf) {
			snprintf(text, sizeof text, "%" PRId64 " NaN, %" PRId64 " infinite", w[i].stats.nan, w[i].stats.inf);
			put_fact(w[i].name, text);
			told++;
		}
	put_fact("plan", vn_recording_plan(r) ? "recorded" : "not recorded");
}

static void put_number(double x)
{
	printf(" %11.4g", x);
}

/* Prints the weight table, which reveals another revision or a matrix that was never loaded. */
void vn_show_weights(const vn_recording *r)
{
	const vn_weight_row *w;
	int                  n = vn_recording_weights(r, &w);
	char                 shape[VN_SHAPE_TEXT];

	printf("%-50s dtype %-18s %11s %11s %11s %11s %8s %8s  digest\n", "weight", "shape", "min", "max", "mean", "rms",
	       "nan", "inf");
	for (int i = 0; i < n; i++) {
		const size_t n_name = vn_show_put(w[i].name);
		printf("%*s %-5s %-18s", (int)(n_name < 50 ? 50 - n_name : 0), "", vn_dtype_name(w[i].dtype),
		       vn_shape_text(&w[i].shape, shape));
		put_number(w[i].stats.min);
		put_number(w[i].stats.max);
		put_number(w[i].stats.mean);
		put_number(w[i].stats.rms);
		printf(" %8" PRId64 " %8" PRId64 "  %s\n", w[i].stats.nan, w[i].stats.inf, w[i].digest.hex);
	}
}

/* Statistics from the file, or else computed from the numbers. False: the numbers cannot be read. */
static bool statistics_of(vn_recording *r, int entry, vn_stats *stats)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	vn_stats_sum    sum = { 0 };
	vn_numbers     *numbers;
	vn_status       st;

	if (vn_recording_stats(r, e)) {
		*stats = *vn_recording_stats(r, e);
		return true;
	}
	if (!(numbers = vn_numbers_open(r, entry, NULL)))
		return false;
	st = VN_OK;
	for (int64_t at = 0, n = vn_numbers_count(numbers); !st && at < n; at += VN_NUMBERS) {
		const size_t m = vn_numbers_left(n, at);
		if (!(st = vn_numbers_raw(numbers, at, m, NULL)))
			vn_stats_add(&sum, numbers->raw, e->dtype, m);
	}
	vn_numbers_close(numbers);
	vn_recording_forget(r);
	*stats = vn_stats_finish(&sum);
	return !st;
}

void vn_show_step(vn_recording *r, const vn_step *s)
{
	char     shape[VN_SHAPE_TEXT];
	vn_stats stats;

	printf("\nstep.%d: %" PRId64 " token%s after %" PRId64 ", rows %" PRId64 " from %" PRId64 "\n", s->number,
	       s->tokens, s->tokens == 1 ? "" : "s", s->position, s->rows, s->first_row);
	printf("  %5s %-28s %-5s %-18s %11s %11s %11s %11s %8s %8s\n", "order", "name", "dtype", "shape", "min", "max",
	       "mean", "rms", "nan", "inf");
	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		if (e->step != s->number)
			continue;
		printf("  %5d ", e->order);
		const size_t n_name = vn_show_put(e->name);
		printf("%*s %-5s %-18s", n_name < 28 ? 28 - (int)n_name : 0, "", vn_dtype_name(e->dtype),
		       vn_shape_text(&e->shape, shape));
		if (e->same_as >= 0) {
			printf(" the same as ");
			vn_show_put(vn_recording_entry(r, e->same_as)->name);
		} else if (statistics_of(r, i, &stats)) {
			put_number(stats.min);
			put_number(stats.max);
			put_number(stats.mean);
			put_number(stats.rms);
			printf(" %8" PRId64 " %8" PRId64, stats.nan, stats.inf);
		}
		putchar('\n');
	}
}

/* Index after the last tensor of a step, whose tensors begin at `at` and are contiguous. */
static int behind(const vn_recording *r, const vn_step *s, int at)
{
	while (at < vn_recording_count(r) && vn_recording_entry(r, at)->step == s->number)
		at++;
	return at;
}

static void show_alike(const vn_step *first, const vn_step *last, int tensors)
{
	printf("\nstep.%d", first->number);
	if (last > first)
		printf(" to step.%d", last->number);
	printf(": %" PRId64 " token%s after %" PRId64, first->tokens, first->tokens == 1 ? "" : "s", first->position);
	if (last > first)
		printf(" to %" PRId64, last->position);
	printf(", %d tensor%s%s (vernier show FILE step.%d)\n", tensors, tensors == 1 ? "" : "s",
	       last > first ? " each" : "", first->number);
}

/* Shows the first step in full. Decoding may add thousands, so equal steps share a line. */
static void show_steps(vn_recording *r)
{
	const vn_step *step;
	const int      n = vn_recording_steps(r, &step);
	int            at = n ? behind(r, &step[0], 0) : 0;

	if (n)
		vn_show_step(r, &step[0]);
	for (int i = 1, j; i < n; i = j) {
		int       next = behind(r, &step[i], at), more;
		const int tensors = next - at;
		for (j = i + 1; j < n && step[j].tokens == step[i].tokens; j++, next = more)
			if ((more = behind(r, &step[j], next)) - next != tensors)
				break;
		at = next;
		show_alike(&step[i], &step[j - 1], tensors);
	}
}

void vn_show_all(vn_recording *r)
{
	vn_show_state(r);
	show_run(r);
	show_model(r);
	show_steps(r);
}

/* ---- one tensor ------------------------------------------------------------------- */

/* Shows the first rows, each with statistics and first values. */
static void show_rows(const vn_entry *e, const void *data)
{
	const int64_t n = vn_shape_count(&e->shape), rows = e->shape.rank > 1 ? e->shape.dim[0] : 1;
	const int64_t width = rows ? n / rows : 0;

	if (n == 0)
		return;
	printf("\n  %5s %11s %11s %11s %11s   first of %" PRId64 " values\n", "row", "min", "max", "mean", "rms", width);
	for (int64_t t = 0; t < rows && t < FIRST_ROWS; t++) {
		const char *row = (const char *)data + (size_t)(t * width) * vn_dtype_size(e->dtype);
		vn_stats    s = vn_stats_of(row, e->dtype, (size_t)width);
		printf("  %5" PRId64, t);
		put_number(s.min);
		put_number(s.max);
		put_number(s.mean);
		put_number(s.rms);
		printf("  ");
		for (int64_t k = 0; k < width && k < FIRST_COLUMNS; k++)
			printf(" %.9g", vn_show_value(row, e->dtype, k));
		printf("%s\n", width > FIRST_COLUMNS ? " ..." : "");
	}
	if (rows > FIRST_ROWS)
		printf("  ... %" PRId64 " more rows\n", rows - FIRST_ROWS);
}

static void put_real(const char *key, double x)
{
	char text[40];
	snprintf(text, sizeof text, "%.9g", x);
	put_fact(key, text);
}

static void put_whole(const char *key, int64_t x)
{
	char text[40];
	snprintf(text, sizeof text, "%" PRId64, x);
	put_fact(key, text);
}

void vn_show_tensor(const vn_recording *r, int i, const void *data)
{
	const vn_entry *e = vn_recording_entry(r, i);
	const size_t    n = (size_t)vn_shape_count(&e->shape);
	const vn_stats  s = vn_stats_of(data, e->dtype, n);
	const vn_digest digest = vn_entry_digest(e);
	char            shape[VN_SHAPE_TEXT];

	vn_show_state(r);
	printf("\nstep.%d/", e->step);
	vn_show_put(e->name);
	putchar('\n');
	put_fact("dtype", vn_dtype_name(e->dtype));
	put_fact("shape", vn_shape_text(&e->shape, shape));
	put_fact("axes", *e->axes ? e->axes : NULL);
	put_fact("basis", *e->basis ? e->basis : NULL);
	put_fact("point", *e->point ? e->point : NULL);
	put_fact("op", *e->op ? e->op : NULL);
	put_whole("layer", e->layer);
	put_whole("order", e->order);
	if (e->same_as >= 0)
		put_fact("the same as", vn_recording_entry(r, e->same_as)->name);
	put_fact("digest", *digest.hex ? digest.hex : NULL);
	put_real("min", s.min);
	put_real("max", s.max);
	put_real("mean", s.mean);
	put_real("rms", s.rms);
	put_real("absmax", s.absmax);
	put_whole("nan", s.nan);
	put_whole("inf", s.inf);
	show_rows(e, data);
}
