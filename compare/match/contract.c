/* contract.c: are two recordings comparable? They need the same tokens, config and weights. What a
 * file does not state is noted, not refused. */
#include "compare/match/contract.h"

#include "capture/view/ranks.h"
#include "capture/recording/steps.h"
#include "libref/base/json.h"
#include "libref/base/text.h"
#include "libref/family/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct contract {
	const vn_recording *a, *b;
	const char         *who;
	unsigned            allow;
	vn_lines           *notes, *refusals;
} contract;

/* Refuses a difference unless it was allowed by name. */
#define DIFFER(c, bit, word, ...) \
	do { \
		if ((c)->allow & (bit)) \
			vn_lines_add((c)->notes, "allowed (" word "): " __VA_ARGS__); \
		else \
			vn_lines_refuse((c)->refusals, word, __VA_ARGS__); \
	} while (0)

/* A single rank's file holds some tensors whole and only part of others. */
static vn_status check_ranks(const contract *c, const vn_recording *r, const char *who, vn_error *err)
{
	int64_t         rank, of;
	char            which[48];
	const vn_status st = vn_recording_ranks(r) ? VN_OK : vn_ranks_said(r, &rank, &of, err);
	if (st || vn_recording_ranks(r) || (of <= 1 && rank <= 0))
		return st;
	snprintf(which, sizeof which, rank < 0 ? "one" : "rank %lld", (long long)rank);
	if (of < 0)
		DIFFER(c, VN_ALLOW_RANKS, "ranks", "ranks: the %s is %s of several; compare all of them with --shard", who,
		       which);
	else
		DIFFER(c, VN_ALLOW_RANKS, "ranks", "ranks: the %s is %s of %lld; compare all of them with --shard", who, which,
		       (long long)of);
	return VN_OK;
}

/* Writes ", which is step 3,", or nothing for a token of the prompt. */
static void say_step(const contract *c, int64_t token, char *text, size_t room)
{
	const vn_step *s;
	const int      n = vn_recording_steps(c->a, &s);

	*text = 0;
	for (int i = 0; i < n; i++)
		if (s[i].number > 0 && s[i].position <= token && token - s[i].position < s[i].tokens)
			snprintf(text, room, ", which is step %d,", s[i].number);
}

vn_status vn_match_check_steps(vn_comparison *c, vn_error *err)
{
	const contract           said = { .allow = c->request.options->allow,
		                              .notes = &c->result.notes,
		                              .refusals = &c->result.refusals };
	const vn_recording      *both[] = { c->opened.ref, c->opened.cand, c->opened.floor };
	static const char *const who[] = { "reference", "candidate", "floor" };
	char                     which[VN_STEPS_WORDS];
	int64_t                  missing;

	for (int i = 0; i < 3; i++)
		if (both[i] && vn_steps_disorder(both[i], which))
			DIFFER(&said, VN_ALLOW_STEPS, "steps", "steps: in the %s %s: the steps overlap or are out of order", who[i],
			       which);
	/* A step that only one side has is missing or extra there. */
	const vn_status st = vn_steps_gap(both, 2, &missing, which, err);
	if (!st && missing)
		DIFFER(&said, VN_ALLOW_STEPS, "steps", "steps: no step of either recording has %s", which);
	return st;
}

bool vn_positions_moved(const vn_comparison *c, int64_t *by)
{
	const int32_t *ref, *cand;
	const int64_t  n = vn_recording_tokens(c->opened.ref, NULL, &ref),
				  m = vn_recording_tokens(c->opened.cand, NULL, &cand);

	*by = n == m && n > 0 ? (int64_t)cand[0] - ref[0] : 0;
	for (int64_t t = 0; *by && t < n; t++)
		if (ref[t] != t || cand[t] != t + *by)
			*by = 0;
	return *by != 0;
}

static void compare_tokens(const contract *c)
{
	const int32_t *id[2], *at[2];
	const int64_t  n = vn_recording_tokens(c->a, &id[0], &at[0]), m = vn_recording_tokens(c->b, &id[1], &at[1]);
	/* A stopped run has only the first tokens. Tensors that it did not compute are missing
	 * (judge/judge_left_out.h). */
	const bool     stopped = m < n && vn_facts_get(vn_recording_run(c->b), "stopped");
	const int64_t  known = stopped ? m : n;
	const bool     decoded = vn_recording_decoded(c->a) || vn_recording_decoded(c->b);
	if (n != m && !stopped) {
		DIFFER(c, VN_ALLOW_TOKEN_IDS, "token_ids",
		       "token ids: %lld in the reference, %lld in the %s: record both on the same tokens, with --ids-from%s",
		       (long long)n, (long long)m, c->who, decoded ? " and --force-ids-from" : "");
		return;
	}
	for (int64_t i = 0; i < known; i++)
		if (id[0][i] != id[1][i]) {
			char step[96];
			say_step(c, i, step, sizeof step);
			DIFFER(c, VN_ALLOW_TOKEN_IDS, "token_ids",
			       "token ids: number %lld%s is %d in the reference, %d in the %s%s", (long long)i, step, id[0][i],
			       id[1][i], c->who,
			       *step ? ": the two runs decoded different tokens; --force-ids-from makes one run decode the other's"
			       : decoded ? ": record both on the same tokens, with --ids-from and --force-ids-from"
			                 : ": record both on the same tokens, with --ids-from");
			break;
		}
	for (int64_t i = 0; i < known; i++)
		if (at[0][i] != at[1][i]) {
			DIFFER(c, VN_ALLOW_TOKEN_IDS, "positions",
			       "positions: token %lld is at position %d in the reference, %d in the %s", (long long)i, at[0][i],
			       at[1][i], c->who);
			break;
		}
}

/* The plan that a config describes. */
static vn_plan *plan_of(const json_t *config)
{
	const vn_family *family;
	vn_plan         *plan = NULL;

	if (vn_family_find("config", config, &family, NULL) || family->plan("config", config, &plan, NULL))
		return NULL;
	return plan;
}

/* Two spellings of one model, such as RoPE settings in the form of transformers 4 or 5, or a
 * default written out, give the same plan. */
static bool same_arithmetic(const json_t *x, const json_t *y)
{
	vn_plan *a = plan_of(x), *b = plan_of(y);
	bool     same = a && b && vn_plan_equal(a, b);

	vn_plan_destroy(a);
	vn_plan_destroy(b);
	return same;
}

/* Keys that record where a model came from and do not change the arithmetic. */
static bool is_harmless(const char *key)
{
	static const char *const list[] = { "_name_or_path", "transformers_version", "torch_dtype", "dtype", "use_cache" };
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (strcmp(list[i], key) == 0)
			return true;
	return false;
}

static void config_key(const contract *c, const char *key, const json_t *x, const json_t *y, bool same)
{
	if (x && y && json_equal(x, y))
		return;
	char *xt = x ? vn_json_dump(x, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	char *yt = y ? vn_json_dump(y, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (same || is_harmless(key))
		vn_lines_add(c->notes, "config: %s is %.80s in the reference, %.80s in the %s (changes no arithmetic)", key,
		             xt ? xt : "absent", yt ? yt : "absent", c->who);
	else
		DIFFER(c, VN_ALLOW_CONFIG, "config", "config: %.60s is %.80s in the reference, %.80s in the %s", key,
		       xt ? xt : "absent", yt ? yt : "absent", c->who);
	free(xt);
	free(yt);
}

enum { FIELDS_NAMED = 4 };

static int fields_that_differ(const json_t *a, const json_t *b)
{
	const char *key;
	json_t     *x;
	int         n = 0;
	json_object_foreach((json_t *)(size_t)a, key, x) n += !json_equal(x, json_object_get(b, key));
	json_object_foreach((json_t *)(size_t)b, key, x) n += !json_object_get(a, key);
	return n;
}

static void compare_configs(const contract *c, const char *const text[2])
{
	if (!text[0] || !text[1]) {
		vn_lines_add(c->notes, "config: the %s records none; not checked", text[0] ? c->who : "reference");
		return;
	}
	if (strcmp(text[0], text[1]) == 0)
		return;
	json_t     *j[2];
	const char *key;
	json_t     *x;
	for (int i = 0; i < 2; i++)
		j[i] = vn_json_parse(text[i], JSON_REJECT_DUPLICATES);
	if (!json_is_object(j[0]) || !json_is_object(j[1])) {
		DIFFER(c, VN_ALLOW_CONFIG, "config", "config: the config of the %s is not a JSON object",
		       json_is_object(j[0]) ? c->who : "reference");
	} else {
		const bool same = same_arithmetic(j[0], j[1]);
		const int  differ = fields_that_differ(j[0], j[1]);
		/* A GGUF file keeps only a few fields of a config.json. */
		if (same && differ > FIELDS_NAMED) {
			vn_lines_add(
				c->notes,
				"config: %d fields differ between the reference and the %s; none of them changes the arithmetic",
				differ, c->who);
		} else {
			json_object_foreach(j[0], key, x) config_key(c, key, x, json_object_get(j[1], key), same);
			json_object_foreach(j[1], key, x) if (!json_object_get(j[0], key)) config_key(c, key, NULL, x, same);
		}
	}
	json_decref(j[0]);
	json_decref(j[1]);
}

/* Compares the plans, which the recorders built from configs. Replay,
 * origins and names depend on them. */
static void compare_plans(const contract *c)
{
	const vn_plan *a = vn_recording_plan(c->a), *b = vn_recording_plan(c->b);
	char           what[VN_PLAN_DIFFERENCE];

	if (a && b && !vn_plan_equal(a, b))
		DIFFER(c, VN_ALLOW_CONFIG, "config", "plan: %s in the reference; the %s has another",
		       vn_plan_difference(a, b, what), c->who);
}

/* "qwen2 with 24 layers and a vocabulary of 151936" */
static void say_model(const char *family, const vn_plan *plan, char text[100])
{
	snprintf(text, 100, "%.40s with %d layer%s and a vocabulary of %d", family && *family ? family : "a model",
	         plan->layers, plan->layers == 1 ? "" : "s", plan->vocab);
	vn_text_clean(text, 100);
}

/* A model: its plan, and the name of its family (NULL: not said).
 * made: a plan to be destroyed, or NULL. */
typedef struct described_model {
	const vn_plan *plan;
	const char    *family;
	vn_plan       *made;
} described_model;

/* The model of a recording: as the recording states it, or else as its config describes it. */
static described_model describe_model(const vn_recording *r)
{
	described_model d = { vn_recording_plan(r), vn_recording_family(r), NULL };

	if (!d.plan && vn_recording_config(r))
		d.plan = d.made = vn_family_plan(vn_recording_config(r), &d.family);
	return d;
}

/* Reports different models before the many differences that follow from that. */
static void different_models(const contract *c, const char *verb, const char *family, const vn_plan *plan)
{
	const described_model d = describe_model(c->a);
	const vn_plan        *own = d.plan;
	const char           *own_family = d.family;
	char                  ref[100], other[100];

	if (!own || !plan ||
	    (own->layers == plan->layers && own->vocab == plan->vocab &&
	     (!own_family || !family || strcmp(own_family, family) == 0)))
		goto done;
	say_model(own_family, own, ref);
	say_model(family, plan, other);
	DIFFER(c, VN_ALLOW_CONFIG, "config", "the models differ: the reference ran %s, the %s %s %s", ref, c->who, verb,
	       other);
done:
	vn_plan_destroy(d.made);
}

void vn_contract_config(const char *ref, const char *other, const char *who, unsigned allow, vn_lines *notes,
                        vn_lines *refusals)
{
	const contract c = { .who = who, .allow = allow, .notes = notes, .refusals = refusals };
	compare_configs(&c, (const char *const[]) { ref, other });
}

void vn_contract_model(const vn_recording *a, const vn_model *m, unsigned allow, vn_lines *notes, vn_lines *refusals)
{
	const contract c = { .a = a, .who = "model", .allow = allow, .notes = notes, .refusals = refusals };

	different_models(&c, "is", vn_model_family(m), vn_model_plan(m));
	vn_contract_config(vn_recording_config(a), vn_model_config(m), "model", allow, notes, refusals);
}

vn_status vn_contract(const vn_recording *a, const vn_recording *b, const char *who, const vn_compare_options *o,
                      vn_weights **table, vn_lines *notes, vn_lines *refusals, vn_error *err)
{
	const unsigned allow = o->allow;
	const contract c = { a, b, who, allow, notes, refusals };
	const int      before = refusals->n;
	vn_status      st;
	if (!vn_recording_complete(a))
		DIFFER(&c, VN_ALLOW_INCOMPLETE, "incomplete", "the reference is incomplete: its run was interrupted");
	if (!vn_recording_complete(b))
		DIFFER(&c, VN_ALLOW_INCOMPLETE, "incomplete", "the %s is incomplete: its run was interrupted", who);
	if ((st = check_ranks(&c, a, "reference", err)) || (st = check_ranks(&c, b, who, err)))
		return st;
	const described_model other = describe_model(b);
	different_models(&c, "ran", other.family, other.plan);
	vn_plan_destroy(other.made);
	compare_tokens(&c);
	compare_configs(&c, (const char *const[]) { vn_recording_config(a), vn_recording_config(b) });
	if ((st = vn_contract_weights(a, b, who, o, table, notes, refusals, err)))
		return st;
	compare_plans(&c);
	if ((st = vn_contract_claims(a, "reference", allow, notes, refusals, err)) ||
	    (st = vn_contract_claims(b, who, allow, notes, refusals, err)))
		return st;
	if (refusals->n > before)
		return vn_fail(err, VN_ERR_MISMATCH, "%s and %s are not comparable", vn_recording_path(a),
		               vn_recording_path(b));
	return VN_OK;
}
