/* weights_finding.c: see weights_finding.h. */
#include "compare/weights/weights_finding.h"

#include <stdarg.h>
#include <stdio.h>

const vn_weight_entry *vn_weight_entry_of(vn_weight_finding found)
{
	static const vn_weight_entry row[VN_N_FOUND] = {
#define WEIGHT(name, mistake, kind, title) { mistake, kind },
#include "libref/plan/catalogue.def"
	};
	return &row[found];
}

bool vn_weight_is(vn_weight_difference *d, int side, vn_weight_proof proof, vn_weight_finding found, const char *title,
                  ...)
{
	const size_t n = side ? 0 : (size_t)snprintf(d->words, sizeof d->words, "in the reference: ");
	va_list      args;

	d->proof = proof;
	d->certain = proof != VN_BY_STATISTICS;
	d->kind = vn_weight_entry_of(found)->kind;
	va_start(args, title);
	vsnprintf(d->words + n, sizeof d->words - n, title, args);
	va_end(args);
	return vn_weight_shows(d, vn_weight_entry_of(found)->id);
}

bool vn_weight_shows(vn_weight_difference *d, vn_mistake id)
{
	snprintf(d->id, sizeof d->id, "%s", vn_mistake_id(id));
	return true;
}
