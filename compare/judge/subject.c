/* subject.c: see subject.h. */
#include "compare/judge/subject.h"

#include "libref/base/alloc.h"
#include "libref/base/json.h"

#include <stdlib.h>
#include <string.h>

enum { TOKENS, CONFIG, REF_WEIGHTS, CAND_WEIGHTS, REF_PRECISION, CAND_PRECISION, FLOOR, LIMITS };

const char *const vn_subject_key[VN_SUBJECTS] = {
	[TOKENS] = "token_ids",
	[CONFIG] = "config",
	[REF_WEIGHTS] = "reference_weights",
	[CAND_WEIGHTS] = "candidate_weights",
	[REF_PRECISION] = "reference_precision",
	[CAND_PRECISION] = "candidate_precision",
	[FLOOR] = "floor",
	[LIMITS] = "limits",
};

static void put_value(vn_subject *s, int which, const char *text)
{
	snprintf(s->value[which], VN_SUBJECT_TEXT, "%.63s", text ? text : "");
}

/* Digests ids, positions and the division into calls. */
static void digest_tokens(const vn_recording *r, vn_subject *s)
{
	const int32_t *ids, *positions;
	const vn_step *step;
	const int64_t  n = vn_recording_tokens(r, &ids, &positions);
	const int      steps = vn_recording_steps(r, &step);
	vn_digester   *d = vn_alloc_check(vn_digester_create());
	if (n > 0) {
		vn_digester_add(d, ids, (size_t)n * sizeof *ids);
		vn_digester_add(d, positions, (size_t)n * sizeof *positions);
	}
	for (int i = 0; i < steps; i++) {
		const int64_t about[] = { step[i].number, step[i].position, step[i].tokens, step[i].first_row, step[i].rows };
		vn_digester_add(d, about, sizeof about);
	}
	put_value(s, TOKENS, vn_digester_finish(d).hex);
}

static void digest_weights(const vn_recording *r, vn_subject *s, int which)
{
	const vn_weight_row *row;
	const int            n = vn_recording_weights(r, &row);
	if (n <= 0)
		return;
	vn_digester *d = vn_alloc_check(vn_digester_create());
	for (int i = 0; i < n; i++) {
		vn_digester_add(d, row[i].name, strlen(row[i].name) + 1);
		vn_digester_add(d, row[i].digest.hex, strlen(row[i].digest.hex) + 1);
	}
	put_value(s, which, vn_digester_finish(d).hex);
}

/* However it is spelt. */
static void digest_config(const char *text, vn_subject *s)
{
	VN_OWNED json_t *j = vn_json_parse(text, 0);
	VN_FREED char   *plain = j ? vn_json_dump(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17)) : NULL;
	text = plain ? plain : text;
	if (text)
		put_value(s, CONFIG, vn_digest_of(text, strlen(text)).hex);
}

static const char *precision_of(const vn_recording *r)
{
	return vn_facts_get(vn_recording_run(r), "precision");
}

static const char *candidate_precision(const vn_opened *o)
{
	return o->request.options->precision ? vn_policy_name(*o->request.options->precision)
	       : o->request.infers           ? vn_policy_name(o->request.inferred)
	                                     : precision_of(o->cand);
}

void vn_subject_of(const vn_opened *o, vn_subject *s)
{
	*s = (vn_subject) { 0 };
	digest_tokens(o->ref, s);
	digest_weights(o->ref, s, REF_WEIGHTS);
	digest_weights(o->cand, s, CAND_WEIGHTS);
	digest_config(vn_recording_config(o->ref) ? vn_recording_config(o->ref) : vn_recording_config(o->cand), s);
	put_value(s, REF_PRECISION, precision_of(o->ref));
	put_value(s, CAND_PRECISION, candidate_precision(o));
	put_value(s, LIMITS, o->request.limits->digest.hex);
	if (o->floor)
		put_value(s, FLOOR, precision_of(o->floor) ? precision_of(o->floor) : "of unknown precision");
	else if (o->request.options->model)
		put_value(s, FLOOR,
		          o->request.options->floor_policy ? vn_policy_name(*o->request.options->floor_policy)
		                                           : candidate_precision(o));
	else
		put_value(s, FLOOR, "none");
}
