/* glob.c: see glob.h. Braces are tried one after the other, stars by backtracking. A budget of
 * steps bounds hostile patterns ("*a*a*a*a..."); when it is used up, the answer is "no match". */
#include "libref/base/glob.h"

#include <string.h>

enum { BUDGET = 200000 };

vn_status vn_glob_check(const char *pattern, vn_error *err)
{
	int    depth = 0;
	size_t n = strlen(pattern);

	if (n == 0)
		return vn_fail(err, VN_ERR_USAGE, "empty pattern");
	if (n >= VN_GLOB_MAX)
		return vn_fail(err, VN_ERR_USAGE, "pattern of %zu bytes; at most %d", n, VN_GLOB_MAX - 1);
	for (const char *p = pattern; *p; p++) {
		depth += *p == '{';
		depth -= *p == '}';
		if (depth < 0)
			break;
	}
	if (depth != 0)
		return vn_fail(err, VN_ERR_USAGE, "pattern '%s': braces do not match", pattern);
	return VN_OK;
}

/* One past the comma or brace that ends the alternative at p. */
static const char *alternative_end(const char *p)
{
	int depth = 0;
	for (; *p; p++) {
		if (depth == 0 && (*p == ',' || *p == '}'))
			return p;
		depth += *p == '{';
		depth -= *p == '}';
	}
	return p;
}

static bool match_pattern(const char *p, const char *s, int *budget)
{
	char joined[VN_GLOB_MAX];

	for (; *p; p++, s++) {
		if (--*budget < 0)
			return false;
		if (*p == '*') {
			while (p[1] == '*')
				p++;
			do
				if (match_pattern(p + 1, s, budget))
					return true;
			while (*s++ && *budget > 0);
			return false;
		}
		if (*p == '{') {
			const char *end = p + 1;
			while (*end && *(end = alternative_end(end)) == ',')
				end++;
			if (*end != '}')
				return false;
			/* each alternative, followed by what comes after the brace */
			for (const char *a = p + 1; a <= end;) {
				const char *b = alternative_end(a);
				size_t      n = (size_t)(b - a);
				memcpy(joined, a, n);
				strcpy(joined + n, end + 1); /* shorter than the pattern it comes from */
				if (match_pattern(joined, s, budget))
					return true;
				a = b + 1;
			}
			return false;
		}
		if (*s == '\0' || (*p != '?' && *p != *s))
			return false;
	}
	return *s == '\0';
}

bool vn_glob_match(const char *pattern, const char *name)
{
	int budget = BUDGET;
	return strlen(pattern) < VN_GLOB_MAX && match_pattern(pattern, name, &budget);
}
