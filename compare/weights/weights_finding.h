/* weights_finding.h: findings about a weight: the rows WEIGHT and WEIGHT_OF of the catalogue, and
 * how a difference gets its row. */
#pragma once

#include "compare/weights/weights_difference.h"

#include "libref/plan/fault.h"

#include <stdarg.h>
#include <stdint.h>

/* The rows WEIGHT and WEIGHT_OF of the catalogue. */
typedef enum vn_weight_finding {
#define WEIGHT(name, mistake, kind, title) VN_FOUND_##name,
#include "libref/plan/catalogue.def"
	VN_N_FOUND
} vn_weight_finding;

/* Their titles, as arrays, so that the compiler checks the arguments of each. */
#define WEIGHT(name, mistake, kind, title) __attribute__((unused)) static const char vn_found_##name[] = title;
#include "libref/plan/catalogue.def"

/* A finding as two arguments: its row and its title. */
#define VN_FOUND(name) VN_FOUND_##name, vn_found_##name

/* The row of a finding. */
typedef struct vn_weight_entry {
	vn_mistake  id;
	const char *kind;
	const char *parameters; /* the type of each: s, d (int), l (long long) or g (double) */
	const char *title;
} vn_weight_entry;
const vn_weight_entry *vn_weight_entry_of(vn_weight_finding found);

/* Fills *d with a finding: vn_weight_is(d, 1, VN_PROOF_TABLE, VN_FOUND(ZEROS)). It is certain
 * unless it is by statistics. side 0: it is the reference that is changed. Returns true, for use as
 * a return value. */
__attribute__((format(printf, 5, 6))) bool vn_weight_is(vn_weight_difference *d, int side, vn_weight_proof proof,
                                                        vn_weight_finding found, const char *title, ...);

/* The same with a finding that vn_weight_say has put into words. */
bool vn_weight_is_said(vn_weight_difference *d, int side, vn_weight_proof proof, vn_weight_finding found, uint64_t key,
                       const char *says);

/* Writes the title with its parameters to says. args: the parameters of the finding's row; a row
 * without parameters may have any title. Returns the key of both: equal if the finding and all
 * parameters are equal, whatever the words of the title. Factors count to six digits, as the title
 * shows them, because the last digits measured differ between layers. */
uint64_t vn_weight_say(char says[VN_WEIGHT_WORDS], vn_weight_finding found, const char *title, va_list args);

/* Returns the key of a finding whose parameter is itself a finding. */
uint64_t vn_weight_key_of(vn_weight_finding found, uint64_t of);

/* Replaces the mistake of a finding that depends on the weights. Returns true. */
bool vn_weight_shows(vn_weight_difference *d, vn_mistake id);
