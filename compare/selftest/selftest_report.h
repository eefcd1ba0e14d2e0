/* selftest_report.h: writes the outcome of every mutation as a table or as JSON. */
#ifndef VN_COMPARE_SELFTEST_REPORT_H
#define VN_COMPARE_SELFTEST_REPORT_H

#include "compare/selftest/selftest.h"

#include <stdio.h>

/* The outcomes of n_pairs pairs. outcome: (pairs, mutations + 1): the unchanged pair first, then
 * the mutations of all groups in order. */
typedef struct vn_selftest {
	const vn_selftest_pair *pair;
	int                     n_pairs, n_mutations;
	vn_outcome             *outcome;
} vn_selftest;

/* Returns how many outcomes are `what`; false alarms count as VN_MISSED. */
int       vn_selftest_count(const vn_selftest *s, vn_caught what);
int       vn_mutations_count(void);
void      vn_selftest_text(const vn_selftest *s, FILE *out);
vn_status vn_selftest_json(const vn_selftest *s, FILE *out, vn_error *err); /* schema vernier-selftest/2 */

#endif
