/* options.c: see options.h. */
#include "compare/options.h"
#include "compare/comparison/checkpoint.h"

#include "capture/run/arguments.h"
#include "libref/base/glob.h"
#include "libref/base/text.h"

#include <stdio.h>
#include <string.h>

int vn_option_once(const char *command, const char *option, const char *value, const char **to)
{
	if (*to)
		return vn_complain(command, "%s is given twice", option);
	*to = value;
	return 0;
}

int vn_option_more(const char *command, const char *option, const char *value, const char **list, int *n, int most)
{
	if (*n == most)
		return vn_complain(command, "more than %d %s", most, option);
	list[(*n)++] = value;
	return 0;
}

int vn_option_whole(const char *command, const char *option, const char *value, int64_t low, int64_t high, int64_t *to)
{
	vn_error err;
	return vn_read_whole(option, value, low, high, to, &err) ? vn_complain(command, "%s", err.text) : 0;
}

int vn_option_threads(const char *command, const char *value, int *threads)
{
	int64_t n;
	if (!vn_text_whole(value, 1, 1024, &n))
		return vn_complain(command, "--threads takes a number from 1 to 1024, not '%s'", value);
	*threads = (int)n;
	return 0;
}

int vn_option_json(const char *command, const char *value, bool *json)
{
	*json = strcmp(value, "json") == 0;
	if (!*json && strcmp(value, "text") != 0)
		return vn_complain(command, "--format takes text or json, not '%s'", value);
	return 0;
}

int vn_option_wrong(const char *command, int c, char *const *argv)
{
	return vn_complain(command, c == ':' ? "%s needs a value" : "unknown option '%s'", argv[optind - 1]);
}

int vn_option_all(int argc, char *const *argv, const char *shorts, const struct option *longs, vn_option_reader *read, void *context)
{
	int c, st = 0;
	optind = 0; /* start afresh */
	opterr = 0;
	while (!st && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
		st = c == 'h' ? 1 : read(context, c, optarg, argv);
	return st;
}

int vn_option_model(const char *command, int argc, char *const *argv, const char **model)
{
	if (argc - optind < 1)
		return vn_complain(command, "a model is needed");
	if (argc - optind > 1)
		return vn_complain(command, "one model, then what is '%s'?", argv[optind + 1]);
	*model = argv[optind];
	return 0;
}

int vn_option_reporting(const char *command, int c, const char *value, char *const *argv, vn_reporting *k)
{
	const char *end;
	switch (c) {
	case VN_OPTION_FORCE:
		k->force = true;
		return 0;
	case VN_OPTION_REPORT_STRICT:
		k->strict = true;
		return 0;
	case VN_OPTION_FORMAT:
		k->said = true;
		return vn_option_json(command, value, &k->json);
	case 'o':
		k->path = value;
		end = strrchr(value, '.');
		k->json = k->said ? k->json : end && strcmp(end, ".json") == 0;
		return 0;
	default:
		return vn_option_wrong(command, c, argv);
	}
}

static int add_points(const char *command, const char *glob, vn_comparing *k)
{
	vn_error err;
	if (vn_glob_check(glob, &err))
		return vn_complain(command, "--points: %s", err.text);
	k->o.points = k->point;
	return vn_option_more(command, "--points", glob, k->point, &k->o.n_points, VN_MAX_POINTS);
}

static int read_precision(const char *command, const char *name, vn_comparing *k)
{
	if (!vn_policy_from_name(name, &k->policy))
		return vn_complain(command, "--floor-precision takes %s, not '%s'", vn_policy_names, name);
	k->o.floor_policy = &k->policy;
	return 0;
}

int vn_option_allow(const char *command, const char *words, unsigned *allow)
{
	const char *bad = vn_allow_parse(words, allow);
	return bad ? vn_complain(command, "--allow takes %s, not '%s'", vn_allow_names, bad) : 0;
}

int vn_option_comparing(const char *command, int c, const char *value, char *const *argv, vn_comparing *k)
{
	switch (c) {
	case VN_OPTION_MODEL:     return vn_option_once(command, "--model", value, &k->o.model);
	case VN_OPTION_PRECISION: return read_precision(command, value, k);
	case VN_OPTION_POINTS:    return add_points(command, value, k);
	case VN_OPTION_ALLOW:     return vn_option_allow(command, value, &k->o.allow);
	case VN_OPTION_REPLAY:    k->o.replay = true; return 0;
	case VN_OPTION_EXPLAIN:   k->o.explain = true; return 0;
	case VN_OPTION_STRICT:    k->o.strict = true; return 0;
	case VN_OPTION_THREADS:   return vn_option_threads(command, value, &k->o.threads);
	default:                  return vn_option_wrong(command, c, argv);
	}
}

int vn_check_floor(const char *command, const vn_comparing *k, bool has_floor)
{
	if (has_floor && k->o.model)
		return vn_complain(command, "--floor and --model are two ways to the same; give one");
	if (k->o.floor_policy && !has_floor && !k->o.model)
		return vn_complain(command, "--floor-precision is of a floor: give --model or --floor too");
	if (k->o.replay && !k->o.model && !k->o.explain)
		return vn_complain(command, "--replay computes operations again: give --model too");
	return 0;
}
