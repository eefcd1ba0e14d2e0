/* fuzz_frames.c: whatever a child (capture/file/child.h) sends, its parent makes a valid recording
 * of it or gives one line.
 *
 * The bytes are frames of a child that a hostile file has taken over; the file itself is correct.
 * Seeds: the frames of honest children. */
#include "capture/file/child.h"
#include "capture/recording/recording_internal.h"
#include "capture/show/identities.h"
#include "tests/fuzz/mutate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef VERNIER_SOURCE
#define VERNIER_SOURCE "."
#endif
static const char golden[] = VERNIER_SOURCE "/fixtures/golden/qwen2-trained.p001.f32.h5";

static volatile double sum;
static long            opened;

/* Reads a number at each end: the mapped or loaded data must be as large as the shape. */
static void touch(vn_recording *r, int i)
{
	const vn_entry *e = vn_recording_entry(r, i);
	const int64_t   n = vn_shape_count(&e->shape);
	const void     *data;
	vn_error        err;
	double          x = 0;

	if (vn_recording_data(r, i, &data, &err) || n == 0)
		return;
	const size_t size = vn_dtype_size(e->dtype);
	for (int64_t k = 0; k<n; k += n> 4096 ? n / 64 : 1) {
		vn_to_f64(&x, (const char *)data + (size_t)k * size, e->dtype, 1);
		sum += x;
	}
	vn_to_f64(&x, (const char *)data + (size_t)(n - 1) * size, e->dtype, 1);
	sum += x;
	vn_recording_release(r, i);
}

/* dear: also runs the checks that start children or read many times. */
static void read_recording(vn_recording *r, bool dear)
{
	const int32_t *id, *position;
	const vn_step *step;
	const int64_t  n = vn_recording_tokens(r, &id, &position), batch = vn_recording_batch(r);
	const int      steps = vn_recording_steps(r, &step);
	int            by_hdf5 = 0;

	if (batch < 0 || (batch > 0 && n % batch))
		abort();
	for (int64_t i = 0; i < n; i++)
		if (id[i] < (batch ? -1 : 0) || position[i] < (batch ? -1 : 0))
			abort();
	for (int i = 0; i < steps; i++)
		if (step[i].position < 0 || step[i].tokens < 0 || step[i].position + step[i].tokens > n ||
		    (i && step[i].number <= step[i - 1].number))
			abort();
	for (int i = 0; i < vn_recording_count(r); i++) {
		const vn_entry *e = vn_recording_entry(r, i);
		if (vn_recording_find(r, e->step, e->name) != i || vn_shape_count(&e->shape) < 0 || strchr(e->name, '\n'))
			abort();
		if (e->same_as >= 0 && !vn_shape_equal(&e->shape, &vn_recording_entry(r, e->same_as)->shape))
			abort();
		if (r->source[i].offset >= 0 || (dear && by_hdf5++ < 1))
			touch(r, i);
	}
	vn_error      err;
	vn_identities found;
	if (!dear)
		return;
	vn_identities_of(r, &found, &err);
	vn_identities_free(&found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_recording *r;
	vn_error      err = { "" };
	const int     fd = memfd_create("frames", MFD_CLOEXEC);

	MUST(access(golden, R_OK) == 0); /* without it, no frame is read */
	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size) || lseek(fd, 0, SEEK_SET) != 0)
		exit(2);
	if (vn_recording_of_frames(golden, fd, &r, &err) == VN_OK) {
		opened++;
		read_recording(r, size % 32 == 0);
	} else if (!*err.text || strchr(err.text, '\n') || r)
		abort();
	vn_recording_close(r);
	return 0;
}

#ifndef VERNIER_LIBFUZZER

/* The frames of a child about the golden file. In seed 1 HDF5 must read every tensor; seed 2 has
 * few tensors. */
static size_t honest(int i, uint8_t *out)
{
	struct stat s;
	const int   to = memfd_create("frames", MFD_CLOEXEC), file = open(golden, O_RDONLY | O_CLOEXEC);
	if (to < 0 || file < 0 || fstat(file, &s) != 0)
		exit(2);
	const pid_t pid = fork();
	if (pid == 0) {
		vn_scan scan = { .fd = file, .path = golden, .bytes = s.st_size };
		vn_scan_file(&scan, to);
		vn_child_leave(to);
	}
	if (pid < 0 || TEMP_FAILURE_RETRY(waitpid(pid, NULL, 0)) != pid)
		exit(2);
	static uint8_t all[1 << 20];
	const ssize_t  n = pread(to, all, sizeof all, 0);
	size_t         used = 0, tensors = 0;
	for (size_t at = 0; n > 0 && at + 8 <= (size_t)n;) {
		uint32_t head[2];
		memcpy(head, all + at, sizeof head);
		const size_t bytes = sizeof head + head[1];
		const bool   tensor = head[0] == VN_FRAME_TENSOR,
				   plan = head[0] >= VN_FRAME_PLAN && head[0] <= VN_FRAME_PLAN_WEIGHT;
		if (tensor && i == 1)
			memset(all + at + sizeof head + offsetof(vn_seen_tensor, offset), 0xff, sizeof(int64_t));
		tensors += tensor;
		if (used + bytes <= FUZZ_ROOM / 2 && !(tensor && i == 2 && tensors > 3) && !(plan && i == 2) &&
		    !(head[0] == VN_FRAME_WEIGHT && i != 0)) {
			memcpy(out + used, all + at, bytes);
			used += bytes;
		}
		at += bytes;
	}
	const uint32_t end[2] = { VN_FRAME_DONE, 0 };
	memcpy(out + used, end, sizeof end);
	close(to);
	close(file);
	return used + sizeof end;
}

static size_t honest_kept(uint64_t i, uint8_t *out)
{
	static struct {
		uint8_t data[FUZZ_ROOM];
		size_t  n;
	} kept[3];
	if (!kept[i].n)
		kept[i].n = honest((int)i, kept[i].data);
	memcpy(out, kept[i].data, kept[i].n);
	return kept[i].n;
}

/* Writes honest frames, a few of them twice, left out or with another number. The length of each
 * frame stays right. */
static size_t lie(uint8_t *data, uint64_t s)
{
	static const int64_t odd[] = { 0, 1, -1, 2, 7, 64, INT32_MAX, INT64_MAX, INT64_MIN, 1 << 20, 0x6c6c756e };
	static uint8_t       all[FUZZ_ROOM];
	const size_t         n = honest_kept(fuzz_random(&s) % 3, all);
	size_t               used = 0;

	for (size_t at = 0; at + 8 <= n;) {
		uint32_t head[2];
		memcpy(head, all + at, sizeof head);
		const size_t   bytes = sizeof head + head[1];
		const uint64_t r = fuzz_random(&s) % 64;
		for (uint64_t twice = r == 0 ? 2 : r == 1 ? 0 : 1; twice && used + bytes <= FUZZ_ROOM; twice--) {
			memcpy(data + used, all + at, bytes);
			if (r < 5 && head[1] >= 4) {
				/* A tensor frame's numbers follow its texts. */
				const size_t from = head[0] == VN_FRAME_TENSOR ? offsetof(vn_seen_tensor, step) : 0,
							 width = r == 2 || head[1] < 8 ? 4 : 8;
				const size_t to = sizeof head + from + fuzz_random(&s) % ((head[1] - from) / width) * width;
				memcpy(data + used + to, &odd[fuzz_random(&s) % (sizeof odd / sizeof *odd)], width);
			}
			used += bytes;
		}
		at += bytes;
	}
	return used;
}

/* Corrects the lengths of mutated frames: otherwise most mutations would end at the next frame's
 * length. */
static size_t reframe(uint8_t *data, size_t size, uint64_t chance)
{
	size_t at = 0;
	if (chance % 4 < 2)
		return lie(data, chance);
	while (chance % 4 == 2 && at + 8 <= size) {
		uint32_t head[2];
		memcpy(head, data + at, sizeof head);
		const size_t left = size - at - sizeof head;
		const size_t fixed = head[0] == VN_FRAME_TENSOR   ? sizeof(vn_seen_tensor)
		                     : head[0] == VN_FRAME_WEIGHT ? sizeof(vn_seen_weight)
		                     : head[0] == VN_FRAME_STEP   ? sizeof(vn_seen_step)
		                                                  : 0;
		head[0] %= VN_FRAME_DONE + 1;
		head[1] = fixed ? (uint32_t)fixed : head[1];
		if (head[1] > left)
			head[1] = (uint32_t)left;
		memcpy(data + at, head, sizeof head);
		at += sizeof head + head[1];
	}
	return size;
}

int main(int argc, char **argv)
{
	const int status = fuzz_main(argc, argv, &(fuzz_plan) { honest, 3, reframe, NULL });
	printf("%ld of them opened\n", opened);
	return status || opened < 10;
}
#endif
