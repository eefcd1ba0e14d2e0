/* name_map_names.c: patterns with a number {n}, see name_map.h: the names that they match,
 * and those that they make. */
#include "capture/names/name_map_internal.h"

#include "libref/base/glob.h"
#include "libref/base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *const vn_name_maps[] = { "hf",        "vllm",   "llama.cpp", "mlx",           "ort-genai",
	                                 "keras-hub", "litgpt", "torchtune", "hidden_states", NULL };

const char *vn_name_map_number(const char *pattern, size_t *length, int *add)
{
	enum { MOST_ADD = 9999 };
	for (const char *at = pattern; (at = strstr(at, "{n")); at += 2) {
		const bool  some = at[2] == '+' || at[2] == '-';
		int64_t     by = 0;
		const char *end = !some ? at + 2 : isdigit((unsigned char)at[3]) ? vn_text_digits(at + 3, &by) : NULL;
		if (!end || *end != '}' || by > MOST_ADD)
			continue;
		*length = (size_t)(end + 1 - at);
		*add = at[2] == '-' ? -(int)by : (int)by;
		return at;
	}
	return NULL;
}

static bool is_index(int n, int add)
{
	const int64_t is = (int64_t)n + add;
	return is >= 0 && is <= INT32_MAX;
}

bool vn_name_map_counts_from(const char *pattern, int n)
{
	size_t length;
	int    add;
	return !pattern || n < 0 || !vn_name_map_number(pattern, &length, &add) || is_index(n, add);
}

/* Writes n with at least this many digits. */
static bool write_name(const char *pattern, int n, int digits, char *to, size_t room)
{
	size_t      of = 0;
	int         add = 0;
	const char *at = n >= 0 ? vn_name_map_number(pattern, &of, &add) : NULL;
	if (at && !is_index(n, add))
		return false;
	const int length = at ? snprintf(to, room, "%.*s%0*d%s", (int)(at - pattern), pattern, digits, n + add, at + of)
	                      : snprintf(to, room, "%s", pattern);
	return length >= 0 && (size_t)length < room;
}

bool vn_name_map_name(const char *pattern, int n, char *to, size_t room)
{
	return write_name(pattern, n, 0, to, room);
}

/* Matches pattern with {n} replaced by these digits. */
static bool match_number(const char *pattern, const char *digits, int n_digits, const char *name)
{
	const char *at = strstr(pattern, "{n}");
	char        glob[VN_GLOB_MAX + 8];
	const int   length = snprintf(glob, sizeof glob, "%.*s%.*s%s", (int)(at - pattern), pattern, n_digits, digits,
	                              at + 3);
	return length >= 0 && (size_t)length < sizeof glob && vn_glob_match(glob, name);
}

/* digits: number of digits of {n} in the name. */
static bool match_pattern(const vn_name_map_rule *rule, const char *name, int *n, int *digits)
{
	const char  *at = strstr(rule->from, "{n}");
	const size_t plain = strcspn(rule->from, "*?{");
	*n = -1;
	*digits = 0;
	if (strncmp(rule->from, name, plain) != 0)
		return false;
	if (!at)
		return vn_glob_match(rule->from, name);
	for (const char *p = name; *p;) {
		int64_t number;
		if (!isdigit((unsigned char)*p)) {
			p++;
			continue;
		}
		const char *end = vn_text_digits(p, &number);
		if (end && number <= INT32_MAX && match_number(rule->from, p, (int)(end - p), name)) {
			*n = (int)number;
			*digits = (int)(end - p);
			return true;
		}
		while (isdigit((unsigned char)*p))
			p++;
	}
	return false;
}

bool vn_name_map_rule_match(const vn_name_map_rule *rule, const char *name, int *n)
{
	int digits;
	return match_pattern(rule, name, n, &digits);
}

bool vn_name_map_term(const vn_name_map_rule *rule, int k, const char *name, char *to, size_t room)
{
	int n, digits;
	return match_pattern(rule, name, &n, &digits) && write_name(rule->plus[k], n, digits, to, room);
}
