/* cmd_points.c: `vernier points`: where checkpoints can be taken. */
#include "capture/base/option_rows.h"
#include "capture/commands.h"
#include "capture/base/warnings.h"
#include "capture/run/prompt.h"
#include "capture/run/recorder_fault.h"
#include "libref/base/glob.h"
#include "libref/base/nearest.h"
#include "libref/base/options.h"
#include "libref/base/say.h"
#include "libref/base/text.h"
#include "libref/model/model.h"
#include "libref/plan/fault.h"
#include "libref/plan/gemm.h"

#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

typedef struct options {
	const char *faults; /* a glob on fault ids; "": all faults; NULL: list the points */
	bool        verbose;
	bool        strict, mtp;
} options;

static const vn_option known[] = {
	{ "faults", 0, VN_MAYBE(options, faults), .argument = "GLOB",
	  .help =
	      "List the faults that vernier capture --inject makes (vernier help faults.md). With MODEL, say how many of "
	      "its operations each fault fits, or why it fits none. With a GLOB of ids, list the checkpoints of MODEL "
	      "where each fault can be made. Default: list checkpoints." },
	{ "verbose", 0, VN_INTO(options, verbose), .not_with = "faults",
	  .because = "lists matrix products, which faults do not have",
	  .help = "With MODEL: below each checkpoint that matrix products make, their sizes and leading dimensions, as a "
	          "call of BLAS takes them." },
	VN_MTP_OPTION(options, mtp),
	VN_STRICT_OPTION(options, strict, ""),
};

const vn_command vn_points_command = {
	.name = "points",
	.synopsis = "[MODEL] [OPTION]...",
	.about = "List the checkpoints of MODEL, or all checkpoints that any model can have.",
	VN_OPTION_TABLE(known),
	.model = true,
	.examples = "vernier points MODEL\n"
				"vernier points --faults MODEL",
	.status = "0 listed, 1 listed with a warning (--strict), 2 trouble",
};

static void list_points(void)
{
	vn_say(stdout, "%-14s %-20s %-8s %s\n", "point", "axes", "basis", "what it is");
	for (int p = 0; p < VN_N_POINTS; p++) {
		const vn_point_info *i = vn_point_get((vn_point)p);
		vn_say(stdout, "%-14s %-20s %-8s %s\n", i->name, i->axes, i->basis, i->means);
	}
}

/* "(T, 14, 64)", where T is the tokens and S the keys of a call. */
static void put_sizes(const vn_value *v, char *text, size_t room)
{
	size_t at = (size_t)snprintf(text, room, "(");
	for (int i = 0; i < v->rank; i++) {
		const char *comma = i ? ", " : "";
		at += (size_t)(v->size[i] == VN_T   ? snprintf(text + at, room - at, "%sT", comma)
		               : v->size[i] == VN_S ? snprintf(text + at, room - at, "%sS", comma)
		                                    : snprintf(text + at, room - at, "%s%d", comma, v->size[i]));
	}
	snprintf(text + at, room - at, ")");
}

static void list_products(const vn_plan *p, int value)
{
	vn_gemm   g[VN_MAX_GEMM];
	char      text[VN_GEMM_TEXT];
	const int n = vn_gemms_of(p, value, g);

	for (int i = 0; i < n; i++)
		vn_say(stdout, "  gemm %s\n", vn_gemm_text(&g[i], text));
}

static void list_values(const vn_plan *p, bool verbose)
{
	char sizes[VN_SHAPE_TEXT], note[VN_NAME_MAX + 16];

	vn_say(stdout, "%-24s %-20s %-18s %-8s %-10s %s\n", "name", "axes", "shape", "basis", "op", "recorded");
	for (int v = 0; v < p->n_values; v++) {
		const vn_value      *x = &p->value[v];
		const vn_point_info *i = vn_point_get(x->point);
		put_sizes(x, sizes, sizeof sizes);
		if (x->alias_of >= 0)
			snprintf(note, sizeof note, "the same as %s", p->value[vn_plan_root(p, v)].name);
		else
			snprintf(note, sizeof note, "%s", x->on_demand ? "on demand" : "by default");
		vn_say(stdout, "%-24s %-20s %-18s %-8s %-10s %s\n", x->name, i->axes, sizes, i->basis,
		       vn_op_name(p->node[x->node].op), note);
		if (verbose && x->alias_of < 0)
			list_products(p, v);
	}
}

/* Lists all faults and how many places each has in a plan. */
static void list_faults(const vn_plan *p)
{
	vn_say(stdout, "%-14s fits   what it is\n", "fault");
	for (int i = 0; i < vn_n_faults(); i++) {
		const char *why;
		const int   n = vn_fault_count(i, p, &why);
		if (n)
			vn_say(stdout, "%-14s %-6d %s\n", vn_fault_id(i), n, vn_fault_means(i));
		else
			vn_say(stdout, "%-14s %-6s %s (does not fit: %s)\n", vn_fault_id(i), "-", vn_fault_means(i), why);
	}
	for (int i = 0; i < vn_n_recorder_faults(); i++)
		vn_say(stdout, "%-14s %-6d %s\n", vn_recorder_fault_id(i), vn_recorder_fault_count(i, p),
		       vn_recorder_fault_means(i));
}

/* Lists the faults that a pattern selects, one line for each place where they can be made. */
static vn_status list_places(const vn_plan *p, const char *glob, vn_error *err)
{
	int found = 0;

	for (int i = 0; i < vn_n_faults(); i++) {
		if (!vn_glob_match(glob, vn_fault_id(i)))
			continue;
		found++;
		for (int k = 0; k < p->n_nodes; k++)
			if (!vn_fault_why_not(i, p, k))
				vn_say(stdout, "%-14s %s\n", vn_fault_id(i), p->value[p->node[k].out[0]].name);
	}
	for (int i = 0; i < vn_n_recorder_faults(); i++) {
		if (!vn_glob_match(glob, vn_recorder_fault_id(i)))
			continue;
		found++;
		for (int v = 0; v < p->n_values; v++)
			if (vn_recorder_fault_fits(i, p, v))
				vn_say(stdout, "%-14s %s\n", vn_recorder_fault_id(i), p->value[v].name);
	}
	if (found)
		return VN_OK;
	vn_nearest near;
	vn_nearest_start(&near, glob);
	for (int i = 0; i < vn_n_faults(); i++)
		vn_nearest_try(&near, vn_fault_id(i));
	for (int i = 0; i < vn_n_recorder_faults(); i++)
		vn_nearest_try(&near, vn_recorder_fault_id(i));
	return vn_fail(err, VN_ERR_USAGE, "--faults=%s: no fault has such an id%s; vernier points --faults lists them",
	               glob, vn_nearest_hint(&near));
}

static vn_status print_points(const char *path, const options *o, vn_error *err)
{
	vn_model *m;
	vn_status st = vn_model_open_as(path, vn_model_with(o->mtp), &m, err);

	if (st)
		return st;
	vn_prompt_warn("points", m, NULL);
	if (o->faults && *o->faults)
		st = list_places(vn_model_plan(m), o->faults, err);
	else if (o->faults)
		list_faults(vn_model_plan(m));
	else
		list_values(vn_model_plan(m), o->verbose);
	vn_model_close(m);
	return st;
}

int cmd_points(int argc, char **argv)
{
	options   o = { .faults = NULL };
	vn_error  err;
	const int said = vn_options_read(&vn_points_command, argc, argv, &o);

	if (said)
		return said == 1 ? 0 : 2;
	const char *model = optind < argc ? argv[optind] : NULL;
	if (o.faults && *o.faults && vn_glob_check(o.faults, &err))
		return vn_complain("points", "--faults: %s", err.text);
	if (argc - optind > 1 && o.faults && !*o.faults)
		return vn_complain("points", "unexpected '%s': a GLOB stands behind a '=': --faults='%s'", argv[argc - 1],
		                   argv[argc - 1]);
	if (argc - optind > 1)
		return vn_complain("points", "only one model can be given; unexpected '%s'", argv[argc - 1]);
	if (model && vn_text_ends(model, ".h5"))
		return vn_complain("points", "%s is a recording: vernier show %s lists its checkpoints", model, model);
	if (model && o.faults && access(model, F_OK) != 0)
		return vn_fault_find(model) < 0
		           ? vn_complain("points", "%s: no such model", model)
		           : vn_complain("points", "%s: no such model; of one mistake: vernier help %s", model, model);
	if (!model && (o.verbose || o.mtp))
		return vn_complain("points", "--%s needs a MODEL", o.verbose ? "verbose" : "mtp");
	if (!model && o.faults && *o.faults)
		return vn_complain("points", "--faults=%s needs a MODEL", o.faults);
	if (!model && o.faults)
		vn_fault_page(stdout);
	else if (!model)
		list_points();
	return vn_command_end("points", model ? print_points(model, &o, &err) : VN_OK, &err, o.strict, 0);
}
