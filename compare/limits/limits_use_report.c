/* limits_use_report.c: reports the effect of a limits file, for people and for programs. */
#include "compare/text/json.h"
#include "compare/limits/limits_use.h"

#include "libref/base/printed.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

enum { NAMED = 4, SHOWN = 4 * VN_NAME_MAX };

/* ---- text ------------------------------------------------------------------------ */

/* Names are untrusted text. */
static const char *shorten_name(const char *name, char text[SHOWN])
{
	snprintf(text, SHOWN, "%s", name);
	return vn_text_clean(text, SHOWN);
}

static void print_names(const vn_limits_use *u, const vn_rule *r, int of, FILE *out)
{
	char text[SHOWN];
	int  n = 0;
	vn_say(out, "%d checkpoint%s", of, of == 1 ? "" : "s");
	for (int i = 0; i < u->n && r->match && n < NAMED; i++)
		if (vn_rule_matches(r, u->name[i]))
			vn_say(out, "%s %s", n++ ? "," : ":", shorten_name(u->name[i], text));
	if (r->match && of > NAMED)
		fprintf(out, "...");
	fputc('\n', out);
}

static void key_line(const vn_rule *r, vn_form f, vn_metric m, const vn_key_use *k, FILE *out)
{
	char                  key[VN_KEY_TEXT], name[VN_KEY_TEXT + 24], value[64];
	const vn_metric_info *info = vn_metric_get(m);
	const bool            higher = f != VN_OVER_FLOOR && info->better == VN_HIGHER,
			   one = f != VN_OVER_FLOOR && info->better == VN_NEAR_ONE;
	snprintf(name, sizeof name, "%s%s", vn_limit_key(f, m, key), f == VN_WITHOUT_FLOOR ? " (without floor)" : "");
	if (r->key[f][m].deep)
		snprintf(value, sizeof value, "%g to %g by depth", r->key[f][m].value, r->key[f][m].last);
	else
		snprintf(value, sizeof value, "%g", r->key[f][m].value);
	vn_say(out, "  %-36s %s %-10s  applies to %d", name, one ? "1 +-" : higher ? ">=  " : "<=  ", value, k->holds);
	if (k->instead)
		vn_say(out, "; elsewhere %s:%d overrides it", vn_text_file(k->instead->file), k->instead->key[f][m].line);
	fputc('\n', out);
}

void vn_limits_use_text(const vn_limits_use *u, FILE *out)
{
	for (int i = 0; i < u->limits->n_rules; i++) {
		const vn_rule *r = u->limits->rule[i];
		vn_say(out, "%s:%d %s%s%s  ", vn_text_file(r->file), r->line, r->match ? "match \"" : "defaults",
		       r->match ? r->match : "", r->match ? "\"" : "");
		print_names(u, r, u->rule[i].matches, out);
		for (int m = 0; m < VN_N_METRICS; m++)
			for (int f = 0; f < VN_N_FORMS; f++)
				if (r->key[f][m].state == VN_SAID)
					key_line(r, (vn_form)f, (vn_metric)m, &u->rule[i].key[f][m], out);
				else if (r->key[f][m].state == VN_LIFTED)
					vn_say(out, "  %-36s lifted\n", vn_limit_key((vn_form)f, (vn_metric)m, (char[VN_KEY_TEXT]) { 0 }));
		if (r->why)
			vn_say(out, "  \"%s\"\n", r->why);
		for (int m = 0; m < VN_N_METRICS; m++)
			for (int f = 0; f < 2; f++)
				if (r->why_of[f][m])
					vn_say(out, "  %s: \"%s\"\n",
					       vn_limit_key(f ? VN_OVER_FLOOR : VN_PLAIN, (vn_metric)m, (char[VN_KEY_TEXT]) { 0 }),
					       r->why_of[f][m]);
	}
	for (int i = 0; i < u->warnings.n; i++)
		vn_say(out, "warning: %s\n", u->warnings.line[i]);
}

/* ---- JSON -------------------------------------------------------------------------- */

static json_t *place_object(const vn_rule *r, int line)
{
	return json_pack("{s:o, s:i}", "file", vn_json_text(r->file), "line", line);
}

static json_t *key_object(const vn_limits_use *u, const vn_rule *r, vn_form f, vn_metric m, const vn_key_use *k)
{
	char    key[VN_KEY_TEXT];
	json_t *j = json_pack("{s:s, s:b, s:i, s:o}", "metric", vn_limit_key(f, m, key), "without_floor",
	                      f == VN_WITHOUT_FLOOR, "line", r->key[f][m].line, "why", vn_json_text(vn_rule_why(r, f, m)));
	if (r->key[f][m].state == VN_LIFTED) {
		json_object_set_new(j, "limit", json_null());
		return j;
	}
	json_object_set_new(j, "limit", json_real(r->key[f][m].value));
	if (r->key[f][m].deep)
		json_object_set_new(j, "by_depth",
		                    json_pack("{s:f, s:f}", "first", r->key[f][m].value, "last", r->key[f][m].last));
	json_t *holds = json_array(), *overridden = json_array();
	for (int i = 0; i < u->n; i++) {
		vn_limit_set set;
		if (!vn_rule_matches(r, u->name[i]) || !vn_rule_speaks(r, m, u->name[i]))
			continue;
		vn_limits_for(u->limits, u->name[i], &set);
		json_array_append_new(set.limit[f][m].rule == r ? holds : overridden, vn_json_text(u->name[i]));
	}
	json_object_set_new(j, "holds", holds);
	json_object_set_new(j, "overridden", overridden);
	json_object_set_new(j, "by", k->instead ? place_object(k->instead, k->instead->key[f][m].line) : NULL);
	return j;
}

static json_t *rule_object(const vn_limits_use *u, int rule)
{
	const vn_rule *r = u->limits->rule[rule];
	json_t        *j = place_object(r, r->line), *keys = json_array(), *matched = json_array();
	json_object_set_new(j, "match", vn_json_text(r->match));
	json_object_set_new(j, "why", vn_json_text(r->why));
	for (int i = 0; i < u->n; i++)
		if (vn_rule_matches(r, u->name[i]))
			json_array_append_new(matched, vn_json_text(u->name[i]));
	json_object_set_new(j, "matches", matched);
	for (int m = 0; m < VN_N_METRICS; m++)
		for (int f = 0; f < VN_N_FORMS; f++)
			if (r->key[f][m].state != VN_UNSAID)
				json_array_append_new(keys, key_object(u, r, (vn_form)f, (vn_metric)m, &u->rule[rule].key[f][m]));
	json_object_set_new(j, "keys", keys);
	return j;
}

static json_t *checkpoint_json(const vn_limits_use *u, const char *name)
{
	vn_limit_set set;
	json_t      *limits = json_array();
	vn_limits_for(u->limits, name, &set);
	for (int m = 0; m < VN_N_METRICS; m++)
		for (int f = 0; f < VN_N_FORMS; f++) {
			char            key[VN_KEY_TEXT];
			const vn_limit *l = &set.limit[f][m];
			if (!l->rule || !vn_rule_speaks(l->rule, (vn_metric)m, name))
				continue;
			json_array_append_new(limits, json_pack("{s:s, s:b, s:f, s:o}", "metric",
			                                        vn_limit_key((vn_form)f, (vn_metric)m, key), "without_floor",
			                                        f == VN_WITHOUT_FLOOR, "limit", l->value, "rule",
			                                        place_object(l->rule, l->line)));
		}
	json_t *j = json_pack("{s:o, s:o}", "name", vn_json_text(name), "limits", limits);
	for (int i = 0; i < VN_N_PERMISSIONS; i++) {
		const vn_permission_info *info = vn_permission_get((vn_permission)i);
		json_object_set_new(j, info->key,
		                    json_string((set.permission[i] != NULL) != info->by_default ? "allowed" : info->refusal));
	}
	return j;
}

vn_status vn_limits_use_json(const vn_limits_use *u, FILE *out, vn_error *err)
{
	json_t *rules = json_array(), *points = json_array();
	for (int i = 0; i < u->limits->n_rules; i++)
		json_array_append_new(rules, rule_object(u, i));
	for (int i = 0; i < u->n; i++)
		json_array_append_new(points, checkpoint_json(u, u->name[i]));
	VN_OWNED json_t *j = json_pack("{s:s, s:[], s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "schema", "vernier-limits/1",
	                               "next", "file", vn_json_text(u->limits->path), "name", vn_json_text(u->limits->name),
	                               "recording", vn_json_text(u->recording ? vn_recording_path(u->recording) : NULL),
	                               "layers", u->limits->layers, "rules", rules, "checkpoints", points, "warnings",
	                               vn_json_lines(&u->warnings));
	const bool       good = vn_json_print(j, out, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) && fputc('\n', out) != EOF;
	return good ? VN_OK
	            : vn_fail(err, VN_ERR_IO, "the report could not be written: %s",
	                      vn_printed_lost() ? vn_printed_lost() : "no memory");
}
