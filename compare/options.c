/* options.c: see options.h. */
#include "compare/options.h"
#include "compare/comparison/checkpoint.h"

#include "libref/base/glob.h"

#include <string.h>

int vn_option_policy(const char *command, const char *name, const char *word, vn_policy *policy)
{
	return vn_policy_from_name(word, policy) ? 0 : vn_complain(command, "--%s is one of %s, not '%s'", name, vn_policy_names, word);
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

vn_status vn_take_allow(void *to, const vn_option *o, const char *words, vn_error *err)
{
	const char *bad = vn_allow_parse(words, (unsigned *)(void *)((char *)to + o->at));
	return bad ? vn_fail(err, VN_ERR_USAGE, "--allow takes %s, not '%s'", vn_allow_names, bad) : VN_OK;
}

static int check_points(const char *command, vn_comparing *k)
{
	vn_error err;
	for (int i = 0; i < k->o.n_points; i++)
		if (vn_glob_check(k->point[i], &err))
			return vn_complain(command, "--points: %s", err.text);
	k->o.points = k->o.n_points ? k->point : NULL;
	return 0;
}

int vn_check_comparing(const char *command, vn_comparing *k, bool has_floor)
{
	if (check_points(command, k))
		return 2;
	if (k->precision && !vn_policy_from_name(k->precision, &k->policy))
		return vn_complain(command, "--floor-precision takes %s, not '%s'", vn_policy_names, k->precision);
	k->o.floor_policy = k->precision ? &k->policy : NULL;
	if (has_floor && k->o.model)
		return vn_complain(command, "--floor and --model are two ways to the same; give one");
	if (k->o.floor_policy && !has_floor && !k->o.model)
		return vn_complain(command, "--floor-precision is of a floor: give --model or --floor too");
	if (k->o.replay && !k->o.model && !k->o.explain)
		return vn_complain(command, "--replay computes operations again: give --model too");
	return 0;
}
