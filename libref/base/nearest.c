/* nearest.c: see nearest.h. */
#include "libref/base/nearest.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int least(int a, int b)
{
	return a < b ? a : b;
}

static char fold_char(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '-' ? '_' : c;
}

/* now (j): distance of a's first i letters from b's first j. */
int vn_nearest_distance(const char *a, const char *b)
{
	const int rows = (int)strlen(a), columns = (int)strlen(b);
	int       d[3][VN_NEAREST_MAX];
	int      *before = d[0], *last = d[1], *now = d[2];

	if (rows >= VN_NEAREST_MAX || columns >= VN_NEAREST_MAX)
		return rows + columns;
	for (int j = 0; j <= columns; j++)
		last[j] = j;
	for (int i = 1; i <= rows; i++) {
		const char x = fold_char(a[i - 1]);
		now[0] = x == '*' ? last[0] : last[0] + 1;
		for (int j = 1; j <= columns; j++) {
			const char y = fold_char(b[j - 1]);
			if (x == '*') {
				now[j] = least(last[j], now[j - 1]);
				continue;
			}
			now[j] = least(last[j - 1] + (x != y && x != '?'), 1 + least(last[j], now[j - 1]));
			if (i > 1 && j > 1 && x == fold_char(b[j - 2]) && y == fold_char(a[i - 2]))
				now[j] = least(now[j], before[j - 2] + 1);
		}
		int *room = before;
		before = last;
		last = now;
		now = room;
	}
	return last[columns];
}

/* Up to a third of the letters may be wrong. */
static int most_edits(const char *word)
{
	int letters = 0;
	for (const char *p = word; *p; p++)
		letters += *p != '*' && *p != '?';
	return letters < 3 ? 0 : letters < 6 ? 1 : letters / 3;
}

void vn_nearest_start(vn_nearest *n, const char *word)
{
	*n = (vn_nearest) { .word = word, .distance = strlen(word) < VN_NEAREST_MAX ? most_edits(word) + 1 : 0 };
}

void vn_nearest_try(vn_nearest *n, const char *candidate)
{
	if (n->distance == 0 || strlen(candidate) >= VN_NEAREST_MAX)
		return;
	const int d = vn_nearest_distance(n->word, candidate);
	if (d < n->distance) {
		n->distance = d;
		snprintf(n->best, sizeof n->best, "%s", candidate);
	}
}

void vn_nearest_try_words(vn_nearest *n, const char *words)
{
	while (*words) {
		char         one[VN_NEAREST_MAX];
		const size_t length = strcspn(words, "|");
		snprintf(one, sizeof one, "%.*s", (int)length, words);
		vn_nearest_try(n, one);
		words += length + (words[length] == '|');
	}
}

void vn_nearest_settle(vn_nearest *n, const char *candidate)
{
	n->distance = 0;
	snprintf(n->best, sizeof n->best, "%s", candidate);
}

const char *vn_nearest_found(const vn_nearest *n)
{
	return *n->best ? n->best : NULL;
}

const char *vn_nearest_hint(vn_nearest *n)
{
	if (*n->best)
		snprintf(n->hint, sizeof n->hint, " (did you mean '%s'?)", n->best);
	return n->hint;
}

/* The letters before the ending. */
static int stem_of(const char *name)
{
	const char *dot = strrchr(name, '.');
	return dot && dot != name ? (int)(dot - name) : (int)strlen(name);
}

/* Do they differ in digits alone, as 001 and 002, which nobody confuses? */
static bool is_next_number(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, "0123456789");
		b += strspn(b, "0123456789");
		if (*a != *b || !*a)
			return *a == *b;
	}
}

/* The edits that make `other` from `name`, two names of files; too many to be near: INT_MAX. */
static int edits_between(const char *name, const char *other)
{
	char      a[NAME_MAX + 1], b[NAME_MAX + 1];
	const int m = stem_of(name), n = stem_of(other);

	if (m > NAME_MAX || n > NAME_MAX || strcmp(name, other) == 0)
		return INT_MAX;
	snprintf(a, sizeof a, "%.*s", m, name);
	snprintf(b, sizeof b, "%.*s", n, other);
	const int edits = vn_nearest_distance(a, b);
	if (edits && is_next_number(a, b))
		return INT_MAX;
	return edits <= (strcmp(name + m, other + n) == 0 ? most_edits(a) : 0) ? edits : INT_MAX;
}

const char *vn_nearest_beside(vn_nearest *n, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const int   to_name = (int)(name - path);
	char        folder[PATH_MAX], best[NAME_MAX + 1] = "";
	int         least = INT_MAX;

	vn_nearest_start(n, path);
	if (snprintf(folder, sizeof folder, "%.*s", slash ? to_name : 1, slash ? path : ".") >= PATH_MAX)
		return n->hint;
	DIR *d = opendir(folder);
	for (const struct dirent *e; d && (e = readdir(d));) {
		const int edits = edits_between(name, e->d_name);
		if (edits < least || (edits == least && *best && strcmp(e->d_name, best) < 0)) {
			least = edits;
			snprintf(best, sizeof best, "%s", e->d_name);
		}
	}
	if (d)
		closedir(d);
	if (*best && snprintf(n->best, sizeof n->best, "%.*s%s", to_name, path, best) >= (int)sizeof n->best)
		*n->best = '\0';
	return vn_nearest_hint(n);
}
