/* next.c: see next.h. */
#include "compare/result/next.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/comparison.h"
#include "compare/floor/precision.h"
#include "compare/text/runs.h"
#include "compare/trial/findings.h"

#include "libref/base/alloc.h"
#include "libref/base/shell.h"
#include "libref/plan/fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The mistakes of the catalogue that explain a comparison, as options of
 * `vernier capture` that make them again. */

enum { INJECTIONS_MOST = 24 };

/* "R1@layer1.q_rope", "R1@layer*.q_rope", "R1@*" */
typedef char injection[VN_NAME_MAX + 64];

/* Which mistake is made at each operation. */
typedef struct made_mistakes {
	const vn_checkpoints *all;
	const vn_plan        *p;
	int                  *fault; /* (nodes): 1 + the fault; 0: none */
	const char          **name;  /* (nodes): the checkpoint by which the operation is named */
	bool                 *done;  /* (nodes) */
	injection            *what;
	int                   n;
	bool                  full;
} made_mistakes;

static const char *node_name(const made_mistakes *m, int node)
{
	return m->name[node] ? m->name[node] : m->p->value[m->p->node[node].out[0]].name;
}

static void add_pattern(made_mistakes *m, int fault, const char *glob)
{
	if (m->n == INJECTIONS_MOST)
		m->full = true;
	else
		snprintf(m->what[m->n++], sizeof *m->what, "%s@%s", vn_fault_id(fault), glob);
}

/* 1 + a fault of the catalogue that makes it: the first or the second; 0: none. */
static int fault_of(const vn_trial *h, int which)
{
	return h->finding == VN_FINDING_FROM_ZERO ? which ? 0 : 1 + vn_trial_row(h) : h->fault[which];
}

/* Can it be made on purpose, and would every step still be as it was found? */
static bool can_be_made(const vn_findings *x)
{
	const vn_trial *h = &x->by[0];

	return x->n_fit > 0 && (h->finding == VN_FINDING_FAULT || h->finding == VN_FINDING_FROM_ZERO) && !h->heads &&
	       !h->speaks_against;
}

/* What is recorded wrongly is named by its checkpoint, because an operation may have several. */
static void add_recorder_fault(made_mistakes *m, const vn_findings *x)
{
	const char *name = m->all->of[x->checkpoint].name;
	const int   fault = x->by[0].fault[0] - 1;
	char        same[sizeof(injection)];

	snprintf(same, sizeof same, "%s@%s", vn_fault_id(fault), name);
	for (int i = 0; i < m->n; i++)
		if (strcmp(m->what[i], same) == 0)
			return;
	add_pattern(m, fault, name);
}

/* which: the first or the second of its faults. */
static void mark_places(made_mistakes *m, const vn_findings *x, int which)
{
	const vn_trial *h = &x->by[0];
	const char     *name = m->all->of[x->checkpoint].name;
	const int       v = vn_plan_find(m->p, name), own = v < 0 ? -1 : m->p->value[vn_plan_root(m->p, v)].node;

	for (int i = 0; i < m->p->n_nodes; i++) {
		if (!vn_trial_made_at(h, i) || m->fault[i])
			continue;
		m->fault[i] = fault_of(h, which);
		m->name[i] = i == own ? name : NULL;
	}
}

/* Selects the operations that a pattern would take with this one. */
typedef bool (*is_alike)(const made_mistakes *m, int node, int other);

static bool any_other(const made_mistakes *m, int node, int other)
{
	(void)m, (void)node, (void)other;
	return true;
}

static bool at_same_point(const made_mistakes *m, int node, int other)
{
	const char *a = m->p->value[m->p->node[node].out[0]].name, *b = m->p->value[m->p->node[other].out[0]].name;

	return m->p->node[node].layer >= 0 && m->p->node[other].layer >= 0 &&
	       strcmp(vn_name_in_layer(a), vn_name_in_layer(b)) == 0;
}

static bool in_same_layer(const made_mistakes *m, int node, int other)
{
	return m->p->node[node].layer >= 0 && m->p->node[node].layer == m->p->node[other].layer;
}

/* Is the mistake made at all operations alike that can have it, and at several? An operation with
 * another mistake may then have this one as well, since one is made after the other. */
static bool has_all(const made_mistakes *m, int node, is_alike alike)
{
	int n = 0;

	for (int i = 0; i < m->p->n_nodes; i++) {
		if (!alike(m, node, i) || (!m->fault[i] && vn_fault_why_not(m->fault[node] - 1, m->p, i)))
			continue;
		if (m->fault[i] != m->fault[node] || m->done[i])
			return false;
		n++;
	}
	return n > 1;
}

static void tick_off(made_mistakes *m, int node, is_alike alike)
{
	for (int i = 0; i < m->p->n_nodes; i++)
		m->done[i] = m->done[i] || (m->fault[i] == m->fault[node] && alike(m, node, i));
}

static void add_patterns_of(made_mistakes *m, int node)
{
	char glob[VN_NAME_MAX + 16] = "*";

	if (has_all(m, node, any_other))
		tick_off(m, node, any_other);
	else if (has_all(m, node, in_same_layer)) {
		tick_off(m, node, in_same_layer);
		snprintf(glob, sizeof glob, "layer%d", m->p->node[node].layer);
	} else if (has_all(m, node, at_same_point)) {
		tick_off(m, node, at_same_point);
		snprintf(glob, sizeof glob, "layer*.%s", vn_name_in_layer(node_name(m, node)));
	} else {
		m->done[node] = true;
		snprintf(glob, sizeof glob, "%s", node_name(m, node));
	}
	add_pattern(m, m->fault[node] - 1, glob);
}

/* Writes every mistake that an origin is explained by, at every operation at which it is made, in
 * as few patterns as name these operations alone. Left out is what --inject cannot make: a fitted
 * number, some heads of several, an answer that another step contradicts. Returns how many; -1:
 * they are too many for a command line. */
static int injections_of(const vn_opened *o, const vn_result *r, injection what[INJECTIONS_MOST])
{
	const vn_plan         *p = vn_model_plan(o->model);
	const size_t           nodes = (size_t)p->n_nodes;
	const vn_all_findings *why = r->why;
	made_mistakes          m = { .all = &r->checkpoints,
		                         .p = p,
		                         .what = what,
		                         .fault = vn_alloc_zero(nodes, sizeof *m.fault),
		                         .name = vn_alloc_zero(nodes, sizeof *m.name),
		                         .done = vn_alloc_zero(nodes, sizeof *m.done) };

	bool alone = r->localised.n_captured > 0; /* what was captured wrongly, and no operation */
	for (int which = 0; which < 2; which++) {
		memset(m.fault, 0, nodes * sizeof *m.fault);
		memset(m.done, 0, nodes * sizeof *m.done);
		for (int i = 0; i < why->n; i++) {
			if (!can_be_made(&why->of[i]) || !fault_of(&why->of[i].by[0], which))
				continue;
			if (why->of[i].by[0].recorder_fault)
				add_recorder_fault(&m, &why->of[i]);
			else {
				mark_places(&m, &why->of[i], which);
				alone = false;
			}
		}
		for (int i = 0; i < p->n_nodes; i++)
			if (m.fault[i] && !m.done[i])
				add_patterns_of(&m, i);
	}
	VN_FREE(m.fault, m.name, m.done);
	return m.full ? -1 : alone ? 0 : m.n;
}

/* Path of the model's weights, if known. */
static const char *model_of(const vn_opened *o)
{
	const char *path = o->request.options->model;

	path = path ? path : vn_recording_model_here(o->ref);
	path = path ? path : vn_recording_model_here(o->cand);
	return path ? path : "MODEL";
}

/* Adds --model or --floor of this comparison, unless `option` is another --model. */
static void add_basis(const vn_opened *o, const char *option, char line[VN_SHELL_LINE])
{
	if (option && strcmp(option, "--model") == 0)
		return;
	if (o->request.options->model)
		vn_shell_option(line, "--model", o->request.options->model);
	else if (o->floor)
		vn_shell_option(line, "--floor", vn_recording_path(o->floor));
}

/* Adds "vernier COMMAND ref.h5 cand.h5 ... --allow WORDS" with one more option, or NULL, and the
 * model or floor that this comparison has. allow: what is allowed in addition. */
static void add_again(const vn_opened *o, const char *command, unsigned allow, const char *option, const char *value,
                      vn_lines *lines)
{
	char line[VN_SHELL_LINE], words[VN_ALLOW_WORDS];

	if (snprintf(line, sizeof line, "vernier %s%s", command, o->request.again) >= VN_SHELL_LINE)
		return;
	vn_allow_list(o->request.options->allow | allow, words);
	if (*words)
		vn_shell_option(line, "--allow", words);
	if (option)
		vn_shell_option(line, option, value);
	add_basis(o, option, line);
	if (*line)
		vn_lines_add(lines, "%s", line);
}

static void name_of(const vn_checkpoint *p, char name[VN_NAME_MAX + 24])
{
	snprintf(name, VN_NAME_MAX + 24, p->step ? "step.%d/%s" : "%.0d%s", p->step, p->name);
}

static void add_show(const vn_opened *o, const vn_result *r, int point, vn_lines *lines)
{
	char name[VN_NAME_MAX + 24];

	if (vn_recording_ranks(o->cand) || r->checkpoints.of[point].cand < 0)
		return;
	name_of(&r->checkpoints.of[point], name);
	vn_runs_add(lines, "vernier", "show", vn_recording_path(o->cand), name);
}

static bool made_by(const vn_recording *r, const char *engine)
{
	const char *is = vn_facts_get(vn_recording_run(r), "engine");
	return is && strcmp(is, engine) == 0;
}

/* The files of a comparison with another file as one side. */
typedef struct with_files {
	const char *ref, *cand;
	bool        without_basis; /* neither --model nor --floor */
} with_files;

/* Adds "vernier compare REF CAND ..." with the options of this comparison. */
static void add_with(const vn_opened *o, with_files f, vn_lines *lines)
{
	char        line[VN_SHELL_LINE] = "vernier compare", both[VN_SHELL_LINE], words[VN_ALLOW_WORDS];
	const char *again = o->request.again ? o->request.again : "";

	vn_shell_begin(both);
	vn_shell_add(both, sizeof both, vn_recording_path(o->ref));
	vn_shell_add(both, sizeof both, vn_recording_path(o->cand));
	vn_shell_end(both);
	vn_shell_add(line, sizeof line, f.ref);
	vn_shell_add(line, sizeof line, f.cand);
	if (*both && strncmp(again, both, strlen(both)) == 0 && strlen(line) + strlen(again) < sizeof line)
		strcat(line, again + strlen(both));
	vn_allow_list(o->request.options->allow, words);
	if (*words)
		vn_shell_option(line, "--allow", words);
	if (!f.without_basis)
		add_basis(o, NULL, line);
	if (*line)
		vn_lines_add(lines, "%s", line);
}

/* Were there other calls than a prompt and single tokens, as when a prompt is run in chunks, or
 * were calls joined to one step? */
static bool has_further_calls(const vn_recording *r)
{
	const vn_step *step, *call;
	const int      n = vn_recording_calls(r, &call);
	bool           further = n != vn_recording_steps(r, &step);

	for (int i = 1; i < n; i++)
		further = further || call[i].tokens > 1;
	return further;
}

/* Adds a command that makes all mistakes of the catalogue that were named on purpose, and one that
 * compares the candidate with that run: if they are all, it is within limits. No model is given
 * there, since the run is not what the model computes. */
static void add_repetition(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	injection   what[INJECTIONS_MOST];
	char        to[VN_SHELL_FILE] = "mistake.h5";
	const char *own = vn_recording_path(o->ref), *cand = vn_recording_path(o->cand);
	const int   made = vn_recording_ranks(o->ref) ? 0 : injections_of(o, r, what);

	if (made < 1)
		return;
	vn_shell_new_file(to, sizeof to);
	const bool  like = has_further_calls(o->cand) && cand && !r->unpaired.cand_map;
	const bool  forced = !like && vn_recording_decoded(o->ref);
	size_t      n = 8;
	const char *word[10 + 2 * INJECTIONS_MOST] = { "capture",
		                                           "ref",
		                                           model_of(o),
		                                           vn_recording_has_mtp(o->ref) ? "--mtp" : NULL,
		                                           like ? "--like" : "--ids-from",
		                                           like ? cand : own,
		                                           forced ? "--force-ids-from" : NULL,
		                                           forced ? own : NULL };
	for (int i = 0; i < made; i++) {
		word[n++] = "--inject";
		word[n++] = what[i];
	}
	word[n++] = "-o";
	word[n++] = to;
	vn_runs_of(lines, "vernier", word, n);
	if (cand)
		add_with(o, (with_files) { to, cand, .without_basis = true }, lines);
}

static void add_swapped(const vn_opened *o, vn_lines *lines)
{
	char line[VN_SHELL_LINE];

	vn_swapped_line(o, line);
	if (*line)
		vn_lines_add(lines, "%s", line);
}

/* After explain: does a mistake fit somewhere? */
static bool is_named(const vn_result *r)
{
	bool fits = false;

	for (int i = 0; i < r->why->n && !fits; i++)
		fits = r->why->of[i].n_fit > 0;
	return fits;
}

static void after_explain(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	const bool fits = is_named(r);

	if (fits && o->model)
		add_repetition(o, r, lines);
	if (r->localised.n_origins)
		add_show(o, r, r->localised.origins[0], lines);
	if (!fits && o->model && r->floor.n_invalid && !r->swapped)
		add_swapped(o, lines); /* the reference is not what its model computes */
	if (!fits && !vn_recording_ranks(o->cand))
		vn_runs_add(lines, "vernier", "show", vn_recording_path(o->cand), "--check");
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
static bool add_translated(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	if (r->unpaired.cand_map)
		add_again(o, "compare", 0, "--names", r->unpaired.cand_map, lines);
	else if (r->unpaired.ref_map)
		add_again(o, "compare", 0, "--ref-names", r->unpaired.ref_map, lines);
	return r->unpaired.cand_map || r->unpaired.ref_map;
}

/* Is the error where the calls of a prompt matter: what a call reads of earlier ones, and what the
 * length chooses? */
static bool depends_on_calls(const vn_opened *o, const vn_result *r)
{
	const vn_checkpoint *p = r->localised.first >= 0 ? &r->checkpoints.of[r->localised.first] : NULL;
	const int            node = p && p->value >= 0 && o->plan ? o->plan->value[p->value].node : -1;

	if (node < 0)
		return false;
	const vn_op op = o->plan->node[node].op;
	return p->replay.span > 1 || op == VN_OP_ATTENTION || op == VN_OP_ROPE || op == VN_OP_DELTA_RULE;
}

/* The reference ran a prompt in one call, and the candidate in several: records it again in the
 * candidate's calls, and compares. */
static void add_own_calls(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	const char *cand = vn_recording_path(o->cand), *precision = vn_facts_get(vn_recording_run(o->ref), "precision");
	char        to[VN_SHELL_FILE] = "reference.h5";

	if (!has_further_calls(o->cand) || has_further_calls(o->ref) || !made_by(o->ref, "ref") || !cand || !precision ||
	    vn_recording_ranks(o->cand) || vn_recording_batch(o->cand) > 1 || !depends_on_calls(o, r))
		return;
	vn_shell_new_file(to, sizeof to);
	vn_runs_add(lines, "vernier", "capture", "ref", model_of(o), vn_recording_has_mtp(o->ref) ? "--mtp" : NULL,
	            "--precision", precision, "--like", cand, "-o", to);
	add_with(o, (with_files) { to, cand, false }, lines);
}

static void after_failure(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	int        at;
	const bool bitwise = o->request.options->bitwise,
			   absent = r->verdict.n_status[VN_MISSING] + r->verdict.n_status[VN_EXTRA] > 0,
			   allowed = o->request.options->allow & VN_ALLOW_MISSING && o->request.options->allow & VN_ALLOW_EXTRA;

	if (vn_recording_count(o->cand) == 0) /* of two folders: its engine is to make it */
		return;
	if (vn_recording_count(o->ref) == 0) {
		vn_runs_add(lines, "vernier", "capture", "ref", model_of(o), "--like", vn_recording_path(o->cand), "-o",
		            vn_recording_path(o->ref));
		return;
	}
	if (add_translated(o, r, lines))
		return;
	if (!r->why || !is_named(r))
		add_own_calls(o, r, lines);
	if (r->why)
		after_explain(o, r, lines);
	else if (bitwise && r->verdict.n_status[VN_OUTSIDE] + r->verdict.n_status[VN_MISSHAPEN] > 0)
		add_again(o, "compare", 0, "--model", model_of(o), lines);
	else if (r->verdict.n_status[VN_OUTSIDE])
		add_again(o, "explain", 0, "--model", model_of(o), lines);
	if (r->unpaired.misspelt)
		vn_runs_add(lines, "vernier", "show", vn_recording_path(o->cand));
	else if (!r->verdict.n_status[VN_OUTSIDE] && !r->verdict.n_status[VN_MISSHAPEN] && absent && !allowed)
		add_again(o, "compare", VN_ALLOW_MISSING | VN_ALLOW_EXTRA, NULL, NULL, lines);
	if (!r->why && vn_recording_path(o->cand) && (at = worth_a_look(r)) >= 0)
		add_show(o, r, at, lines);
}

/* Of a recording of any PyTorch module: a replay file; then its second round, in which what is
 * wrong is computed, and what only worked in another order agrees. */
static void add_replay(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	static const char PYTHON_REPLAY[] = "python -m vernier_parity replay";
	char              to[VN_SHELL_FILE] = "replayed.h5", verdict[VN_SHELL_FILE] = "verdict.json", line[VN_SHELL_LINE];

	vn_shell_new_file(to, sizeof to);
	vn_shell_new_file(verdict, sizeof verdict);
	if (!o->replayed) {
		vn_runs_add(lines, PYTHON_REPLAY, model_of(o), vn_recording_path(o->cand), "-o", to);
		add_again(o, "compare", 0, "--replayed", to, lines);
		return;
	}
	if (r->localised.n_origins && !o->replayed->again) {
		snprintf(line, sizeof line, "vernier compare%s", o->request.again);
		vn_shell_option(line, "--replayed", vn_recording_path(o->replayed->recording));
		vn_shell_option(line, "-o", verdict);
		if (*line)
			vn_lines_add(lines, "%s", line);
		vn_runs_add(lines, PYTHON_REPLAY, model_of(o), vn_recording_path(o->cand), "--again", verdict, "-o", to);
		add_again(o, "compare", 0, "--replayed", to, lines);
	}
	if (r->localised.n_origins)
		add_show(o, r, r->localised.origins[0], lines);
}

void vn_next_commands(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	if (!o->request.again)
		return;
	if (vn_recording_run_plan(o->cand) && !o->request.options->bitwise) {
		add_replay(o, r, lines);
		return;
	}
	if (r->swapped)
		add_swapped(o, lines);
	if (o->request.infers)
		add_again(o, r->why ? "explain" : "compare", 0, "--precision", vn_policy_name(o->request.inferred), lines);
	if (!r->verdict.within)
		after_failure(o, r, lines);
	else if (!o->model && !o->request.options->bitwise)
		add_again(o, "compare", 0, "--model", model_of(o), lines);
}

/* Records one side again with the tokens of the other, and compares. The side must be vernier's
 * own: the reference if possible. */
static void add_same_tokens(const vn_opened *o, vn_lines *lines)
{
	const bool          ref = made_by(o->ref, "ref");
	const vn_recording *again = ref ? o->ref : o->cand, *from = ref ? o->cand : o->ref;
	const char         *engine = made_by(again, "ref") ? "ref" : made_by(again, "gpu") ? "gpu" : NULL;
	const char         *precision = vn_facts_get(vn_recording_run(again), "precision");
	const char         *other = vn_recording_path(from), *forced = vn_recording_decoded(from) ? other : NULL;
	char                to[VN_SHELL_FILE];

	if (!engine || !precision || vn_recording_ranks(from) || vn_recording_batch(from) > 1)
		return;
	strcpy(to, ref ? "reference.h5" : "candidate.h5");
	vn_shell_new_file(to, sizeof to);
	vn_runs_add(lines, "vernier", "capture", engine, model_of(o), vn_recording_has_mtp(again) ? "--mtp" : NULL,
	            "--precision", precision, "--ids-from", other, forced ? "--force-ids-from" : NULL, forced, "-o", to);
	add_with(o, (with_files) { ref ? to : other, ref ? other : to, false }, lines);
}

void vn_next_after_refusal(const vn_opened *o, const vn_result *r, vn_lines *lines)
{
	const vn_recording *both[] = { o->ref, o->cand };
	const bool          alone = both[0] && both[1] && !vn_recording_ranks(both[0]) && !vn_recording_ranks(both[1]);

	if (alone && vn_lines_refused(&r->remarks.refusals, "weights"))
		vn_runs_add(lines, "vernier", "weights", vn_recording_path(both[0]), vn_recording_path(both[1]));
	else if (alone && vn_lines_refused(&r->remarks.refusals, "token_ids"))
		add_same_tokens(o, lines);
	for (int i = 0; i < 2; i++)
		if (both[i])
			vn_runs_add(lines, "vernier", "show", vn_recording_path(both[i]));
}
