/* fault_make.c: the functions behind the rows of fault_makes.def. */
#include "libref/plan/fault_internal.h"

#include <math.h>
#include <string.h>

static double truncate_number(double x)
{
	float    a = (float)x;
	uint32_t bits;

	memcpy(&bits, &a, 4);
	bits &= 0xFFFF0000u;
	memcpy(&a, &bits, 4);
	return (double)a;
}

#define MAKE(name, how)
#define EACH(name, slot, number, value) \
	static void change_##name(const vn_fault_run *run, double by) \
	{ \
		(void)by; \
		for (int64_t i = 0; i < run->n; i++) { \
			const double x = run->x[i]; \
			(void)x; \
			run->y[i] = value; \
		} \
	}
#include "libref/plan/fault_makes.def"

#define MAKE(name, how) \
	vn_status vn_make_##name(const vn_fault_row *r, vn_faulty *f, int node, vn_error *err) \
	{ \
		const vn_plan *p = f->plan; \
		vn_node       *n = &f->plan->node[node]; \
		(void)r, (void)p, (void)n, (void)err; \
		return how; \
	}
#define EACH(name, slot, number, value) MAKE(name, vn_fault_change(f, node, slot, change_##name, number, err))
#include "libref/plan/fault_makes.def"
