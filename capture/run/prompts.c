/* prompts.c: see prompts.h. */
#include "capture/run/prompts.h"

#include "capture/base/warnings.h"
#include "capture/file/place.h"
#include "capture/recording/recording.h"
#include "capture/run/ids_from.h"
#include "capture/run/interrupt.h"
#include "capture/run/prompt.h"
#include "capture/run/scenario.h"
#include "capture/run/session.h"
#include "libref/base/alloc.h"
#include "libref/base/cluster.h"
#include "libref/base/order.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct prompt_run {
	vn_recipe recipe;
	char      path[PATH_MAX], against[PATH_MAX];
	int32_t  *forced; /* all tokens of the recording that it follows, or NULL */
} prompt_run;

typedef struct runs {
	const vn_prompts_job *job;
	vn_scenario          *s;   /* (n) */
	prompt_run           *run; /* (n) */
	int                   n;
	vn_tokenizer         *tokenizer; /* NULL: the model has none */
	vn_session            session;
	int                   kept; /* those that were already there */
} runs;

static void warn_of_weights(const vn_recorded *done)
{
	if (done->nonfinite_weights)
		vn_warn("capture", "%s%s", done->nonfinite,
		        done->nonfinite_weights > 1 ? "; the weights differ too (vernier show)" : "");
}

static void warn_of_found(const vn_recorded *done)
{
	if (*done->found)
		vn_warn("capture", "%s", done->found);
}

void vn_prompts_say(const char *path, const vn_recorded *done)
{
	char size[24];

	warn_of_weights(done);
	vn_say(stderr, "%s: %" PRId64 " tensor%s, %s in %.2f s (", path, done->tensors, done->tensors == 1 ? "" : "s",
	       vn_text_bytes(done->bytes, size), done->seconds);
	if (done->compiling >= 0.005)
		vn_say(stderr, "%.2f s compiling shaders%s, ", done->compiling,
		       done->compiled ? " that later runs find in the cache" : "");
	fprintf(stderr, "%.2f s computing)\n", done->computing);
	if (done->judged)
		vn_say(stderr, "%s: %" PRId64 " judged, %" PRId64 " outside, %" PRId64 " left out because they agree%s\n", path,
		       done->judged, done->outside, done->left_out, done->stopped ? "; the run was stopped" : "");
	warn_of_found(done);
}

/* ---- before the first run ------------------------------------------------------------------ */

static vn_status open_session(runs *r, vn_error *err)
{
	const vn_prompts_job *job = r->job;
	return r->session.m ? VN_OK : vn_session_open(&r->session, job->model, job->run, job->inject, job->n_inject, err);
}

static vn_status open_tokenizer(runs *r, vn_error *err)
{
	vn_prompt prompt = { 0 };
	vn_error  why = { "" };
	bool      texts = false;

	for (int i = 0; i < r->n; i++)
		texts = texts || r->s[i].text;
	const vn_status st = vn_tokenizer_open(r->job->model, &r->tokenizer, texts ? err : &why);
	if (st && texts)
		return st;
	if (st && st != VN_ERR_NOTFOUND) /* a tokenizer would only show the tokens as text */
		snprintf(prompt.warning, sizeof prompt.warning, "%s", why.text);
	vn_prompt_warn("capture", r->session.m, &prompt);
	return VN_OK;
}

static vn_status encode_text(const runs *r, vn_scenario *s, vn_error *err)
{
	vn_status st;

	if (!s->text)
		return VN_OK;
	st = vn_tokenizer_encode(r->tokenizer, s->text, strlen(s->text), !r->job->no_special, &s->ids, &s->n, err);
	return !st && s->n == 0 ? vn_fail(err, VN_ERR_USAGE, "an empty text: a run needs at least one token") : st;
}

/* Makes the run decode the tokens that the recording of the same name in the folder decoded. */
static vn_status take_forced_ids(runs *r, int i, vn_error *err)
{
	const vn_scenario *s = &r->s[i];
	vn_recipe         *own = &r->run[i].recipe;
	int32_t          **forced = &r->run[i].forced;
	char               path[PATH_MAX];
	int64_t            n, of_prompt;
	int32_t           *prompt;
	vn_status          st;

	if (snprintf(path, sizeof path, "%s/%s.h5", r->job->forced_from, s->name) >= (int)sizeof path)
		return vn_fail(err, VN_ERR_USAGE, "the path of the recording to follow is too long");
	const vn_ids_source from = { "--force-ids-from", path, -1 };
	if ((st = vn_ids_kept("--force-ids-from", own->path, path, err)) ||
	    (st = vn_ids_from(&from, VN_IDS_ALL, forced, &n, err)) ||
	    (st = vn_ids_from(&from, VN_IDS_PROMPT, &prompt, &of_prompt, err)))
		return st;
	free(prompt);
	/* of_prompt is less than the prompt if the end of the prompt was given token by token */
	if (n < s->n || of_prompt > s->n || memcmp(*forced, s->ids, (size_t)s->n * sizeof *s->ids) != 0)
		return vn_fail(err, VN_ERR_USAGE, "--force-ids-from: %s is of another prompt", path);
	if (s->decode >= 0 && s->decode != n - s->n)
		return vn_fail(err, VN_ERR_USAGE,
		               "its \"decode\" is %" PRId64 ", and %s, which --force-ids-from follows, decoded %" PRId64
		               " tokens: give both the same number, or leave \"decode\" out",
		               s->decode, path, n - s->n);
	own->decode = n - s->n;
	own->forced = own->decode ? *forced + s->n : NULL;
	return VN_OK;
}

static vn_status make_recipe(runs *r, int i, vn_error *err)
{
	const vn_scenario *s = &r->s[i];
	prompt_run        *run = &r->run[i];
	vn_recipe         *own = &run->recipe;

	*own = *r->job->recipe;
	if (snprintf(run->path, sizeof run->path, "%s/%s.h5", r->job->folder, s->name) >= PATH_MAX)
		return vn_fail(err, VN_ERR_USAGE, "the path of its recording is too long");
	own->path = run->path;
	if (own->against && snprintf(run->against, sizeof run->against, "%s/%s.h5", own->against, s->name) >= PATH_MAX)
		return vn_fail(err, VN_ERR_USAGE, "the path of its reference is too long");
	own->against = own->against ? run->against : NULL;
	own->ids = s->ids;
	own->n_ids = s->n;
	own->tokenizer = r->tokenizer;
	own->scenario = s->name;
	own->decode = s->decode >= 0 ? s->decode : own->decode;
	own->temperature = s->temperature >= 0 ? s->temperature : own->temperature;
	own->seed = s->seed >= 0 ? (uint64_t)s->seed : own->seed;
	if (own->decode == 0 && (s->temperature > 0 || s->seed >= 0))
		return vn_fail(err, VN_ERR_USAGE, "%s needs decode, or --decode N",
		               s->temperature > 0 ? "temperature" : "seed");
	return r->job->forced_from ? take_forced_ids(r, i, err) : VN_OK;
}

/* ---- what is there already --------------------------------------------------------------- */

VN_ORDER_BY(compare_names, vn_weight_row, strcmp(x->name, y->name))

static bool same_weights(const vn_recording *r, vn_session *s)
{
	const vn_weight_row *theirs, *ours = vn_session_table(s);
	const int            n = vn_model_plan(s->m)->n_weights;

	if (!ours || vn_recording_weights(r, &theirs) != n)
		return false;
	for (int i = 0; i < n; i++) { /* theirs are sorted by name */
		const vn_weight_row *found = bsearch(&ours[i], theirs, (size_t)n, sizeof *theirs, compare_names);
		if (!found || strcmp(found->digest.hex, ours[i].digest.hex) != 0)
			return false;
	}
	return true;
}

enum { WHY = 96 };

/* Facts on which no number and no verdict depends, or that only the end of a run knows. (Of the
 * reference not its path, but its digest counts; of the command, the other facts.) */
static bool is_of_one_run(const char *key)
{
	return vn_text_is_word(
			   "command|threads|submits|device_ms|judged|outside|found|stopped|against_limits|against_digest", key) ||
	       strncmp(key, "bytes_", strlen("bytes_")) == 0;
}

/* Does `in` have every fact of `all`? why: the first that it lacks. */
static bool has_facts(const vn_facts *in, const vn_facts *all, bool stopped, char why[WHY])
{
	for (int i = 0; i < all->n; i++) {
		const char *key = all->fact[i].key, *value = vn_facts_get(in, key);
		if (is_of_one_run(key) || (stopped && strncmp(key, "deco", 4) == 0)) /* of as many tokens as there were */
			continue;
		const bool path = strcmp(key, "against") == 0;
		if (!value || (!path && strcmp(value, all->fact[i].value) != 0)) {
			snprintf(why, WHY, "its %s differs",
			         strcmp(key, "choice_digest") == 0 ? "choice of what is recorded or checked" : key);
			return false;
		}
	}
	return true;
}

static bool same_tokens(const vn_recording *r, const vn_recipe *recipe, bool stopped)
{
	const int32_t *ids;
	const int64_t  n = vn_recording_tokens(r, &ids, NULL);
	char *const   *text = vn_recording_token_text(r);

	if ((n != recipe->n_ids + recipe->decode && !stopped) || n < recipe->n_ids || n > recipe->n_ids + recipe->decode ||
	    memcmp(ids, recipe->ids, (size_t)recipe->n_ids * sizeof *ids) != 0 ||
	    (recipe->forced &&
	     memcmp(ids + recipe->n_ids, recipe->forced, (size_t)(n - recipe->n_ids) * sizeof *ids) != 0) ||
	    !text != !recipe->tokenizer)
		return false;
	for (int64_t i = 0; text && i < n; i++) {
		char      *now = vn_tokenizer_show(recipe->tokenizer, ids[i]);
		const bool same = now && strcmp(now, text[i]) == 0;
		free(now);
		if (!same)
			return false;
	}
	return true;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_model(const vn_recording *r, const vn_model *m)
{
	const vn_plan *plan = vn_recording_plan(r);

	return same_text(vn_recording_family(r), vn_model_family(m)) &&
	       same_text(vn_recording_config(r), vn_model_config(m)) &&
	       same_text(vn_recording_format(r), vn_model_format(m)) && plan && vn_plan_equal(plan, vn_model_plan(m));
}

/* Was the recording made by this recipe from what is there now? Compares everything that its bits
 * and its verdict depend on, except what compare_engine does. */
static vn_status compare_recorded(const vn_recording *r, const vn_recipe *recipe, const vn_model *m, char why[WHY],
                                  vn_error *err)
{
	const vn_facts *was = vn_recording_run(r);
	const bool      stopped = recipe->stop_at_first && vn_facts_get(was, "stopped");
	vn_facts        asked = { 0 };

	vn_recipe_facts(recipe, &asked);
	if (!vn_recording_complete(r))
		snprintf(why, WHY, "it is incomplete");
	else if (!same_tokens(r, recipe, stopped))
		snprintf(why, WHY, "its tokens differ");
	else if (!same_model(r, m))
		snprintf(why, WHY, "its config.json differs (or what a GGUF file has in its place)");
	else if (has_facts(was, &asked, stopped, why) && recipe->against) {
		vn_judged_by    by;
		const vn_status st = vn_recipe_judged_by(recipe, m, &by, err);
		if (st)
			return st;
		if (!same_text(vn_facts_get(was, "against_digest"), by.reference.hex))
			snprintf(why, WHY, "the reference that it was judged by differs");
		else if (!same_text(vn_facts_get(was, "against_limits"), by.limits))
			snprintf(why, WHY, "the limits that it was judged by differ");
	}
	return VN_OK;
}

/* The rest: the weights, the faults in them, and what the engine says of itself, its device for
 * example. */
static vn_status compare_engine(const vn_recording *r, const vn_recipe *recipe, vn_session *s, char why[WHY],
                                vn_error *err)
{
	const vn_facts *was = vn_recording_run(r);
	const bool      stopped = recipe->stop_at_first && vn_facts_get(was, "stopped");
	vn_facts        now = { 0 };
	const vn_status st = vn_session_facts(s, recipe, &now, err);

	if (!st && !same_weights(r, s))
		snprintf(why, WHY, "its weights differ");
	else if (!st && has_facts(was, &now, stopped, why))
		has_facts(&now, was, stopped, why);
	return st;
}

/* What the run said when it was made; the same is said now. */
static void recall(const vn_recording *r, vn_session *s, vn_recorded *done)
{
	const char *found = vn_facts_get(vn_recording_run(r), "found");

	vn_recorded_weights(vn_session_table(s), vn_model_plan(s->m)->n_weights, done);
	snprintf(done->found, sizeof done->found, "%s", found ? found : "");
}

/* Does the recording of this recipe exist already? A recording of anything else is refused.
 * done NULL: weights and engine are not compared yet. */
static vn_status find_recorded(const vn_recipe *recipe, vn_session *s, bool *there, vn_recorded *done, vn_error *err)
{
	vn_recording *r = NULL;
	struct stat   st;
	char          why[WHY] = "";

	*there = false;
	if (recipe->force || (lstat(recipe->path, &st) != 0 && errno == ENOENT))
		return VN_OK;
	if (!done && vn_place_check(recipe->path, VN_PLACE_RECORDING, true, err))
		return VN_ERR_IO;
	vn_status opened = vn_recording_open(recipe->path, &r, err);
	if (!opened)
		opened = done ? compare_engine(r, recipe, s, why, err) : compare_recorded(r, recipe, s->m, why, err);
	*there = !opened && !*why;
	if (*there && done)
		recall(r, s, done);
	vn_recording_close(r);
	if (opened)
		return opened;
	return *there ? VN_OK
	              : vn_fail(err, VN_ERR_IO,
	                        "%s: exists already, and this command would write it otherwise: %s; --force replaces it",
	                        recipe->path, why);
}

static vn_status prepare_runs(runs *r, vn_error *err)
{
	vn_status st;
	bool      there;

	for (int i = 0; i < r->n; i++) {
		if ((st = encode_text(r, &r->s[i], err)) || (st = make_recipe(r, i, err)))
			return vn_context(err, st, "%s:%d", r->job->file, r->s[i].line);
		if ((st = find_recorded(&r->run[i].recipe, &r->session, &there, NULL, err)))
			return st;
		if (!there && (st = vn_recipe_check(&r->run[i].recipe, vn_model_plan(r->session.m), err)))
			return vn_context(err, st, "%s:%d", r->job->file, r->s[i].line);
	}
	return VN_OK;
}

/* ---- the runs ------------------------------------------------------------------------------ */

static vn_status record_run(runs *r, int i, bool *kept, vn_recorded *done, vn_error *err)
{
	const vn_recipe *recipe = &r->run[i].recipe;
	vn_status        st = open_session(r, err);

	*done = (vn_recorded) { 0 };
	st = st ? st : find_recorded(recipe, &r->session, kept, done, err);
	if (!st && *kept) {
		warn_of_weights(done);
		warn_of_found(done);
	}
	if (!st && !*kept && !(st = vn_session_record(&r->session, recipe, done, err)))
		vn_prompts_say(recipe->path, done);
	return st;
}

enum { KEPT = 1 << 8, WARNED = 1 << 9 }; /* added to the status of a piece */

static void record_piece(void *context, int i, vn_cluster_answer *a)
{
	vn_error        err = { "" };
	bool            kept = false;
	vn_recorded     done;
	const vn_status st = record_run(context, i, &kept, &done, &err);

	a->status = (int)st | (kept ? KEPT : 0) | (done.nonfinite_weights || *done.found ? WARNED : 0);
	a->text[VN_CLUSTER_WORDS] = strdup(err.text);
}

static vn_status add_answer(void *context, int i, vn_cluster_answer *a, vn_error *err)
{
	runs           *r = context;
	const vn_status st = (vn_status)(a->status & ~(KEPT | WARNED));

	r->kept += (a->status & KEPT) != 0;
	if (a->status & WARNED)
		vn_warned("%s has a warning", r->s[i].name);
	return st ? vn_fail(err, st, "%s", a->text[VN_CLUSTER_WORDS]) : VN_OK;
}

static const char *name_piece(void *context, int i)
{
	return ((const runs *)context)->s[i].name;
}

/* Shares the runs with the other processes of mpirun. The first process reports all results. A
 * mapped model is not inherited by a child process, so each child opens it again. */
static vn_status share_runs(runs *r, bool *first, vn_error *err)
{
	VN_FREED int        *order = vn_alloc((size_t)r->n, sizeof *order);
	const vn_cluster_job job = { .command = "capture",
		                         .instead = "start one process",
		                         .n = r->n,
		                         .order = order,
		                         .same = r->job->recipe->command,
		                         .piece = record_piece,
		                         .done = add_answer,
		                         .name = name_piece,
		                         .context = r };

	for (int i = 0; i < r->n; i++)
		order[i] = i;
	vn_session_close(&r->session);
	return vn_cluster_share(&job, first, err);
}

static vn_status record_all(runs *r, vn_error *err)
{
	bool        first = true, there;
	vn_recorded done;
	vn_status   st = VN_OK;

	if (vn_cluster_size() > 1)
		st = share_runs(r, &first, err);
	else
		for (int i = 0; !st && i < r->n; i++) {
			st = record_run(r, i, &there, &done, err);
			r->kept += !st && there;
			if (st == VN_ERR_INTERRUPTED)
				vn_fail(err, st, "interrupted at %s, %d of %d prompts; type the same command%s to continue",
				        r->s[i].name, i + 1, r->n, r->job->recipe->force ? " without --force" : "");
		}
	if (!st && first)
		vn_say(stderr, "%s: %d recorded, %d already there\n", r->job->folder, r->n - r->kept, r->kept);
	return st;
}

static vn_status make_folder(const char *path, vn_error *err)
{
	struct stat st;

	if (mkdir(path, 0777) == 0 || (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode)))
		return VN_OK;
	return errno == EEXIST ? vn_fail(err, VN_ERR_IO,
	                                 "%s: is not a folder; --prompts writes a recording of each prompt into one", path)
	                       : vn_fail(err, VN_ERR_IO, "%s: cannot create this folder: %s", path, strerror(errno));
}

vn_status vn_prompts_record(const vn_prompts_job *job, vn_error *err)
{
	runs      r = { .job = job };
	vn_status st = vn_scenarios_read(job->file, &r.s, &r.n, err);

	vn_interrupt_catch(); /* not earlier: a signal must be able to end the wait for a pipe */
	r.run = vn_alloc_zero((size_t)r.n, sizeof *r.run);
	if (!st && !(st = open_session(&r, err)) && !(st = open_tokenizer(&r, err)) &&
	    !(st = make_folder(job->folder, err)) && !(st = prepare_runs(&r, err)))
		st = record_all(&r, err);
	vn_session_close(&r.session);
	vn_tokenizer_close(r.tokenizer);
	for (int i = 0; r.run && i < r.n; i++)
		free(r.run[i].forced);
	free(r.run);
	vn_scenarios_free(r.s, r.n);
	return st;
}
