/* fuzz_recording.c: whatever bytes a checkpoint file has, opening it ends in a
 * recording or in one line. */
#include "capture/show/identities.h"
#include "capture/recording/recording.h"
#include "capture/view/view.h"
#include "tests/fuzz/mutate.h"

#include <sys/mman.h>
#include <unistd.h>

static vn_error last;      /* the error of the last input */
static bool     read_well; /* it opened, and every number could be read */

/* Checks that a tensor read in part equals that part of the whole. */
static void same_in_part(vn_recording *r, int i, const unsigned char *whole)
{
	const vn_entry *e = vn_recording_entry(r, i);
	const size_t    size = vn_dtype_size(e->dtype);
	const int64_t   n = vn_shape_count(&e->shape), from = n / 3, most = n - from - n / 4;
	unsigned char   part[1024];
	const int64_t   count = most < 100 ? most : 100;

	if (vn_recording_read(r, i, from, count, part, &last) ||
	    (count && memcmp(part, whole + (size_t)from * size, (size_t)count * size) != 0))
		abort();
}

/* All there is to ask. */
static bool read_recording(vn_recording *r)
{
	volatile double sum = 0;
	bool            good = true;

	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		const void     *numbers;
		if (vn_recording_find(r, e->step, e->name) != i || vn_shape_count(&e->shape) < 0)
			abort();
		if (vn_recording_data(r, i, &numbers, &last)) {
			good = false;
			continue;
		}
		sum += vn_stats_of(numbers, e->dtype, (size_t)vn_shape_count(&e->shape)).max;
		vn_recording_release(r, i);
	}
	vn_identities found;
	if (vn_identities_of(r, &found, &last))
		good = false;
	vn_identities_free(&found);
	for (int i = 0; i < vn_recording_count(r); i++) { /* with its axes in another order, as another recording's */
		const vn_entry *e = vn_recording_entry(r, i);
		const int       order[VN_MAX_RANK] = { e->shape.rank - 1, e->shape.rank > 2 ? 1 : 0, 0, 3 };
		const void     *numbers;
		if (e->shape.rank < 2 || e->shape.rank > 3 || e->same_as >= 0)
			continue;
		vn_view_axes(r, i, order);
		if (vn_recording_data(r, i, &numbers, &last))
			continue;
		sum += vn_stats_of(numbers, e->dtype, (size_t)vn_shape_count(&e->shape)).max;
		same_in_part(r, i, numbers);
		vn_recording_release(r, i);
	}
	const int32_t *id, *position;
	const vn_step *step;
	const int64_t  n = vn_recording_tokens(r, &id, &position);
	const int      steps = vn_recording_steps(r, &step);
	for (int64_t i = 0; i < n; i++)
		if (id[i] < 0 || position[i] < 0)
			abort();
	for (int i = 0; i < steps; i++)
		if (step[i].position < 0 || step[i].tokens < 0 || step[i].position + step[i].tokens > n)
			abort();
	const vn_plan *p = vn_recording_plan(r);
	for (int v = 0; p && v < p->n_values; v++)
		sum += vn_plan_root(p, v);
	(void)sum;
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char          path[64];
	vn_recording *r;
	int           fd = memfd_create("recording", MFD_CLOEXEC);

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	fuzz_quiet_children();
	*last.text = '\0';
	read_well = false;
	if (vn_recording_open(path, &r, &last) == VN_OK)
		read_well = read_recording(r);
	else if (!fuzz_one_line(last.text) || r)
		abort(); /* a refusal is one line, and leaves nothing */
	vn_recording_close(r);
	close(fd);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
/* In HDF5's old format, which has no checksums: damage gets furthest. */
static size_t make_seed(int i, uint8_t *out)
{
	FILE        *f = fopen(VERNIER_SOURCE "/fixtures/golden/gpt2-trained.p001.f32.h5", "rb");
	const size_t n = f && i == 0 ? fread(out, 1, FUZZ_ROOM, f) : 0;

	if (!f || fclose(f) != 0)
		exit(2);
	return n;
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, 1, NULL, fuzz_damage };
	static uint8_t  seed[FUZZ_ROOM];
	LLVMFuzzerTestOneInput(seed, make_seed(0, seed));
	if (!read_well) /* then mutations would prove nothing */
		return 1;
	return fuzz_main(argc, argv, &plan);
}
#endif
