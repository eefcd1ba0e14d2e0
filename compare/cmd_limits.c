/* cmd_limits.c: vernier limits FILE: check a limits file and show what it
 * comes to for a set of checkpoints. */
#include "compare/commands.h"
#include "compare/limits.h"

#include "libref/plan/point.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static void usage(FILE *to)
{
	fputs("usage: vernier limits FILE [NAME...]\n"
	      "  checks a limits file and shows the limits of each checkpoint NAME (layer3.q_rope), or of one\n"
	      "  checkpoint of every point; then what can be limited\n"
	      "exit status: 0 well formed, 2 not\n", to);
}

static void show_limit(const vn_limit *l, vn_form form, vn_metric m)
{
	char key[VN_KEY_TEXT];
	const vn_metric_info *info = vn_metric_get(m);
	const bool higher = form != VN_OVER_FLOOR && info->better == VN_HIGHER;
	const bool one = form != VN_OVER_FLOOR && info->better == VN_NEAR_ONE;
	char depth[64] = "";
	if (l->rule->key[form][m].deep)
		snprintf(depth, sizeof depth, "in the first layer, %g in the last  ", l->rule->key[form][m].last);
	printf("  %-28s %s %-10.6g %s%s%s:%d%s%s%s\n", vn_limit_key(form, m, key), one ? "1 +-" : higher ? ">=  " : "<=  ",
	       *depth ? l->rule->key[form][m].value : l->value, depth, form == VN_WITHOUT_FLOOR ? "when no floor is known  " : "", l->rule->file, l->line,
	       l->rule->why ? "  \"" : "", l->rule->why ? l->rule->why : "", l->rule->why ? "\"" : "");
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
	if (!n)
		printf("  no other limit\n");
}

static void show_points(vn_limits *l)
{
	char name[64];
	for (int i = 0; i < VN_N_POINTS; i++) {
		const vn_point_info *p = vn_point_get((vn_point)i);
		snprintf(name, sizeof name, "%s%s", p->outside ? "" : "layer0.", p->name);
		show(l, name);
	}
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

int cmd_limits(int argc, char **argv)
{
	static const struct option options[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
	vn_limits *l = NULL;
	vn_error   err = { "" };
	int        c;

	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h') {
			usage(stdout);
			return 0;
		}
		fprintf(stderr, "vernier limits: unknown option '%s'\n", argv[optind - 1]);
		usage(stderr);
		return 2;
	}
	if (optind >= argc) {
		fputs("vernier limits: which FILE?\n", stderr);
		usage(stderr);
		return 2;
	}
	if (vn_limits_read(argv[optind], &l, &err)) {
		fprintf(stderr, "vernier limits: %s\n", err.text);
		return 2;
	}
	printf("%s: %s, %d rules\n", l->path, l->name ? l->name : "(no name)", l->n_rules);
	for (int i = 0; i < l->n_warnings; i++)
		printf("warning: %s\n", l->warning[i]);
	if (argc - optind > 1)
		for (int i = optind + 1; i < argc; i++)
			show(l, argv[i]);
	else {
		show_points(l);
		show_metrics();
	}
	vn_limits_destroy(l);
	return fflush(stdout) == 0 ? 0 : 2;
}
