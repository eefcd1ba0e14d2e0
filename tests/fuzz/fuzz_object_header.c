/* fuzz_object_header.c: any bytes as a file with headers of datasets: read, or left to HDF5, and never past their
 * end. Checksums are not looked at, or nothing would get past them. */
#include "capture/file/object_header.h"
#include "tests/fuzz/mutate.h"

#include <hdf5.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct said {
	char    axes[16];
	int64_t order;
	double  max;
} said;

static const vn_said list[] = {
	{ "axes", VN_SAID_TEXT, offsetof(said, axes), 16 },
	{ "order", VN_SAID_WHOLE, offsetof(said, order), 0 },
	{ "max", VN_SAID_REAL, offsetof(said, max), 0 },
};
static int read_well; /* headers of the last input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static vn_header_reader r;
	const int fd = memfd_create("header", MFD_CLOEXEC);

	if (fd < 0 || (size && write(fd, data, size) != (ssize_t)size))
		abort();
	memset(&r, 0, sizeof r);
	r.fd = fd;
	r.bytes = (int64_t)size;
	r.trusting = true;
	read_well = 0;
	for (size_t at = 0; at + 16 <= size; at++) {
		const bool newer = memcmp(data + at, "OHDR", 4) == 0, older = data[at] == 1 && data[at + 1] == 0 && data[at + 4] == 1;
		said             s;
		vn_object_header h;
		if ((!newer && !older) || !vn_object_header_read(&r, at, list, 3, &s, &h))
			continue;
		if (h.shape.rank < 0 || h.shape.rank > VN_MAX_RANK || h.type_bytes > sizeof h.type || h.said > 7
		    || (h.said & 1 && strnlen(s.axes, sizeof s.axes) == sizeof s.axes))
			abort();
		read_well++;
	}
	close(fd);
	return 0;
}

#ifndef VERNIER_LIBFUZZER
static void put(hid_t o, const char *name, hid_t type, const void *value)
{
	const hid_t space = H5Screate(H5S_SCALAR), a = H5Acreate2(o, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	H5Awrite(a, type, value);
	H5Aclose(a);
	H5Sclose(space);
}

/* A file of HDF5's with one dataset, its header of version 2, then of 1. */
static size_t make_seed(int i, uint8_t *out)
{
	static const float numbers[6] = { 1, 2, 3, 4, 5, 6 };
	const char *axes = i % 2 ? "token" : "token hidden";
	char path[] = "/tmp/vn-header-XXXXXX";
	const int   fd = mkstemp(path);
	const hid_t how = H5Pcreate(H5P_FILE_ACCESS), space = H5Screate_simple(2, (hsize_t[]){ 2, 3 }, NULL), text = H5Tcopy(H5T_C_S1);

	H5Tset_size(text, H5T_VARIABLE);
	if (i < 2)
		H5Pset_libver_bounds(how, H5F_LIBVER_V18, H5F_LIBVER_V18);
	const hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, how);
	const hid_t d = H5Dcreate2(f, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Dwrite(d, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
	put(d, "axes", text, &axes);
	for (int k = 0; k < 5 * (i % 2); k++)
		put(d, (char[]){ (char)('a' + k), 0 }, H5T_STD_I64LE, &(int64_t){ k });
	put(d, "order", H5T_STD_I64LE, &(int64_t){ 7 });
	put(d, "max", H5T_IEEE_F64LE, &(double){ 0.5 });
	H5Dclose(d);
	H5Tclose(text);
	H5Sclose(space);
	H5Fclose(f);
	H5Pclose(how);
	const ssize_t n = pread(fd, out, FUZZ_ROOM, 0);
	close(fd);
	unlink(path);
	return n > 0 ? (size_t)n : 0;
}

int main(int argc, char **argv)
{
	const fuzz_plan plan = { LLVMFuzzerTestOneInput, make_seed, 4, NULL, "OHDR OCHK GCOL axes order max token" };
	static uint8_t seed[FUZZ_ROOM];
	for (int i = 0; i < 4; i++) {
		LLVMFuzzerTestOneInput(seed, make_seed(i, seed));
		if (read_well != 1) /* then no mutation tells anything */
			return 1;
	}
	return fuzz_main(argc, argv, &plan);
}
#endif
