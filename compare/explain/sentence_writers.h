/* sentence_writers.h: a sentence about a finding, and the functions that the rows SAID of
 * trial/findings.def name. sentences_operation.c has those about what an operation computes,
 * sentences_result.c those about what its result is instead: other slots of a cache, ranks, orders,
 * factors. */
#pragma once

#include "compare/trial/findings.h"

#include "libref/base/rounding.h"
#include "libref/plan/fault.h"

#include <stdio.h>

typedef struct vn_sentence {
	const vn_opened   *opened;
	const vn_result   *result;
	const vn_findings *x;
	const vn_plan     *p;
	const vn_trial    *h;
	char              *text; /* empty at first */
	size_t             size;
} vn_sentence;

#define VN_PUT(s, ...) snprintf((s)->text, (s)->size, __VA_ARGS__)
#define VN_TITLE(name) vn_mistake_title(VN_MISTAKE_##name)

/* The rows FORM of the catalogue, as arrays, so that the compiler checks the arguments of each. */
#define FORM(name, title) __attribute__((unused)) static const char vn_form_##name[] = title;
#include "libref/plan/catalogue.def"
#define VN_FORM(name) vn_form_##name

/* The words of each number format. */
extern const char *const vn_format_words[VN_N_FORMATS];
/* "40", "40 or 41", "40 to 42" */
const char              *vn_sentence_range(int64_t one, int64_t first, int64_t last, char text[64]);
/* Adds "2, 0, 1". */
void                     vn_sentence_list(const vn_sentence *s, const int *number, int n);

typedef void vn_sentence_writer(const vn_sentence *s);
#define FINDING(name, ...)
#define SAID(name, mistake, digits, say) vn_sentence_writer vn_sentence_##say;
#include "compare/trial/findings.def"
