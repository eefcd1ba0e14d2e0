/* shown.c: see shown.h. */
#include "capture/recording/shown.h"

#include "libref/base/alloc.h"
#include "libref/base/text.h"
#include "libref/plan/policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* SAMPLE: numbers read from the start of each tensor. ENOUGH_TO_TELL_FORMAT: fewer numbers prove
 * nothing. */
enum { SAMPLE = 512, ENOUGH_TO_TELL_FORMAT = 16, FORMATS = 4, NAMED = 3 };

static const vn_dtype format[FORMATS] = { VN_BF16, VN_F16, VN_F32, VN_F64 }; /* narrowest first */

static int format_index(vn_dtype d)
{
	int i = 0;
	while (i < FORMATS && format[i] != d)
		i++;
	return i;
}

static vn_point_format voice_of(const vn_entry *e)
{
	const vn_point_info *p = vn_entry_point(e);
	if (e->same_as >= 0 || format_index(e->dtype) == FORMATS)
		return VN_FORMAT_HIDES;
	/* layer 0 receives the embedding */
	return p == vn_point_get(VN_POINT_INPUT) && e->layer == 0 ? VN_FORMAT_HIDES : p ? p->format : VN_FORMAT_MAY;
}

/* Engines often compute the last product and the routers alone in float32. */
static bool is_head(const vn_entry *e)
{
	static const vn_point head[] = { VN_POINT_LOGITS, VN_POINT_RAW_LOGITS, VN_POINT_ROUTER_LOGITS,
		                             VN_POINT_ROUTER_WEIGHTS };
	const vn_point_info  *p = vn_entry_point(e);
	bool                  is = false;

	for (size_t i = 0; p && !is && i < sizeof head / sizeof *head; i++)
		is = p == vn_point_get(head[i]);
	return is;
}

static bool fits(const double *x, int64_t n, vn_dtype d)
{
	unsigned char data[SAMPLE * 8];
	double        back[SAMPLE];
	vn_from_f64(data, d, x, (size_t)n);
	vn_to_f64(back, data, d, (size_t)n);
	for (int64_t i = 0; i < n; i++)
		if (back[i] != x[i])
			return false;
	return true;
}

/* Small integers exist in every format: 0, 1, masks, counters. */
static bool everywhere(double x)
{
	return fabs(x) <= 256 && x == trunc(x);
}

/* *which: the narrowest format that holds the numbers, an index; -1: too few to tell. */
static vn_status look_at(vn_recording *r, int entry, int *which, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	const int64_t   all = vn_shape_count(&e->shape), n = all < SAMPLE ? all : SAMPLE;
	unsigned char   data[SAMPLE * 8];
	double          x[SAMPLE];
	int64_t         some = 0;
	const vn_status st = vn_recording_read(r, entry, 0, n, data, err);
	vn_recording_release(r, entry);

	*which = -1;
	if (st)
		return vn_status_ends_job(st) ? st : VN_OK; /* an unreadable tensor is reported where it is used */
	vn_to_f64(x, data, e->dtype, (size_t)n);
	for (int64_t i = 0; i < n; i++)
		if (isfinite(x[i]) && !everywhere(x[i]))
			x[some++] = x[i];
	if (some < ENOUGH_TO_TELL_FORMAT)
		return VN_OK;
	*which = 0;
	while (*which + 1 < FORMATS && !fits(x, some, format[*which]))
		++*which;
	return VN_OK;
}

static int count_voices(const vn_recording *r, vn_point_format v)
{
	int n = 0;
	for (int i = 0; i < vn_recording_count(r); i++)
		n += voice_of(vn_recording_entry(r, i)) == v;
	return n;
}

/* Calls look_at for the tensors of this voice, some or all, into shows (entries). */
static vn_status ask(vn_recording *r, vn_point_format v, int most, int8_t *shows, vn_error *err)
{
	const int n = count_voices(r, v), every = most && n > most ? (n + most - 1) / most : 1;
	vn_status st = VN_OK;
	int       k = 0, which;

	for (int i = 0; i < vn_recording_count(r); i++) {
		if (st || voice_of(vn_recording_entry(r, i)) != v || k++ % every)
			continue;
		if (!(st = look_at(r, i, &which, err)))
			shows[i] = (int8_t)which;
	}
	vn_recording_forget(r);
	return st;
}

/* The format of most of those that voted, the narrower of two. */
static vn_dtype most_of(const int *in)
{
	vn_dtype most = VN_BF16;
	for (int i = 0; i < FORMATS; i++)
		if (in[format[i]] > in[most])
			most = format[i];
	return most;
}

static void count_votes(const vn_recording *r, const int8_t *shows, vn_shown_precision *s)
{
	int      named = 0, before[VN_N_DTYPES] = { 0 }, votes_before = 0;
	vn_dtype widest = VN_BF16;

	*s = (vn_shown_precision) { .format = VN_F32 };
	for (int i = 0; i < vn_recording_count(r); i++)
		if (shows[i] >= 0) {
			const bool head = is_head(vn_recording_entry(r, i));
			s->in[format[shows[i]]]++;
			s->votes++;
			before[format[shows[i]]] += !head;
			votes_before += !head;
		}
	if (!s->votes)
		return;
	s->format = most_of(s->in);
	s->heads = !votes_before;
	/* One narrow tensor among wide ones may be a fault. */
	for (int i = 0; i < FORMATS; i++)
		widest = before[format[i]] ? format[i] : widest;
	if (votes_before && vn_dtype_digits(widest) < vn_dtype_digits(s->format))
		s->format = most_of(before);
	s->agree = s->in[s->format];
	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		if (shows[i] < 0)
			continue;
		if (format[shows[i]] == s->format)
			s->widened = s->widened || e->dtype != s->format;
		else if (named++ < NAMED)
			vn_text_add(s->others, sizeof s->others, "%s%s (%s)", named > 1 ? ", " : "", e->name,
			            vn_dtype_name(format[shows[i]]));
	}
	if (named > NAMED)
		vn_text_add(s->others, sizeof s->others, " and %d more", named - NAMED);
	vn_text_clean(s->others, sizeof s->others);
}

/* Logits in float32 say nothing of the layers; sums and activations do. */
static bool alone_and_wide(const vn_shown_precision *s)
{
	return s->heads && vn_dtype_digits(s->format) >= vn_dtype_digits(VN_F32);
}

vn_status vn_shown_format(vn_recording *r, int most, vn_shown_precision *s, vn_error *err)
{
	VN_FREED int8_t *shows = vn_alloc((size_t)vn_recording_count(r), 1);
	vn_status        st = VN_OK;

	memset(shows, -1, (size_t)vn_recording_count(r));
	*s = (vn_shown_precision) { .format = VN_F32 };
	for (vn_point_format v = VN_FORMAT_SHOWS; v > VN_FORMAT_HIDES && !st && (s->votes == 0 || alone_and_wide(s)); v--)
		if (!(st = ask(r, v, most, shows, err)))
			count_votes(r, shows, s);
	return st;
}

bool vn_shown_denies(const vn_shown_precision *s, const char *word)
{
	vn_policy said;

	/* Autocast leaves many tensors in float32, perhaps most: it is enough that some have the
	 * claimed format. */
	return vn_policy_from_word(word, &said) && s->format != said.storage && 2 * s->agree > s->votes &&
	       !(vn_policy_partly(word) && s->in[said.storage]) &&
	       !(s->heads && vn_dtype_digits(s->format) > vn_dtype_digits(said.storage));
}

const char *vn_shown_word(const vn_shown_precision *s)
{
	bool finer = false;
	for (int i = format_index(s->format) + 1; i < FORMATS; i++)
		finer = finer || s->in[format[i]] > 0;
	return finer && s->format == VN_BF16  ? "mixed-bf16"
	       : finer && s->format == VN_F16 ? "mixed-f16"
	                                      : vn_dtype_name(s->format);
}

bool vn_precision_declared(const vn_recording *r)
{
	return vn_facts_get(vn_recording_run(r), VN_PRECISION_FROM) == NULL;
}
