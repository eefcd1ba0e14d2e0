/* fuzz_npy.c: any bytes as a .npy file: refused with one line, or its numbers are read
 * without a step outside.
 */
#include "capture/import/npy.h"
#include "tests/fuzz/mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	vn_npy   npy;
	vn_error err = { "" };
	if (vn_npy_parse("fuzz", data, size, size, &npy, &err)) {
		if (!fuzz_one_line(err.text))
			abort();
		return 0;
	}
	if (npy.at > size || npy.bytes != size - npy.at)
		abort();
	const size_t out = (size_t)vn_shape_count(&npy.shape) * vn_dtype_size(npy.layout.dtype);
	void        *to = malloc(out + 1);
	if (!to)
		exit(2);
	(void)vn_import_layout_read("fuzz", "x", &npy.layout, &npy.shape, data + npy.at, to, &err);
	free(to);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static const char *const seeds[] = {
	"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
	"{'descr': '>f8', 'fortran_order': True, 'shape': (3, 1), }",
	"{'descr': '<i8', 'fortran_order': True, 'shape': (1, 3), }",
	"{'descr': '|u1', 'fortran_order': False, 'shape': (24,), }",
	"{'shape': (), 'fortran_order': False, 'descr': '<f8'}",
	"{'descr': '|O', 'fortran_order': False, 'shape': (3,), }",
	"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }",
	"{\"descr\": \"<V2\", 'fortran_order': False, 'shape': (0L, 12L)}",
	"{'descr': '<f2', 'fortran_order': True, 'shape': (1, 2, 3, 1, 2, 1), }",
};

static size_t make_seed(int i, uint8_t *out)
{
	const size_t n = strlen(seeds[i]);
	memcpy(out, "\x93NUMPY\x01\x00", 8);
	out[8] = (uint8_t)n;
	out[9] = 0;
	memcpy(out + 10, seeds[i], n);
	memset(out + 10 + n, 0x3c, 24);
	return 10 + n + 24;
}

/* After a mutation, neither the header's length nor the file's is right. Corrects both half the
 * time. */
static size_t repair(uint8_t *data, size_t size, uint64_t chance)
{
	vn_npy npy;
	size_t end = 0;
	if (chance % 2 == 0 || size < 10)
		return size;
	for (size_t i = 10; i < size && i < 250; i++)
		if (data[i] == '}')
			end = i + 1;
	if (!end)
		return size;
	data[6] = 1;
	data[8] = (uint8_t)(end - 10);
	data[9] = 0;
	if (vn_npy_parse("fuzz", data, end, FUZZ_ROOM, &npy, NULL) && npy.at == end && npy.bytes < FUZZ_ROOM - end) {
		memset(data + end, 0x11, npy.bytes);
		return end + npy.bytes;
	}
	return size;
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { make_seed, (int)(sizeof seeds / sizeof *seeds), repair, NULL };
	return fuzz_main(argc, argv, &plan);
}
#endif
