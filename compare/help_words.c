/* help_words.c: see help_words.h. */
#include "compare/help_words.h"

#include "capture/base/shipped.h"
#include "compare/metrics/metrics.h"
#include "libref/base/alloc.h"
#include "libref/base/map.h"
#include "libref/base/say.h"
#include "libref/base/text.h"
#include "libref/plan/fault.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PAGE_MAX = 1 << 20, LINE = 400 };

/* Pages with definitions, the first first. */
static const char *const pages[] = { "compare.md", "explain.md",    "limits.md",   "develop.md",
	                                 "points.md",  "checkpoint.md", "names.md",    "dump.md",
	                                 "isolate.md", "weights.md",    "evaluate.md", "models.md",
	                                 "faults.md",  "json.md",       "table.md",    "usage.md" };

/* ---- mistakes ------------------------------------------------------------------------------- */

/* Prints the lines of the catalogue under an id. */
static bool print_catalogued(const char *id)
{
	vn_text_stream page;
	bool           mine = false, found = false;

	vn_fault_page(vn_alloc_stream(&page));
	for (char *line = vn_alloc_streamed(&page), *end; *line; line = end) {
		end = line + strcspn(line, "\n");
		end += *end == '\n';
		const size_t own = strcspn(line, " \n");
		if (own)
			mine = strlen(id) == own && strncasecmp(line, id, own) == 0;
		if (mine && (size_t)(end - line) > 1)
			fwrite(line, 1, (size_t)(end - line), stdout);
		found = found || mine;
	}
	free(page.text);
	return found;
}

/* "R2.1.5e5" is R2 with a number. */
static bool print_family(const char *id)
{
	vn_mistake best = VN_NO_MISTAKE;

	for (int m = VN_NO_MISTAKE + 1; m < VN_N_MISTAKES; m++) {
		const char  *one = vn_mistake_id((vn_mistake)m);
		const size_t n = strlen(one);
		if (strncasecmp(id, one, n) == 0 && (!id[n] || id[n] == '.') && n >= strlen(vn_mistake_id(best)))
			best = (vn_mistake)m;
	}
	if (best == VN_NO_MISTAKE)
		return false;
	vn_say(stdout, "%-14s %s%s\n", vn_mistake_id(best), vn_mistake_title(best),
	       strlen(id) > strlen(vn_mistake_id(best)) ? " (in the id, the number that explain fitted)" : "");
	return true;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* The lines of a page from..to. */
static void print_lines(const char *page, const char *from, const char *to)
{
	vn_say(stdout, "%s: ", page);
	fwrite(from, 1, (size_t)(to - from), stdout);
	putchar('\n');
}

/* Does the text begin with the word, which ends there? */
static bool is_word(const char *text, const char *word)
{
	const size_t n = strlen(word);

	return strncasecmp(text, word, n) == 0 && (!text[n] || strchr("*`|:,.; \n", text[n]));
}

static const char *line_end(const char *at)
{
	return at + strcspn(at, "\n");
}

/* The end of what begins at a line: of a list's item, or a row of a table. */
static const char *item_end(const char *at)
{
	const char *end = line_end(at);

	while (*at == '-' && end[0] == '\n' && strncmp(end + 1, "  ", 2) == 0)
		end = line_end(end + 1);
	return end;
}

static const char *section_end(const char *at)
{
	const char *end = strstr(at, "\n## ");
	return end ? end : at + strlen(at);
}

static const char *paragraph_end(const char *at)
{
	const char *end = strstr(at, "\n\n");
	return end ? end : at + strlen(at);
}

/* Each looks for the word in one way. Returns where it is, and its end. */
static const char *find_entry(const char *text, const char *word, const char **end)
{
	for (const char *at = text; *at; at = line_end(at), at += *at == '\n') {
		const char *in = at + strspn(at, "-| *`");
		if ((*at == '-' || *at == '|') && in - at > 2 && is_word(in, word)) {
			*end = item_end(at);
			return at;
		}
	}
	return NULL;
}

static const char *find_section(const char *text, const char *word, const char **end)
{
	for (const char *at = text; (at = strstr(at, "\n## ")); at += 4)
		if (is_word(at + 4, word)) {
			*end = section_end(at + 4);
			return at + 1;
		}
	return NULL;
}

static const char *find_definition(const char *text, const char *word, const char **end)
{
	char marked[LINE];

	snprintf(marked, sizeof marked, "*%s*", word);
	const char *found = vn_text_find(text, marked), *at = found;
	if (!found)
		return NULL;
	while (at > text && !(at[-1] == '\n' && (at - text < 2 || at[-2] == '\n')))
		at--;
	*end = paragraph_end(at);
	return at;
}

static bool print_from_pages(const char *word)
{
	static const char *(*const find[])(const char *, const char *, const char **) = { find_entry, find_definition,
		                                                                              find_section };

	for (size_t how = 0; how < sizeof find / sizeof *find; how++)
		for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
			char        path[PATH_MAX], *text = NULL;
			const char *end = NULL;
			size_t      bytes;
			vn_error    err;
			if (vn_shipped_find(".", pages[i], path, &err) || vn_read_text(path, PAGE_MAX, &text, &bytes, &err))
				continue;
			const char *found = find[how](text, word, &end);
			if (found)
				print_lines(pages[i], found, end);
			free(text);
			if (found)
				return true;
		}
	return false;
}

/* "nmse_over_floor" is a key of limits: a metric in floors. */
static bool print_metric(const char *word)
{
	static const char over[] = "_over_floor", without[] = "_without_floor";
	const size_t      n = strlen(word);
	const bool        floors = n > sizeof over && strcmp(word + n - (sizeof over - 1), over) == 0,
			   none = n > sizeof without && strcmp(word + n - (sizeof without - 1), without) == 0;
	const size_t own = n - (floors ? sizeof over - 1 : none ? sizeof without - 1 : 0);

	for (int m = 0; m < VN_N_METRICS; m++) {
		const vn_metric_info *i = vn_metric_get((vn_metric)m);
		if (strlen(i->name) != own || strncmp(i->name, word, own) != 0)
			continue;
		vn_say(stdout, "%s: %s%s\n", word, i->means,
		       floors ? "; divided by that of the floor"
		       : none ? "; of a checkpoint without a floor"
		              : "");
		return true;
	}
	return false;
}

bool vn_help_word(const char *word)
{
	if (!*word || strlen(word) > 60 || strpbrk(word, "\n*|`"))
		return false;
	return print_catalogued(word) || print_family(word) || print_metric(word) || print_from_pages(word);
}
