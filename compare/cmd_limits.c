/* cmd_limits.c: vernier limits FILE: check a limits file and show what it
 * comes to for a set of checkpoints. */
#include "compare/commands.h"
#include "compare/chapters/compare.h"
#include "compare/limits/limits_use.h"
#include "compare/options.h"
#include "compare/match/sides.h"

#include "capture/base/warnings.h"
#include "libref/plan/point.h"

#include <stdio.h>
#include <string.h>

static void usage(FILE *to)
{
	fputs("usage: vernier limits FILE [NAME...] [--recording REC [--dtype D] [--names MAP]...]\n"
	      "                      [--format text|json] [--threads N] [--strict]\n"
	      "  checks a limits file and shows the limits of each checkpoint NAME (layer3.q_rope), or of one\n"
	      "  checkpoint of every point; then what can be limited\n"
	      "  --recording REC  rule by rule: which checkpoints of REC it matches, what of it holds there in the end; and\n"
	      "                   the limits tried on REC's tensors: what zeros keep to, what rounding alone breaks\n"
	      "  --dtype D        the format of the candidate: f16, bf16, f32...; REC's own unless said\n"
	      "  --names MAP      REC's names are another engine's, as in compare\n"
	      "  --format F       json: schema vernier-limits/1\n"
	      "  --threads N      at most so many; one a processor unless said\n"
	      "  --strict         " VN_STRICT_HELP "\n"
	      "FILE may be the name of one of vernier's own: q8_0.yaml\n"
	      "exit status: 0 well formed, 1 with --strict where a warning is given, 2 not well formed\n", to);
}

static void show_limit(const vn_limit *l, vn_form form, vn_metric m)
{
	char key[VN_KEY_TEXT];
	const vn_metric_info *info = vn_metric_get(m);
	const bool higher = form != VN_OVER_FLOOR && info->better == VN_HIGHER;
	const bool one = form != VN_OVER_FLOOR && info->better == VN_NEAR_ONE;
	const char *why = vn_rule_why(l->rule, form, m);
	char depth[64] = "";
	if (l->rule->key[form][m].deep)
		snprintf(depth, sizeof depth, "by depth, %g to %g  ", l->rule->key[form][m].value, l->rule->key[form][m].last);
	printf("  %-28s %s %-10.6g %s%s%s:%d%s%s%s\n", vn_limit_key(form, m, key), one ? "1 +-" : higher ? ">=  " : "<=  ",
	       l->value, depth, form == VN_WITHOUT_FLOOR ? "when no floor is known  " : "", l->rule->file, l->line,
	       why ? "  \"" : "", why ? why : "", why ? "\"" : "");
}

static void show(vn_limits *l, const char *name)
{
	vn_limit_set set;
	int n = 0;
	vn_limits_for(l, name, &set);
	printf("%s\n", name);
	for (int m = 0; m < VN_N_METRICS; m++)
		for (int f = 0; f < VN_N_FORMS; f++) {
			/* Defaults for logits say nothing of other checkpoints. */
			if (!set.limit[f][m].rule || (vn_metric_get((vn_metric)m)->scores && !set.limit[f][m].rule->match
			    && strcmp(name, "logits") != 0))
				continue;
			show_limit(&set.limit[f][m], (vn_form)f, (vn_metric)m);
			n++;
		}
	if (!set.limit[VN_PLAIN][VN_M_NONFINITE].rule)
		printf("  %-28s <=   0          always, unless limits say otherwise\n", "nonfinite");
	if (set.missing)
		printf("  %-28s allowed         %s:%d\n", "missing", set.missing->file, set.missing->line);
	if (set.extra)
		printf("  %-28s allowed         %s:%d\n", "extra", set.extra->file, set.extra->line);
	if (set.constant)
		printf("  %-28s allowed         %s:%d\n", "constant", set.constant->file, set.constant->line);
	if (!n)
		printf("  no other limit\n");
}

static void show_metrics(void)
{
	printf("\nwhat can be limited:\n");
	for (int m = 0; m < VN_N_METRICS; m++) {
		const vn_metric_info *i = vn_metric_get((vn_metric)m);
		printf("  %-20s %s %s%s%s%s\n", i->name, i->better == VN_HIGHER ? ">=" : "<=", i->means,
		       i->over_floor ? "; also " : "", i->over_floor ? i->name : "", i->over_floor ? "_over_floor" : "");
	}
}

/* One checkpoint of every point. */
static const char **points(void)
{
	static char        room[VN_N_POINTS][64];
	static const char *name[VN_N_POINTS];
	for (int i = 0; i < VN_N_POINTS; i++) {
		const vn_point_info *p = vn_point_get((vn_point)i);
		snprintf(room[i], sizeof room[i], "%s%s", p->outside ? "" : "layer0.", p->name);
		name[i] = room[i];
	}
	return name;
}

typedef struct command {
	const char *file, *recording;
	const char **name;
	int         n_names, threads;
	bool        json, has_dtype, strict;
	vn_dtype    dtype;
	const char *map[VN_MOST_MAPS];
	int         n_maps;
} command;

#define complain(...) vn_complain("limits", __VA_ARGS__)

/* 0 to go on, 1 help was asked for, 2 wrong. */
static int arguments(command *k, int argc, char **argv)
{
	static const struct option options[] = {
		{ "recording", required_argument, NULL, 'r' }, { "dtype", required_argument, NULL, 'd' },
		{ "format", required_argument, NULL, 'f' }, { "threads", required_argument, NULL, 't' },
		{ "names", required_argument, NULL, 'n' }, { "strict", no_argument, NULL, 's' }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	int c, st = 0;

	optind = 1;
	opterr = 0;
	while (!st && (c = getopt_long(argc, argv, ":h", options, NULL)) != -1)
		switch (c) {
		case 'r': k->recording = optarg; break;
		case 'd':
			if (!vn_dtype_from_name(optarg, &k->dtype) || k->dtype >= VN_N_DTYPES)
				return complain("--dtype takes a format of numbers such as f16, bf16 or f32, not '%s'", optarg);
			k->has_dtype = true;
			break;
		case 'n': st = vn_option_more("limits", "--names", optarg, k->map, &k->n_maps, VN_MOST_MAPS); break;
		case 'f': st = vn_option_json("limits", optarg, &k->json); break;
		case 't': st = vn_option_threads("limits", optarg, &k->threads); break;
		case 's': k->strict = true; break;
		case 'h': usage(stdout); return 1;
		default:  st = vn_option_wrong("limits", c, argv); break;
		}
	if (st)
		return st;
	if (optind >= argc)
		return complain("which FILE?");
	if ((k->has_dtype || k->n_maps) && !k->recording)
		return complain("%s is of a recording: give --recording too", k->has_dtype ? "--dtype" : "--names");
	k->file = argv[optind];
	k->name = (const char **)argv + optind + 1;
	k->n_names = argc - optind - 1;
	return 0;
}

static void print(const command *k, const vn_limits_use *u)
{
	vn_limits *l = u->limits;
	printf("%s: %s, %d rules", l->path, l->name ? l->name : "(no name)", l->n_rules);
	if (u->recording)
		printf("; %s: %d checkpoints, %d layers", vn_recording_path(u->recording), u->n, l->layers);
	putchar('\n');
	for (int i = 0; i < u->warnings.n && (!u->recording || k->n_names); i++)
		printf("warning: %s\n", u->warnings.line[i]);
	for (int i = 0; i < k->n_names; i++)
		show(l, k->name[i]);
	if (k->n_names)
		return;
	if (u->recording) {
		vn_limits_use_text(u, stdout);
		return;
	}
	for (int i = 0; i < u->n; i++)
		show(l, u->name[i]);
	show_metrics();
}

/* As compare sees one. *both: to be closed, whatever happened. */
static vn_status open_recording(const command *k, vn_comparison *both, vn_error *err)
{
	if (!k->n_maps)
		return vn_recording_open(k->recording, &both->ref, err);
	vn_sides sides = { .ref = k->recording, .cand = &k->recording, .n_cand = 1, .n_names = k->n_maps, .n_ref_names = k->n_maps, .batch_row = -1 };
	memcpy(sides.names, k->map, sizeof k->map);
	memcpy(sides.ref_names, k->map, sizeof k->map);
	return vn_sides_open(&sides, both, err);
}

int cmd_limits(int argc, char **argv)
{
	command       k = { 0 };
	vn_limits_use u = { 0 };
	vn_compare_options none = { 0 };
	vn_comparison both = { .options = &none };
	vn_error      err = { "" };
	const int     said = arguments(&k, argc, argv);
	if (said)
		return said == 1 ? 0 : 2;

	vn_status st = vn_limits_open(k.file, &u.limits, &err);
	if (!st && k.recording)
		st = open_recording(&k, &both, &err);
	if (!st) {
		u.recording = both.ref;
		if (!both.ref) {
			u.name = k.n_names ? k.name : points();
			u.n = k.n_names ? k.n_names : VN_N_POINTS;
		}
		st = vn_limits_use_of(&u, k.has_dtype ? &k.dtype : NULL, k.threads, &err);
	}
	for (int i = 0; !st && i < u.warnings.n; i++)
		if (k.json)
			vn_warn("limits", "%s", u.warnings.line[i]);
		else
			vn_warned("%s", u.warnings.line[i]);
	if (!st && k.json)
		st = vn_limits_use_json(&u, stdout, &err);
	else if (!st)
		print(&k, &u);
	if (st)
		fprintf(stderr, "vernier limits: %s\n", err.text);
	vn_limits_use_free(&u);
	vn_limits_destroy(u.limits);
	vn_comparison_close(&both);
	return vn_warnings_end("limits", k.strict, st ? 2 : 0);
}
