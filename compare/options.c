/* options.c: see options.h. */
#include "compare/options.h"
#include "compare/comparison/checkpoint.h"

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

int vn_option_threads(const char *command, const char *value, int *threads)
{
	int64_t n;
	if (!vn_text_whole(value, 1, 1024, &n))
		return vn_complain(command, "--threads takes a number from 1 to 1024, not '%s'", value);
	*threads = (int)n;
	return 0;
}

int vn_option_wrong(const char *command, int c, char *const *argv)
{
	return vn_complain(command, c == ':' ? "%s needs a value" : "unknown option '%s'", argv[optind - 1]);
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

void vn_reporting_choose(vn_reporting *k)
{
	const char *end = k->path ? strrchr(k->path, '.') : NULL;
	k->json = k->format == VN_FORM_UNSAID ? end && strcmp(end, ".json") == 0 : k->format == VN_FORM_JSON;
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

vn_status vn_take_allow(void *to, const vn_option *o, const char *words, vn_error *err)
{
	const char *bad = vn_allow_parse(words, (unsigned *)(void *)((char *)to + o->at));
	return bad ? vn_fail(err, VN_ERR_USAGE, "--allow takes %s, not '%s'", vn_allow_names, bad) : VN_OK;
}

static int add_allow(const char *command, const char *words, unsigned *allow)
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
	case VN_OPTION_ALLOW:     return add_allow(command, value, &k->o.allow);
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
