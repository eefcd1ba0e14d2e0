/* fault_page.c: prints the catalogue of known mistakes, as specs/faults.md shows it: see fault.h. */
#include "libref/plan/fault.h"

#include "libref/base/options.h"

#include <stdlib.h>
#include <string.h>

enum { INDENT = 5 };

/* A row that has a title. */
typedef struct entry {
	const char *id, *title;
	const char *before; /* words before the title */
	int         row;
} entry;

static const entry entries[] = {
#define FAULT(name, id, title, ...)          { id, title, "", __LINE__ },
#define RECORDER_FAULT(name, id, title, ...) { id, title, "recorder fault:", __LINE__ },
#include "libref/plan/catalogue.def"
};
enum { N_ENTRIES = sizeof entries / sizeof *entries };

static const struct {
	const char *id, *words;
} signs[] = {
#define SIGN(id, words) { id, words },
#include "libref/plan/catalogue.def"
};

static const struct {
	char        letter;
	const char *title;
} chapters[] = {
#define CHAPTER(letter, title) { letter, title },
#include "libref/plan/catalogue.def"
};

/* The id without its variant: "R3b" of "R3b.last". */
static int family_length(const char *id)
{
	return (int)strcspn(id, ".");
}

static bool is_family(const char *a, const char *b)
{
	const int n = family_length(a);

	return n == family_length(b) && strncmp(a, b, (size_t)n) == 0;
}

/* By number, then R3 before R3b, W5 before W5.halves, then by row. */
static int compare_entries(const void *a, const void *b)
{
	const entry *x = *(const entry *const *)a, *y = *(const entry *const *)b;
	const int    number = atoi(x->id + 1) - atoi(y->id + 1);
	const int    length = family_length(x->id) - family_length(y->id);
	const int    variant = (strchr(x->id, '.') != NULL) - (strchr(y->id, '.') != NULL);

	return number ? number : length ? length : variant ? variant : x->row - y->row;
}

/* How many bytes two titles have in common, in whole words: at the start, the spaces behind included; at the end, those
 * before. Fewer words than `least` are none. */
static size_t shared_start(const char *a, const char *b, int least)
{
	size_t shared = 0;

	for (size_t i = 0; a[i] && a[i] == b[i]; i++)
		if (a[i] == ' ') {
			shared = i + 1;
			least--;
		}
	return least > 0 ? 0 : shared;
}

static size_t shared_end(const char *a, const char *b, int least)
{
	const size_t a_end = strlen(a), b_end = strlen(b);
	size_t       shared = 0;

	for (size_t i = 1; i <= a_end && i <= b_end && a[a_end - i] == b[b_end - i]; i++)
		if (a[a_end - i] == ' ') {
			shared = i;
			least--;
		}
	return least > 0 ? 0 : shared;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Of n titles, those that go together with the first one share its first two or its last three words. Returns how
 * many; *start, *end: what all of them share. */
static int titles_together(const entry *const *e, int n, size_t *start, size_t *end)
{
	const char *title = e[0]->title;
	int         k = 1;

	*start = *end = SIZE_MAX;
	for (; k < n && (shared_start(title, e[k]->title, 2) || shared_end(title, e[k]->title, 3)); k++) {
		*start = smaller(*start, shared_start(title, e[k]->title, 2));
		*end = smaller(*end, shared_end(title, e[k]->title, 1));
	}
	return k;
}

/* Prints an id with its variants, n rows. The words that titles share stand in the first of them only. */
static void print_family(const entry *const *e, int n, FILE *to)
{
	int at = fprintf(to, "%-*.*s", INDENT, family_length(e[0]->id), e[0]->id);

	at = vn_options_wrap(to, e[0]->before, at, INDENT);
	for (int from = 0, next; from < n; from = next) {
		size_t start, end;
		next = from + titles_together(e + from, n - from, &start, &end);
		for (int i = from; i < next; i++) {
			const char  *title = e[i]->title, *variant = strchr(e[i]->id, '.');
			const size_t first = i > from ? start : 0;
			size_t       last = strlen(title) - (i > from ? end : 0);
			char         text[256];
			last -= title[last - 1] == ',';
			snprintf(text, sizeof text, "%.*s%s%s%s%s", (int)(last - first), title + first, variant ? " (" : "",
			         variant ? variant : "", variant ? ")" : "", i + 1 < n ? ";" : "");
			at = vn_options_wrap(to, text, at, INDENT);
		}
	}
	fputc('\n', to);
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (is_family(signs[i].id, e[0]->id)) {
			fprintf(to, "%*s> ", INDENT, "");
			vn_options_wrap(to, signs[i].words, INDENT + 2, INDENT + 2);
			fputc('\n', to);
		}
}

void vn_fault_page(FILE *to)
{
	for (size_t c = 0; c < sizeof chapters / sizeof *chapters; c++) {
		const entry *e[N_ENTRIES];
		int          n = 0;
		for (int i = 0; i < N_ENTRIES; i++)
			if (entries[i].id[0] == chapters[c].letter)
				e[n++] = &entries[i];
		qsort(e, (size_t)n, sizeof *e, compare_entries);
		fprintf(to, "%s%c: %s\n\n", c ? "\n" : "", chapters[c].letter, chapters[c].title);
		for (int from = 0, next; from < n; from = next) {
			for (next = from + 1; next < n && is_family(e[from]->id, e[next]->id);)
				next++;
			print_family(e + from, next - from, to);
		}
	}
}
