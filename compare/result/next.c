/* next.c: see next.h. */
#include "compare/result/next.h"

#include "compare/comparison/checkpoint.h"
#include "compare/result/injections.h"
#include "compare/trial/findings.h"
#include "compare/floor/precision.h"
#include "compare/text/runs.h"
#include "libref/base/shell.h"

#include <stdio.h>
#include <string.h>

/* Path of the model's weights, if known. */
static const char *model_of(const vn_comparison *c)
{
	const char *path = c->opened.request.options->model;

	path = path ? path : vn_recording_model_here(c->opened.ref);
	path = path ? path : vn_recording_model_here(c->opened.cand);
	return path ? path : "MODEL";
}

/* Adds --model or --floor of this comparison, unless `option` is another --model. */
static void add_basis(const vn_comparison *c, const char *option, char line[VN_SHELL_LINE])
{
	if (option && strcmp(option, "--model") == 0)
		return;
	if (c->opened.request.options->model)
		vn_shell_option(line, "--model", c->opened.request.options->model);
	else if (c->opened.floor)
		vn_shell_option(line, "--floor", vn_recording_path(c->opened.floor));
}

/* Adds "vernier COMMAND ref.h5 cand.h5 ... --allow WORDS" with one more option, or NULL, and the
 * model or floor that this comparison has. allow: what is allowed in addition. */
static void add_again(const vn_comparison *c, const char *command, unsigned allow, const char *option,
                      const char *value, vn_lines *lines)
{
	char line[VN_SHELL_LINE], words[VN_ALLOW_WORDS];

	if (snprintf(line, sizeof line, "vernier %s%s", command, c->opened.request.again) >= VN_SHELL_LINE)
		return;
	vn_allow_list(c->opened.request.options->allow | allow, words);
	if (*words)
		vn_shell_option(line, "--allow", words);
	if (option)
		vn_shell_option(line, option, value);
	add_basis(c, option, line);
	if (*line)
		vn_lines_add(lines, "%s", line);
}

static void name_of(const vn_checkpoint *p, char name[VN_NAME_MAX + 24])
{
	snprintf(name, VN_NAME_MAX + 24, p->step ? "step.%d/%s" : "%.0d%s", p->step, p->name);
}

static void add_show(const vn_comparison *c, int point, vn_lines *lines)
{
	char name[VN_NAME_MAX + 24];

	if (vn_recording_ranks(c->opened.cand) || c->result.checkpoints.of[point].cand < 0)
		return;
	name_of(&c->result.checkpoints.of[point], name);
	vn_runs_add(lines, (const char *[]) { "show", vn_recording_path(c->opened.cand), name }, 3);
}

/* The files of a comparison with another file as one side. */
typedef struct with_files {
	const char *ref, *cand;
	bool        without_basis; /* neither --model nor --floor */
} with_files;

/* Adds "vernier compare REF CAND ..." with the options of this comparison. */
static void add_with(const vn_comparison *c, with_files f, vn_lines *lines)
{
	char        line[VN_SHELL_LINE] = "vernier compare", both[VN_SHELL_LINE], words[VN_ALLOW_WORDS];
	const char *again = c->opened.request.again ? c->opened.request.again : "";

	vn_shell_begin(both);
	vn_shell_add(both, sizeof both, vn_recording_path(c->opened.ref));
	vn_shell_add(both, sizeof both, vn_recording_path(c->opened.cand));
	vn_shell_end(both);
	vn_shell_add(line, sizeof line, f.ref);
	vn_shell_add(line, sizeof line, f.cand);
	if (*both && strncmp(again, both, strlen(both)) == 0 && strlen(line) + strlen(again) < sizeof line)
		strcat(line, again + strlen(both));
	vn_allow_list(c->opened.request.options->allow, words);
	if (*words)
		vn_shell_option(line, "--allow", words);
	if (!f.without_basis)
		add_basis(c, NULL, line);
	if (*line)
		vn_lines_add(lines, "%s", line);
}

/* Were calls of several tokens joined to one step, as when a prompt was run in chunks? */
static bool has_joined_calls(const vn_recording *r)
{
	const vn_step *step, *call;

	return vn_recording_calls(r, &call) != vn_recording_steps(r, &step);
}

/* Adds a command that makes all mistakes of the catalogue that were named on purpose, and one that
 * compares the candidate with that run: if they are all, it is within limits. No model is given
 * there, since the run is not what the model computes. */
static void add_repetition(const vn_comparison *c, vn_lines *lines)
{
	vn_injection what[VN_INJECTIONS_MOST];
	char         to[VN_SHELL_FILE] = "mistake.h5";
	const char  *own = vn_recording_path(c->opened.ref), *cand = vn_recording_path(c->opened.cand);
	const int    made = vn_recording_ranks(c->opened.ref) ? 0 : vn_injections_of(c, what);
	int          n = 0;

	if (made < 1)
		return;
	vn_shell_new_file(to, sizeof to);
	const char *word[8 + 2 * VN_INJECTIONS_MOST] = { "capture", "ref", model_of(c) };
	n = 3;
	if (has_joined_calls(c->opened.cand) && cand && !c->result.unpaired.cand_map) {
		word[n++] = "--like";
		word[n++] = cand;
	} else {
		word[n++] = "--ids-from";
		word[n++] = own;
		if (vn_recording_decoded(c->opened.ref)) {
			word[n++] = "--force-ids-from";
			word[n++] = own;
		}
	}
	for (int i = 0; i < made; i++) {
		word[n++] = "--inject";
		word[n++] = what[i];
	}
	word[n++] = "-o";
	word[n++] = to;
	vn_runs_add(lines, word, n);
	if (cand)
		add_with(c, (with_files) { to, cand, .without_basis = true }, lines);
}

static void add_swapped(const vn_comparison *c, vn_lines *lines)
{
	char line[VN_SHELL_LINE];

	vn_swapped_line(&c->opened, line);
	if (*line)
		vn_lines_add(lines, "%s", line);
}

/* After explain. */
static void after_explain(const vn_comparison *c, vn_lines *lines)
{
	bool fits = false;

	for (int i = 0; i < c->result.why->n && !fits; i++)
		fits = c->result.why->of[i].n_fit > 0;
	if (fits && c->opened.model)
		add_repetition(c, lines);
	if (c->result.localised.n_origins)
		add_show(c, c->result.localised.origins[0], lines);
	if (!fits && c->opened.model && c->result.floor.n_invalid && !c->result.swapped)
		add_swapped(c, lines); /* the reference is not what its model computes */
	if (!fits && !vn_recording_ranks(c->opened.cand))
		vn_runs_add(lines, (const char *[]) { "show", vn_recording_path(c->opened.cand), "--check" }, 3);
}

/* The checkpoint where the error starts, or else the first of another shape; -1: none. */
static int worth_a_look(const vn_result *r)
{
	for (int i = 0; r->localised.first < 0 && i < r->checkpoints.n; i++)
		if (r->checkpoints.of[i].status == VN_MISSHAPEN)
			return i;
	return r->localised.first;
}

/* Are the names another engine's? They must be translated before anything else can be said. */
static bool add_translated(const vn_comparison *c, vn_lines *lines)
{
	if (c->result.unpaired.cand_map)
		add_again(c, "compare", 0, "--names", c->result.unpaired.cand_map, lines);
	else if (c->result.unpaired.ref_map)
		add_again(c, "compare", 0, "--ref-names", c->result.unpaired.ref_map, lines);
	return c->result.unpaired.cand_map || c->result.unpaired.ref_map;
}

static void after_failure(const vn_comparison *c, vn_lines *lines)
{
	int        at;
	const bool bitwise = c->opened.request.options->bitwise,
			   absent = c->result.verdict.n_status[VN_MISSING] + c->result.verdict.n_status[VN_EXTRA] > 0,
			   allowed = c->opened.request.options->allow & VN_ALLOW_MISSING &&
	                     c->opened.request.options->allow & VN_ALLOW_EXTRA;

	if (add_translated(c, lines))
		return;
	if (c->result.why)
		after_explain(c, lines);
	else if (bitwise && c->result.verdict.n_status[VN_OUTSIDE] + c->result.verdict.n_status[VN_MISSHAPEN] > 0)
		add_again(c, "compare", 0, "--model", model_of(c), lines);
	else if (c->result.verdict.n_status[VN_OUTSIDE])
		add_again(c, "explain", 0, "--model", model_of(c), lines);
	if (c->result.unpaired.misspelt)
		vn_runs_add(lines, (const char *[]) { "show", vn_recording_path(c->opened.cand) }, 2);
	else if (!c->result.verdict.n_status[VN_OUTSIDE] && !c->result.verdict.n_status[VN_MISSHAPEN] && absent && !allowed)
		add_again(c, "compare", VN_ALLOW_MISSING | VN_ALLOW_EXTRA, NULL, NULL, lines);
	if (!c->result.why && vn_recording_path(c->opened.cand) && (at = worth_a_look(&c->result)) >= 0)
		add_show(c, at, lines);
}

/* "python -m vernier_parity replay MODEL CAND OPTION... -o TO" */
static void add_python(const vn_comparison *c, const char *const *option, int n, const char *to, vn_lines *lines)
{
	char line[VN_SHELL_LINE] = "python -m vernier_parity replay";

	vn_shell_add(line, sizeof line, model_of(c));
	vn_shell_add(line, sizeof line, vn_recording_path(c->opened.cand));
	for (int i = 0; i < n; i++)
		vn_shell_add(line, sizeof line, option[i]);
	vn_shell_add(line, sizeof line, "-o");
	vn_shell_add(line, sizeof line, to);
	if (*line)
		vn_lines_add(lines, "%s", line);
}

/* Of a recording of any PyTorch module: a replay file; then its second round, in which what is
 * wrong is computed, and what only worked in another order agrees. */
static void add_replay(const vn_comparison *c, vn_lines *lines)
{
	char to[VN_SHELL_FILE] = "replayed.h5", verdict[VN_SHELL_FILE] = "verdict.json", line[VN_SHELL_LINE];

	vn_shell_new_file(to, sizeof to);
	vn_shell_new_file(verdict, sizeof verdict);
	if (!c->opened.replayed) {
		add_python(c, NULL, 0, to, lines);
		add_again(c, "compare", 0, "--replayed", to, lines);
		return;
	}
	if (c->result.localised.n_origins && !c->opened.replayed->again) {
		snprintf(line, sizeof line, "vernier compare%s", c->opened.request.again);
		vn_shell_option(line, "--replayed", vn_recording_path(c->opened.replayed->recording));
		vn_shell_option(line, "-o", verdict);
		if (*line)
			vn_lines_add(lines, "%s", line);
		add_python(c, (const char *const[]) { "--again", verdict }, 2, to, lines);
		add_again(c, "compare", 0, "--replayed", to, lines);
	}
	if (c->result.localised.n_origins)
		add_show(c, c->result.localised.origins[0], lines);
}

void vn_next_commands(const vn_comparison *c, vn_lines *lines)
{
	if (!c->opened.request.again)
		return;
	if (vn_recording_run_plan(c->opened.cand) && !c->opened.request.options->bitwise) {
		add_replay(c, lines);
		return;
	}
	if (c->result.swapped)
		add_swapped(c, lines);
	if (c->opened.request.infers)
		add_again(c, c->result.why ? "explain" : "compare", 0, "--precision",
		          vn_policy_name(c->opened.request.inferred), lines);
	if (!c->result.verdict.within)
		after_failure(c, lines);
	else if (!c->opened.model && !c->opened.request.options->bitwise)
		add_again(c, "compare", 0, "--model", model_of(c), lines);
}

static bool made_by(const vn_recording *r, const char *engine)
{
	const char *is = vn_facts_get(vn_recording_run(r), "engine");
	return is && strcmp(is, engine) == 0;
}

/* Records one side again with the tokens of the other, and compares. The side must be vernier's
 * own: the reference if possible. */
static void add_same_tokens(const vn_comparison *c, vn_lines *lines)
{
	const bool          ref = made_by(c->opened.ref, "ref");
	const vn_recording *again = ref ? c->opened.ref : c->opened.cand, *from = ref ? c->opened.cand : c->opened.ref;
	const char         *engine = made_by(again, "ref") ? "ref" : made_by(again, "gpu") ? "gpu" : NULL;
	const char         *precision = vn_facts_get(vn_recording_run(again), "precision");
	const char         *other = vn_recording_path(from), *forced = vn_recording_decoded(from) ? other : NULL;
	char                to[VN_SHELL_FILE];

	if (!engine || !precision || vn_recording_ranks(from) || vn_recording_batch(from) > 1)
		return;
	strcpy(to, ref ? "reference.h5" : "candidate.h5");
	vn_shell_new_file(to, sizeof to);
	vn_runs_add(lines,
	            (const char *[]) { "capture", engine, model_of(c), "--precision", precision, "--ids-from", other,
	                               forced ? "--force-ids-from" : NULL, forced, "-o", to },
	            11);
	add_with(c, (with_files) { ref ? to : other, ref ? other : to, false }, lines);
}

void vn_next_after_refusal(const vn_comparison *c, vn_lines *lines)
{
	const vn_recording *both[] = { c->opened.ref, c->opened.cand };
	const bool          alone = both[0] && both[1] && !vn_recording_ranks(both[0]) && !vn_recording_ranks(both[1]);

	if (alone && vn_lines_refused(&c->result.remarks.refusals, "weights"))
		vn_runs_add(lines, (const char *[]) { "weights", vn_recording_path(both[0]), vn_recording_path(both[1]) }, 3);
	else if (alone && vn_lines_refused(&c->result.remarks.refusals, "token_ids"))
		add_same_tokens(c, lines);
	for (int i = 0; i < 2; i++)
		if (both[i])
			vn_runs_add(lines, (const char *[]) { "show", vn_recording_path(both[i]) }, 2);
}
