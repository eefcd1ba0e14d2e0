/* compare_line.c: see compare_line.h. */
#include "compare/compare_line.h"

#include "capture/file/output.h"
#include "capture/recording/derive.h"
#include "compare/floor/precision.h"

#include "libref/base/printed.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------------------------- */

int vn_compare_files_of(const vn_compare_line *k, int i, char *const **file)
{
	*file = k->set ? k->set[i].file : &k->many[i];
	return k->set ? k->set[i].n : 1;
}

/* Two names may be one file (r.json and ./r.json), which shows when the first report is written. */
vn_status vn_compare_check_apart(const vn_compare_line *k, int i, vn_error *err)
{
	for (int j = 0; j < i; j++)
		if (vn_same_file(k->report[i].path, k->report[j].path))
			return vn_fail(err, VN_ERR_USAGE,
			               "%s: is the file of another report, %s; give each report a file of its own",
			               k->report[i].path, k->report[j].path);
	return VN_OK;
}

/* With --force a report may replace an older report, but never one of its own inputs. */
static vn_status check_place(const vn_compare_line *k, const char *path, vn_error *err)
{
	const char *const read[] = { k->ref, k->cand, k->floor, k->replayed, k->limits, k->how.o.baseline };
	char *const      *file;
	bool              input = false;

	for (int i = 0; i < k->n_many; i++)
		for (int j = vn_compare_files_of(k, i, &file) - 1; j >= 0; j--)
			input = input || vn_same_file(path, file[j]);
	for (size_t i = 0; i < sizeof read / sizeof *read; i++)
		input = input || vn_same_file(path, read[i]);
	return input ? vn_fail(err, VN_ERR_USAGE,
	                       "%s: is an input of this comparison; a report cannot replace it: give -o another name", path)
	             : vn_place_check(path, VN_PLACE_REPORT, k->force, err);
}

/* A path given twice, or a link to the other side, always agrees. Two rows of one batch are
 * two different runs. */
vn_status vn_compare_check_itself(const vn_compare_line *k, vn_result *r, vn_error *err)
{
	const char *twice = NULL;
	for (int i = 0; i < k->n_ranks && !twice && k->sides.batch_row == k->sides.ref_batch_row; i++) {
		const char *cand = k->n_ranks > 1 ? k->ranks[i] : k->cand;
		twice = vn_same_file(k->ref, cand) ? cand : NULL;
	}
	if (twice && !(k->how.o.allow & VN_ALLOW_ITSELF))
		return vn_fail(err, VN_ERR_USAGE,
		               "%s is the same file as the reference, %s: a recording always agrees with "
		               "itself (--allow itself compares it all the same)",
		               twice, k->ref);
	if (twice)
		vn_lines_add(&r->remarks.warnings,
		             "allowed (itself): %s is the same file as the reference: the comparison shows nothing", twice);
	return VN_OK;
}

/* Checks the output paths before the comparison, which may take an hour. */
vn_status vn_compare_check_places(const vn_compare_line *k, vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; i < k->n_reports && !st; i++)
		if (k->report[i].path)
			st = check_place(k, k->report[i].path, err);
	return st;
}

void vn_compare_settings(const vn_compare_line *k, vn_lines *notes)
{
	const char *const set[][2] = { { "--limits", k->limits },
		                           { "--names", k->sides.n_names ? k->sides.names[0] : NULL },
		                           { "--model", k->model_from ? NULL : k->how.o.model } };
	vn_options_notes(set, sizeof set / sizeof *set, notes);
	if (k->model_from)
		vn_lines_add(notes, "--model %s: from %s", k->how.o.model, k->model_from);
}

/* ---- what is compared ------------------------------------------------------------------------ */

/* The shipped limits for quantised weights against unquantised ones: quantisation costs more than
 * any choice of precision. */
static const char *block_limits(const vn_compare_line *k, const vn_opened *o)
{
	const char *ref = vn_recording_format(o->ref), *cand = vn_recording_format(o->cand);
	return (k->how.o.allow & VN_ALLOW_WEIGHTS) && cand && !(ref && strcmp(ref, cand) == 0)
	           ? vn_limits_of_blocks(cand, vn_recording_family(o->cand))
	           : NULL;
}

static vn_status read_limits(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	if (k->how.o.bitwise) {
		snprintf(chosen, room, "--bitwise: every bit must be equal");
		return vn_limits_bitwise(&c->opened.request.limits, err);
	}
	if (k->limits) {
		snprintf(chosen, room, "--limits");
		return vn_limits_open(k->limits, &c->opened.request.limits, err);
	}
	/* Without a candidate, takes the reference's precision, weights and model. */
	const char         *who = k->absent == VN_NO_CANDIDATE ? "reference" : "candidate";
	const vn_recording *by = k->absent == VN_NO_CANDIDATE ? c->opened.ref : c->opened.cand;
	const char         *precision = by == c->opened.cand ? vn_precision_of_candidate(&c->opened) : vn_precision_of(by);
	const char         *blocks = block_limits(k, &c->opened);
	snprintf(chosen, room, blocks ? "the %s's weights are %.60s" : "the %s's precision is %.40s", who,
	         blocks ? vn_recording_format(c->opened.cand) : precision);
	vn_text_clean(chosen, room); /* another program wrote it */
	const vn_status st = blocks ? vn_limits_shipped(blocks, &c->opened.request.limits, err)
	                            : vn_limits_own(precision, vn_recording_family(by), &c->opened.request.limits, err);
	return st ? vn_context(err, st, "%s", k->cand) : VN_OK;
}

vn_status vn_compare_judge_alone(const vn_compare_line *k, vn_comparison *c, char *chosen, size_t room, vn_error *err)
{
	const bool candidate = k->absent == VN_NO_REFERENCE;
	vn_status  st;

	if ((st = vn_recording_open(candidate ? k->cand : k->ref, candidate ? &c->opened.cand : &c->opened.ref, err)) ||
	    (st = vn_derive_nothing(candidate ? k->ref : k->cand, candidate ? &c->opened.ref : &c->opened.cand, err)) ||
	    (st = read_limits(k, c, chosen, room, err)))
		return st;
	return vn_compare_alone(c, err);
}

/* vernier has no formula of the operations of any PyTorch module. */
static vn_status refuse_model(const vn_compare_line *k, const vn_opened *o, vn_error *err)
{
	if (!k->how.o.model || (!vn_recording_run_plan(o->ref) && !vn_recording_run_plan(o->cand)))
		return VN_OK;
	return vn_fail(err, VN_ERR_UNSUPPORTED,
	               "%s: a recording of any PyTorch module, which vernier cannot compute: python -m vernier_parity "
	               "explain %s %s computes it and explains (vernier help compare.md)",
	               k->cand, k->how.o.model, k->cand);
}

vn_status vn_compare_open(const vn_compare_line *k, vn_comparison *c, vn_recording *const opened[2], char *chosen,
                          size_t room, vn_error *err)
{
	vn_sides  sides = k->sides;
	vn_status st;
	sides.ref = k->ref;
	sides.cand = k->n_ranks > 1 ? (const char *const *)k->ranks : &k->cand;
	sides.n_cand = k->n_ranks;
	sides.floor = k->floor;
	sides.replayed = k->replayed;
	if (opened)
		memcpy(sides.opened, opened, sizeof sides.opened);
	vn_compare_settings(k, &c->result.remarks.notes);
	if (!(st = vn_sides_open(&sides, &c->opened, &c->result.remarks, err)))
		st = refuse_model(k, &c->opened, err);
	return st ? st : read_limits(k, c, chosen, room, err);
}

/* ---- the same line again --------------------------------------------------------------------- */

static void repeat_option(void *again, const vn_option *o, const char *value)
{
	char name[40];

	snprintf(name, sizeof name, "--%s", o->name);
	if (o->repeated && value)
		vn_shell_option(again, name, value);
	else if (o->repeated)
		vn_shell_add(again, VN_SHELL_LINE, name);
}

void vn_compare_again(const vn_compare_line *k, char again[VN_SHELL_LINE])
{
	vn_shell_begin(again);
	vn_shell_add(again, VN_SHELL_LINE, k->ref);
	if (k->n_ranks > 1)
		vn_shell_add(again, VN_SHELL_LINE, "--shard");
	for (int i = 0; i < k->n_ranks; i++)
		vn_shell_add(again, VN_SHELL_LINE, k->n_ranks > 1 ? k->ranks[i] : k->cand);
	vn_options_each(k->command, k, repeat_option, again);
	vn_shell_end(again);
}

/* ---- where reports go ------------------------------------------------------------------------ */

bool vn_compare_shows_text(const vn_compare_line *k)
{
	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path && k->report[i].form->write == vn_report_text)
			return true;
	return false;
}

bool vn_compare_all_to_files(const vn_compare_line *k)
{
	for (int i = 0; i < k->n_reports; i++)
		if (!k->report[i].path)
			return false;
	return true;
}

void vn_compare_print_files(const vn_compare_line *k)
{
	vn_say(stdout, "Written:");
	for (int i = 0; i < k->n_reports; i++)
		vn_say(stdout, "%s %s", i ? "," : "", k->report[i].path);
	vn_say(stdout, "\n");
}

bool vn_colours(vn_colour_choice choice)
{
	static int  known = -1; /* the first call's answer: a worker has another stdout */
	const char *no = getenv("NO_COLOR"), *force = getenv("CLICOLOR_FORCE"), *term = getenv("TERM");
	const bool  forced = !(no && *no) && force && *force && strcmp(force, "0") != 0;

	if (known < 0)
		known = forced || (isatty(STDOUT_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0));
	const bool all = choice == VN_COLOUR_AUTO ? known : choice == VN_COLOUR_ALWAYS;
	if (all)
		vn_printed_colours();
	return all;
}
