/* part.c: see part.h. */
#include "compare/folders/part.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <stdlib.h>
#include <string.h>

/* The variables of one scheduler: this process's number, the number of the first, the step from one
 * to the next, and how many there are. NULL: 0, 1, unknown. */
static const struct scheduler {
	const char *index, *first, *step, *count;
} schedulers[] = {
	{ "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP", "SLURM_ARRAY_TASK_COUNT" },
	{ "OMPI_COMM_WORLD_RANK", NULL, NULL, "OMPI_COMM_WORLD_SIZE" },
	{ "PMI_RANK", NULL, NULL, "PMI_SIZE" },
	{ "SLURM_PROCID", NULL, NULL, "SLURM_NTASKS" },
	{ "JOB_COMPLETION_INDEX", NULL, NULL, NULL },
};

/* Reads decimal digits and nothing else. Returns false for another text,
 * or a number that is too large. */
static bool read_number(const char *text, size_t length, long *x)
{
	*x = 0;
	if (length == 0 || length > 9)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*x = *x * 10 + (text[i] - '0');
	}
	return true;
}

static vn_status read_variable(const char *name, long otherwise, long *x, vn_error *err)
{
	const char *text = name ? getenv(name) : NULL;

	*x = otherwise;
	if (text && !read_number(text, strlen(text), x))
		return vn_fail(err, VN_ERR_USAGE, "--part: %s is '%.40s', not a number", name, text);
	return VN_OK;
}

static vn_status ask_scheduler(int of, int *index, vn_error *err)
{
	for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers; i++) {
		const struct scheduler *s = &schedulers[i];
		long                    at, first, step, count;

		if (!getenv(s->index))
			continue;
		vn_status st;
		if ((st = read_variable(s->index, 0, &at, err)) || (st = read_variable(s->first, 0, &first, err)) ||
		    (st = read_variable(s->step, 1, &step, err)) || (st = read_variable(s->count, of, &count, err)))
			return st;
		if (count != of)
			return vn_fail(err, VN_ERR_USAGE, "--part %d: %s is %ld: give --part %ld", of, s->count, count, count);
		if (step < 1 || at < first || (at - first) / step >= of)
			return vn_fail(err, VN_ERR_USAGE, "--part %d: %s is %ld: there is no such part", of, s->index, at);
		*index = (int)((at - first) / step) + 1;
		return VN_OK;
	}
	return vn_fail(err, VN_ERR_USAGE,
	               "--part %d: no scheduler says which part this process takes (SLURM_PROCID and "
	               "others): give --part 1/%d to --part %d/%d",
	               of, of, of, of);
}

vn_status vn_folder_part_read(const char *text, vn_folder_part *part, vn_error *err)
{
	const char *slash = strchr(text, '/');
	const char *count = slash ? slash + 1 : text;
	long        index = 1, of;

	if (!read_number(count, strlen(count), &of) || (slash && !read_number(text, (size_t)(slash - text), &index)) ||
	    index < 1 || of < 1 || of > VN_MOST_PARTS || index > of)
		return vn_fail(err, VN_ERR_USAGE, "--part takes I/N, part I of N from 1/N to N/N, or N, not '%.40s'", text);
	*part = (vn_folder_part) { (int)index, (int)of };
	return slash ? VN_OK : ask_scheduler((int)of, &part->index, err);
}

typedef struct file_item {
	int64_t bytes;
	int     at;
} file_item;

VN_ORDER_BY(larger_first, file_item, VN_ORDER(y->bytes, x->bytes), x->at - y->at)

void vn_folder_part_deal(const int64_t *bytes, int n, vn_folder_part part, bool *mine, int *in_order)
{
	const int           of = part.of ? part.of : 1;
	VN_FREED file_item *order = vn_alloc((size_t)n, sizeof *order);
	VN_FREED int64_t   *load = vn_alloc_zero((size_t)of, sizeof *load);

	for (int i = 0; i < n; i++)
		order[i] = (file_item) { bytes[i], i };
	qsort(order, (size_t)n, sizeof *order, larger_first);
	for (int i = 0; i < n; i++) {
		int least = 0;
		for (int p = 1; p < of; p++)
			if (load[p] < load[least])
				least = p;
		load[least] += order[i].bytes + 1; /* so that empty files are spread, too */
		mine[order[i].at] = part.of == 0 || least == part.index - 1;
		in_order[i] = order[i].at;
	}
}
