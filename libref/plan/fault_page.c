/* fault_page.c: prints the catalogue of known mistakes: see fault.h. */
#include "libref/plan/fault.h"

#include "libref/base/options.h"
#include "libref/base/order.h"

#include <stdlib.h>
#include <string.h>

enum { INDENT = 15 };

typedef struct page_entry {
	const char *id, *title;
	int         row;
} page_entry;

static const page_entry entries[] = {
#define FAULT(name, id, title, ...)          { id, title, __LINE__ },
#define RECORDER_FAULT(name, id, title, ...) { id, title, __LINE__ },
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
VN_ORDER_BY(compare_entries, page_entry *const, atoi((*x)->id + 1) - atoi((*y)->id + 1),
            family_length((*x)->id) - family_length((*y)->id),
            (strchr((*x)->id, '.') != NULL) - (strchr((*y)->id, '.') != NULL), VN_ORDER((*x)->row, (*y)->row))

/* Prints the signs of an id below its row. Of an id with variants, `last` is the last one: the id
 * stands before the words. */
static void print_signs(const page_entry *e, bool last, bool variants, FILE *to)
{
	const int family = family_length(e->id);

	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
		const bool own = variants && strchr(e->id, '.') && strcmp(signs[i].id, e->id) == 0;
		const bool all = last && (int)strlen(signs[i].id) == family && strncmp(signs[i].id, e->id, (size_t)family) == 0;
		if (!own && !all)
			continue;
		int at = fprintf(to, "%*s> ", INDENT, "");
		if (all && variants)
			at += fprintf(to, "%s:", signs[i].id);
		vn_options_wrap(to, signs[i].words, at, INDENT + 2);
		fputc('\n', to);
	}
}

/* Prints an id with its variants, n rows. */
static void print_family(const page_entry *const *e, int n, FILE *to)
{
	for (int i = 0; i < n; i++) {
		vn_options_wrap(to, e[i]->title, fprintf(to, "%-*s", INDENT, e[i]->id), INDENT);
		fputc('\n', to);
		print_signs(e[i], i + 1 == n, n > 1, to);
	}
}

void vn_fault_signs(const char *id, FILE *to)
{
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (strcmp(signs[i].id, id) == 0 || (!strchr(signs[i].id, '.') && is_family(signs[i].id, id))) {
			vn_options_wrap(to, signs[i].words, fprintf(to, "%*ssigns:", INDENT, ""), INDENT + 2);
			fputc('\n', to);
		}
}

void vn_fault_page(FILE *to)
{
	for (size_t c = 0; c < sizeof chapters / sizeof *chapters; c++) {
		const page_entry *e[N_ENTRIES];
		int               n = 0;
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
