/* contract.c: are two recordings comparable? They need the same tokens, config and weights. What a
 * file does not state is noted, not refused. */
#include "compare/match/contract.h"

#include "capture/view/ranks.h"
#include "capture/recording/steps.h"
#include "compare/comparison/checkpoint.h"
#include "compare/match/token_lists.h"
#include "libref/base/json.h"
#include "libref/base/text.h"
#include "libref/family/family.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A single rank's file holds some tensors whole and only part of others. */
static vn_status check_ranks(const vn_opened *o, vn_remarks *remarks, const vn_recording *r, const char *who,
                             vn_error *err)
{
	int64_t         rank, of;
	char            which[48];
	const vn_status st = vn_recording_ranks(r) ? VN_OK : vn_ranks_said(r, &rank, &of, err);
	if (st || vn_recording_ranks(r) || (of <= 1 && rank <= 0))
		return st;
	snprintf(which, sizeof which, rank < 0 ? "one" : "rank %lld", (long long)rank);
	if (of < 0)
		vn_remarks_refuse(o, remarks, VN_ALLOW_RANKS, "ranks",
		                  "ranks: the %s is %s of several; compare all of them with --shard", who, which);
	else
		vn_remarks_refuse(o, remarks, VN_ALLOW_RANKS, "ranks",
		                  "ranks: the %s is %s of %lld; compare all of them with --shard", who, which, (long long)of);
	return VN_OK;
}

/* Writes ", which is step 3,", or nothing for a token of the prompt. */
static void say_step(const vn_opened *o, int64_t token, char *text, size_t room)
{
	const vn_step *s;
	const int      n = vn_recording_steps(o->ref, &s);

	*text = 0;
	for (int i = 0; i < n; i++)
		if (s[i].number > 0 && s[i].position <= token && token - s[i].position < s[i].tokens)
			snprintf(text, room, ", which is step %d,", s[i].number);
}

void vn_match_check_steps(const vn_opened *o, vn_remarks *remarks)
{
	const vn_recording      *both[] = { o->ref, o->cand, o->floor };
	static const char *const who[] = { "reference", "candidate", "floor" };
	char                     which[VN_STEPS_WORDS];

	for (int i = 0; i < 3; i++)
		if (both[i] && vn_steps_disorder(both[i], which))
			vn_remarks_refuse(o, remarks, VN_ALLOW_STEPS, "steps",
			                  "steps: in the %s %s: the steps overlap or are out of order", who[i], which);
	/* A step that only one side has is missing or extra there. */
	if (vn_steps_gap(both, 2, which))
		vn_remarks_refuse(o, remarks, VN_ALLOW_STEPS, "steps", "steps: no step of either recording has %s", which);
}

bool vn_positions_moved(const vn_opened *o, int64_t *by)
{
	const int32_t *ref, *cand;
	const int64_t  n = vn_recording_tokens(o->ref, NULL, &ref), m = vn_recording_tokens(o->cand, NULL, &cand);

	*by = n == m && n > 0 ? (int64_t)cand[0] - ref[0] : 0;
	for (int64_t t = 0; *by && t < n; t++)
		if (ref[t] != t || cand[t] != t + *by)
			*by = 0;
	return *by != 0;
}

/* Says how the tokens differ, with what is known of their text. */
static char *say_tokens(const vn_opened *o, const vn_recording *other, const char *who, char words[VN_TOKENS_WORDS])
{
	const vn_recording *both[] = { o->ref, other };
	vn_token_list       list[2];
	vn_tokenizer       *tokenizer = NULL;

	for (int i = 0; i < 2; i++) {
		list[i].n = vn_recording_tokens(both[i], &list[i].ids, NULL);
		list[i].text = vn_recording_token_text(both[i]);
	}
	if (o->request.options->model && !(list[0].text && list[1].text))
		vn_tokenizer_open(o->request.options->model, &tokenizer, NULL);
	vn_tokens_differ(&list[0], &list[1], who, tokenizer, words);
	vn_tokenizer_close(tokenizer);
	return words;
}

/* Writes "; in the candidate step.1 begins with token 16 again...". Returns whether its position is
 * equal too. Tokens that one side runs twice are the mistake then: the other must not be recorded
 * with them. */
static bool say_again(const vn_opened *o, const vn_recording *other, const char *who, char words[VN_WORDS])
{
	char       which[VN_STEPS_WORDS];
	bool       its = vn_steps_again(other, NULL, which);
	const bool twice = its || vn_steps_again(o->ref, NULL, which);
	const bool again = twice || (its = vn_steps_again(other, o->ref, which)) || vn_steps_again(o->ref, other, which);

	*words = 0;
	if (again)
		vn_text_add(words, VN_WORDS, "; in the %s %s", its ? who : "reference", which);
	return twice;
}

static void compare_tokens(const vn_opened *o, vn_remarks *remarks, const vn_recording *other, const char *who)
{
	char           words[VN_TOKENS_WORDS], twice[VN_WORDS];
	const int32_t *id[2], *at[2];
	const int64_t  n = vn_recording_tokens(o->ref, &id[0], &at[0]), m = vn_recording_tokens(other, &id[1], &at[1]);
	/* A stopped run has only the first tokens. Tensors that it did not compute are missing
	 * (judge/judge_left_out.h). */
	const bool     stopped = m < n && vn_facts_get(vn_recording_run(other), "stopped");
	const int64_t  known = stopped ? m : n;
	const bool     decoded = vn_recording_decoded(o->ref) || vn_recording_decoded(other),
			   again = say_again(o, other, who, twice);
	if (n != m && !stopped) {
		say_tokens(o, other, who, words);
		vn_remarks_refuse(o, remarks, VN_ALLOW_TOKEN_IDS, "token_ids",
		                  "token ids: %lld in the reference, %lld in the %s%s%s%s%s", (long long)n, (long long)m, who,
		                  words, twice,
		                  again    ? ""
		                  : *twice ? "; if chosen, record both on the same tokens, with --ids-from"
		                  : *words ? "; to compare the rest, record both on the same tokens, with --ids-from"
		                           : ": record both on the same tokens, with --ids-from",
		                  decoded && !again ? " and --force-ids-from" : "");
		return;
	}
	for (int64_t i = 0; i < known; i++)
		if (id[0][i] != id[1][i]) {
			char step[96];
			say_step(o, i, step, sizeof step);
			vn_remarks_refuse(
				o, remarks, VN_ALLOW_TOKEN_IDS, "token_ids",
				"token ids: number %lld%s is %d in the reference, %d in the %s%s%s%s%s", (long long)i, step, id[0][i],
				id[1][i], who, *step ? "" : say_tokens(o, other, who, words), twice,
				again    ? ""
				: *twice ? "; if chosen, "
						 : ": ",
				again     ? ""
				: *step   ? "the two runs decoded different tokens; --force-ids-from makes one run decode the other's"
				: decoded ? "record both on the same tokens, with --ids-from and --force-ids-from"
						  : "record both on the same tokens, with --ids-from");
			break;
		}
	for (int64_t i = 0; i < known; i++)
		if (at[0][i] != at[1][i]) {
			vn_remarks_refuse(o, remarks, VN_ALLOW_TOKEN_IDS, "positions",
			                  "positions: token %lld is at position %d in the reference, %d in the %s%s", (long long)i,
			                  at[0][i], at[1][i], who, twice);
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

/* NULL: absent. */
static char *words_of(const json_t *x)
{
	char number[32];

	if (json_is_real(x))
		return strdup(vn_text_number(json_real_value(x), number));
	return x ? vn_json_dump(x, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS) : NULL;
}

static void config_key(const vn_opened *o, vn_remarks *remarks, const char *who, const char *key,
                       const json_t *const side[2], bool same)
{
	const json_t *x = side[0], *y = side[1];

	if (x && y && json_equal(x, y))
		return;
	VN_FREED char *xt = words_of(x), *yt = words_of(y);
	if (same || is_harmless(key))
		vn_lines_add(&remarks->notes, "config: %s is %.80s in the reference, %.80s in the %s (changes no arithmetic)",
		             key, xt ? xt : "absent", yt ? yt : "absent", who);
	else
		vn_remarks_refuse(o, remarks, VN_ALLOW_CONFIG, "config",
		                  "config: %.60s is %.80s in the reference, %.80s in the %s", key, xt ? xt : "absent",
		                  yt ? yt : "absent", who);
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

/* Adds the keys of both whose values differ, the first FIELDS_NAMED. Returns how many do. */
static int add_keys(const json_t *a, const json_t *b, char *text, size_t room)
{
	const char *key;
	json_t     *x;
	int         n = 0;

	json_object_foreach((json_t *)(size_t)a, key, x)
	{
		const json_t *y = json_object_get(b, key);
		if (!y || json_equal(x, y))
			continue;
		if (n++ < FIELDS_NAMED)
			vn_text_add(text, room, "%s%.40s", *text ? ", " : "", key);
	}
	return n;
}

/* Of runs of any PyTorch module: the settings of its operations decide (--replayed compares them),
 * not what its releases of libraries write into a config. */
static void note_config(vn_lines *notes, const char *ref, const char *other, const char *who)
{
	VN_OWNED json_t *a = ref ? vn_json_parse(ref, 0) : NULL, *b = other ? vn_json_parse(other, 0) : NULL;
	char             keys[400] = "";
	const int        n = json_is_object(a) && json_is_object(b) ? add_keys(a, b, keys, sizeof keys) : 0;

	if (n)
		vn_lines_add(notes, "config: %d value%s of the reference differ%s from the %s's: %s", n, n == 1 ? "" : "s",
		             n == 1 ? "s" : "", who, keys);
}

void vn_contract_config(const vn_opened *o, vn_remarks *remarks, const char *ref, const char *other, const char *who)
{
	const char *const text[2] = { ref, other };
	if (!text[0] || !text[1]) {
		vn_lines_add(&remarks->notes, "config: the %s records none; not checked", text[0] ? who : "reference");
		return;
	}
	if (strcmp(text[0], text[1]) == 0)
		return;
	json_t     *j[2];
	const char *key;
	json_t     *x;
	for (int i = 0; i < 2; i++) {
		j[i] = vn_json_parse(text[i], JSON_REJECT_DUPLICATES);
		json_object_del(j[i], VN_MTP_KEY); /* see one_head */
	}
	if (!json_is_object(j[0]) || !json_is_object(j[1])) {
		vn_remarks_refuse(o, remarks, VN_ALLOW_CONFIG, "config", "config: the config of the %s is not a JSON object",
		                  json_is_object(j[0]) ? who : "reference");
	} else if (json_object_size(j[0]) == 0 || json_object_size(j[1]) == 0) {
		vn_lines_add(&remarks->notes, "config: that of the %s has no settings; not checked",
		             json_object_size(j[0]) ? who : "reference");
	} else {
		const bool same = same_arithmetic(j[0], j[1]);
		const int  differ = fields_that_differ(j[0], j[1]);
		/* A GGUF file keeps only a few fields of a config.json. */
		if (same && differ > FIELDS_NAMED) {
			vn_lines_add(
				&remarks->notes,
				"config: %d fields differ between the reference and the %s; none of them changes the arithmetic",
				differ, who);
		} else {
			json_object_foreach(j[0], key, x)
				config_key(o, remarks, who, key, (const json_t *[]) { x, json_object_get(j[1], key) }, same);
			json_object_foreach(j[1], key, x) if (!json_object_get(j[0], key))
				config_key(o, remarks, who, key, (const json_t *[]) { NULL, x }, same);
		}
	}
	json_decref(j[0]);
	json_decref(j[1]);
}

enum { MODEL_WORDS = 128 };

/* "qwen2 with 24 layers, a prediction head and a vocabulary of 151936" */
static void say_model(const char *family, const vn_plan *plan, char text[MODEL_WORDS])
{
	const int layers = vn_plan_last_layer(plan) + 1;

	snprintf(text, MODEL_WORDS, "%.40s with %d layer%s%s and a vocabulary of %d",
	         family && *family ? family : "a model", layers, layers == 1 ? "" : "s",
	         layers < plan->layers ? ", a prediction head" : "", plan->vocab);
	vn_text_clean(text, MODEL_WORDS);
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

/* Is a prediction head all that one has more than the other? Its checkpoints are then missing or
 * extra, and the rest is compared. */
static bool one_head(const vn_recording *ref, const vn_recording *other)
{
	const bool          of_ref = vn_recording_has_mtp(ref);
	const vn_recording *with = of_ref ? ref : other, *without = of_ref ? other : ref;
	VN_OWNED json_t    *config = vn_recording_config(with) ? vn_json_parse(vn_recording_config(with), 0) : NULL;

	if (of_ref == vn_recording_has_mtp(other) || !config)
		return false;
	json_object_del(config, VN_MTP_KEY);
	const described_model own = describe_model(without);
	vn_plan              *plan = plan_of(config);
	const bool            one = plan && own.plan && vn_plan_equal(plan, own.plan);
	vn_plan_destroy(plan);
	vn_plan_destroy(own.made);
	return one;
}

/* Compares the plans, which the recorders built from configs. Replay,
 * origins and names depend on them. */
static void compare_plans(const vn_opened *o, vn_remarks *remarks, const vn_recording *other, const char *who)
{
	const vn_plan *a = vn_recording_plan(o->ref), *b = vn_recording_plan(other);
	char           what[VN_PLAN_DIFFERENCE];

	if (a && b && !vn_plan_equal(a, b) && !one_head(o->ref, other))
		vn_remarks_refuse(o, remarks, VN_ALLOW_CONFIG, "config", "plan: %s in the reference; the %s has another",
		                  vn_plan_difference(a, b, what), who);
}

/* Reports different models before the many differences that follow from that. */
static void different_models(const vn_opened *o, vn_remarks *remarks, const char *who, const char *verb,
                             const char *family, const vn_plan *plan)
{
	const described_model d = describe_model(o->ref);
	const vn_plan        *own = d.plan;
	const char           *own_family = d.family;
	char                  ref[MODEL_WORDS], other[MODEL_WORDS];

	if (!own || !plan ||
	    (vn_plan_last_layer(own) == vn_plan_last_layer(plan) && own->vocab == plan->vocab &&
	     (!own_family || !family || strcmp(own_family, family) == 0)))
		goto done;
	say_model(own_family, own, ref);
	say_model(family, plan, other);
	vn_remarks_refuse(o, remarks, VN_ALLOW_CONFIG, "config", "the models differ: the reference ran %s, the %s %s %s",
	                  ref, who, verb, other);
done:
	vn_plan_destroy(d.made);
}

void vn_contract_model(const vn_opened *o, vn_remarks *remarks, const vn_model *m)
{
	different_models(o, remarks, "model", "is", vn_model_family(m), vn_model_plan(m));
	vn_contract_config(o, remarks, vn_recording_config(o->ref), vn_model_config(m), "model");
}

vn_status vn_contract(const vn_opened *o, vn_remarks *remarks, const vn_recording *other, const char *who,
                      vn_weights **weights, vn_error *err)
{
	const vn_recording *ref = o->ref;
	vn_status           st;

	if (!vn_recording_complete(ref))
		vn_remarks_refuse(o, remarks, VN_ALLOW_INCOMPLETE, "incomplete",
		                  "the reference is incomplete: its run was interrupted");
	if (!vn_recording_complete(other))
		vn_remarks_refuse(o, remarks, VN_ALLOW_INCOMPLETE, "incomplete",
		                  "the %s is incomplete: its run was interrupted", who);
	if ((st = check_ranks(o, remarks, ref, "reference", err)) || (st = check_ranks(o, remarks, other, who, err)))
		return st;
	const described_model model = describe_model(other);
	different_models(o, remarks, who, "ran", model.family, model.plan);
	vn_plan_destroy(model.made);
	if (one_head(ref, other))
		vn_lines_add(&remarks->notes, "the %s ran without the multi-token-prediction head of the %s (--mtp)",
		             vn_recording_has_mtp(ref) ? who : "reference", vn_recording_has_mtp(ref) ? "reference" : who);
	compare_tokens(o, remarks, other, who);
	if (vn_recording_run_plan(ref) || vn_recording_run_plan(other))
		note_config(&remarks->notes, vn_recording_config(ref), vn_recording_config(other), who);
	else
		vn_contract_config(o, remarks, vn_recording_config(ref), vn_recording_config(other), who);
	vn_contract_weights(o, remarks, other, who, weights);
	compare_plans(o, remarks, other, who);
	vn_contract_claims(o, remarks, ref, "reference");
	vn_contract_claims(o, remarks, other, who);
	return remarks->refusals.n ? vn_fail(err, VN_ERR_MISMATCH, "%s and %s are not comparable", vn_recording_path(ref),
	                                     vn_recording_path(other))
	                           : VN_OK;
}
