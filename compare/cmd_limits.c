/* cmd_limits.c: vernier limits FILE: check a limits file, and show its effect on a set of
 * checkpoints. */
#include "compare/commands.h"
#include "compare/chapters/compare.h"
#include "compare/limits/limits_use.h"
#include "compare/options.h"
#include "compare/match/sides.h"

#include "capture/base/warnings.h"
#include "libref/base/nearest.h"
#include "libref/base/say.h"
#include "libref/plan/point.h"

#include <stdio.h>
#include <string.h>

static void show_limit(const vn_limit *l, vn_form form, vn_metric m)
{
	char                  key[VN_KEY_TEXT];
	const vn_metric_info *info = vn_metric_get(m);
	const bool            higher = form != VN_OVER_FLOOR && info->better == VN_HIGHER;
	const bool            one = form != VN_OVER_FLOOR && info->better == VN_NEAR_ONE;
	const char           *why = vn_rule_why(l->rule, form, m);
	char                  depth[64] = "";
	if (l->rule->key[form][m].deep)
		snprintf(depth, sizeof depth, "by depth, %g to %g  ", l->rule->key[form][m].value, l->rule->key[form][m].last);
	vn_say(stdout, "  %-28s %s %-10.6g %s%s%s:%d%s%s%s\n", vn_limit_key(form, m, key),
	       one      ? "1 +-"
	       : higher ? ">=  "
	                : "<=  ",
	       l->value, depth, form == VN_WITHOUT_FLOOR ? "when no floor is known  " : "", l->rule->file, l->line,
	       why ? "  \"" : "", why ? why : "", why ? "\"" : "");
}

static void print_limits(vn_limits *l, const char *name)
{
	vn_limit_set set;
	int          n = 0;
	vn_limits_for(l, name, &set);
	vn_say(stdout, "%s\n", name);
	for (int m = 0; m < VN_N_METRICS; m++)
		for (int f = 0; f < VN_N_FORMS; f++) {
			/* Defaults for logits do not apply to other checkpoints. */
			if (!set.limit[f][m].rule ||
			    (vn_metric_get((vn_metric)m)->scores && !set.limit[f][m].rule->match && strcmp(name, "logits") != 0))
				continue;
			show_limit(&set.limit[f][m], (vn_form)f, (vn_metric)m);
			n++;
		}
	if (!set.limit[VN_PLAIN][VN_M_NONFINITE].rule)
		vn_say(stdout, "  %-28s <=   0          always, unless limits say otherwise\n", "nonfinite");
	for (int i = 0; i < VN_N_PERMISSIONS; i++) {
		const vn_permission_info *info = vn_permission_get((vn_permission)i);
		const vn_rule            *by = set.permission[i];
		if (by)
			vn_say(stdout, "  %-28s %-15s %s:%d\n", info->key, info->by_default ? info->refusal : "allowed", by->file,
			       by->line);
	}
	if (!n)
		vn_say(stdout, "  no other limit\n");
}

static void show_metrics(void)
{
	vn_say(stdout,
	       "\nwhat can be limited (floor: also METRIC_over_floor, in units of the number format's own error):\n");
	for (int m = 0; m < VN_N_METRICS; m++) {
		const vn_metric_info *i = vn_metric_get((vn_metric)m);
		const int             at = vn_say(stdout, "  %-20s %s %-6s", i->name,
                              i->better == VN_HIGHER ? ">=" : "<=", i->over_floor ? "floor" : "");
		vn_options_wrap(stdout, i->means, at, at);
		vn_say(stdout, "\n");
	}
}

/* One checkpoint name for every point. */
static const char **list_points(void)
{
	static char        room[VN_N_POINTS][64];
	static const char *name[VN_N_POINTS];
	for (int i = 0; i < VN_N_POINTS; i++) {
		const vn_point_info *p = vn_point_get((vn_point)i);
		snprintf(room[i], sizeof room[i], "%s%s", p->place == VN_INSIDE_LAYER ? "layer0." : "", p->name);
		name[i] = room[i];
	}
	return name;
}

typedef struct settings {
	const char  *file, *recording;
	const char **name;
	int          n_names, threads;
	const char  *dtype_text;
	int          json;
	bool         strict;
	vn_dtype     dtype;
	const char  *map[VN_MOST_MAPS];
	int          n_maps;
} settings;

#define complain(...) vn_complain("limits", __VA_ARGS__)

static const vn_option options[] = {
	{ "recording", 0, VN_INTO(settings, recording), .argument = "REC",
	  .help =
	      "For each rule, print which checkpoints of REC it matches, and for how many it is the last "
	      "matching rule. Warn of rules that match nothing, of limits that a tensor of zeros meets, and of limits that "
	      "rounding alone breaks. Default: print the limits." },
	{ "dtype", 0, VN_INTO(settings, dtype_text), .argument = "D", .needs = "recording",
	  .help = "The candidate's format, for the rounding test: f16, bf16, f32, f8_e4m3... Default: REC's own." },
	VN_NAMES_OPTION(settings, map, n_maps, "REC's", .needs = "recording"),
	VN_FORMAT_OPTION(settings, json, " JSON has the schema vernier-limits/1."),
	VN_THREADS_OPTION(settings, threads),
	VN_STRICT_OPTION(settings, strict, ""),
};

const vn_command vn_limits_command = {
	.name = "limits",
	.synopsis = "FILE [NAME...] [OPTION]...",
	.about = "Check a limits file, or shipped limits by their name (fp32.yaml). Then print the limits of each "
			 "checkpoint NAME (layer3.q_rope) or, without NAME, of one checkpoint per point, and list the metrics "
			 "that can be limited.",
	VN_OPTION_TABLE(options),
	.examples = "vernier limits fp16-acc32.yaml\n"
				"vernier limits mine.yaml layer3.q_rope",
	.status = "0 well formed, 1 well formed with a warning (--strict), 2 not well formed, or trouble",
};

/* Returns 0 to continue, 1 if help was printed, 2 on a usage error. */
static int parse_arguments(settings *k, int argc, char **argv)
{
	const int st = vn_options_read(&vn_limits_command, argc, argv, k);
	if (st)
		return st;
	if (k->dtype_text && (!vn_dtype_from_name(k->dtype_text, &k->dtype) || k->dtype >= VN_N_DTYPES))
		return complain("--dtype takes a format of numbers such as f16, bf16 or f32, not '%s'", k->dtype_text);
	if (optind >= argc)
		return complain("a limits FILE is needed");
	k->file = argv[optind];
	k->name = (const char **)argv + optind + 1;
	k->n_names = argc - optind - 1;
	return 0;
}

/* Limits apply to any name, so a misspelt name gets the default limits. */
static void warn_of_name(const char *name)
{
	const char *point = vn_name_in_layer(strchr(name, '/') ? strchr(name, '/') + 1 : name);
	vn_point    p;
	vn_nearest  near;

	if (vn_point_from_name(point, &p))
		return;
	vn_nearest_start(&near, point);
	for (int i = 0; i < VN_N_POINTS; i++)
		vn_nearest_try(&near, vn_point_get((vn_point)i)->name);
	if (vn_nearest_found(&near))
		vn_warn("limits", "'%s' is not a checkpoint name%s", name, vn_nearest_hint(&near));
}

static void print_use(const settings *k, const vn_limits_use *u)
{
	vn_limits *l = u->limits;
	vn_say(stdout, "%s: %s, %d rule%s", l->path, l->name ? l->name : "(no name)", l->n_rules,
	       l->n_rules == 1 ? "" : "s");
	if (u->recording)
		vn_say(stdout, "; %s: %d checkpoint%s, %d layer%s", vn_recording_path(u->recording), u->n, u->n == 1 ? "" : "s",
		       l->layers, l->layers == 1 ? "" : "s");
	vn_say(stdout, "\n");
	for (int i = 0; i < u->warnings.n && (!u->recording || k->n_names); i++)
		vn_say(stdout, "warning: %s\n", u->warnings.line[i]);
	for (int i = 0; i < k->n_names; i++)
		print_limits(l, k->name[i]);
	for (int i = 0; i < k->n_names; i++)
		warn_of_name(k->name[i]);
	if (k->n_names)
		return;
	if (u->recording) {
		vn_limits_use_text(u, stdout);
		return;
	}
	for (int i = 0; i < u->n; i++)
		print_limits(l, u->name[i]);
	show_metrics();
}

/* Both sides are the recording, with its names as compare would have them. */
static vn_sides sides_of(const settings *k)
{
	vn_sides sides = { .ref = k->recording,
		               .cand = &k->recording,
		               .n_cand = 1,
		               .n_names = k->n_maps,
		               .n_ref_names = k->n_maps,
		               .batch_row = -1 };
	memcpy(sides.names, k->map, sizeof k->map);
	memcpy(sides.ref_names, k->map, sizeof k->map);
	return sides;
}

int cmd_limits(int argc, char **argv)
{
	settings           k = { 0 };
	vn_limits_use      u = { 0 };
	vn_compare_options none = { 0 };
	vn_comparison      both = { .opened.request.options = &none };
	vn_error           err = { "" };
	const int          said = parse_arguments(&k, argc, argv);
	if (said)
		return said == 1 ? 0 : 2;

	const vn_sides sides = sides_of(&k);
	vn_status      st = vn_limits_open(k.file, &u.limits, &err);
	if (!st && k.recording)
		st = k.n_maps ? vn_sides_open(&sides, &both.opened, &both.result.remarks, &err)
		              : vn_recording_open(k.recording, &both.opened.ref, &err);
	if (!st) {
		u.recording = both.opened.ref;
		if (!both.opened.ref) {
			u.name = k.n_names ? k.name : list_points();
			u.n = k.n_names ? k.n_names : VN_N_POINTS;
		}
		st = vn_limits_use_of(&u, k.dtype_text ? &k.dtype : NULL, k.threads, &err);
	}
	for (int i = 0; !st && i < u.warnings.n; i++)
		if (k.json)
			vn_warn("limits", "%s", u.warnings.line[i]);
		else
			vn_warned("%s", u.warnings.line[i]);
	if (!st && k.json)
		st = vn_limits_use_json(&u, stdout, &err);
	else if (!st)
		print_use(&k, &u);
	vn_limits_use_free(&u);
	vn_limits_destroy(u.limits);
	vn_comparison_close(&both);
	return vn_command_end("limits", st, &err, k.strict, 0);
}
