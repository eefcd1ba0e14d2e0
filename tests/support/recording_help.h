/* recording_help.h: writes checkpoint files with HDF5's own functions, one number or name at a
 * time. Shared by the suites of capture/recording and test_verify.c. */
#pragma once

#include "capture/recording/recording.h"
#include "tests/support/suite.h"

#include <hdf5.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/vn-recording-XXXXXX";
static char path[64];

/* ---- making files ------------------------------------------------------------------ */

static inline void put_attr(hid_t o, const char *name, hid_t type, const void *value)
{
	hid_t space = H5Screate(H5S_SCALAR), a = H5Acreate2(o, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	CU_ASSERT_TRUE(a >= 0 && H5Awrite(a, type, value) >= 0);
	H5Aclose(a);
	H5Sclose(space);
}

static inline void put_text(hid_t o, const char *name, const char *text)
{
	hid_t type = H5Tcopy(H5T_C_S1);
	H5Tset_size(type, strlen(text) + 1);
	put_attr(o, name, type, text);
	H5Tclose(type);
}

static inline void put_int(hid_t o, const char *name, int64_t x)
{
	put_attr(o, name, H5T_NATIVE_INT64, &x);
}

static inline hid_t put_data(hid_t in, const char *name, hid_t type, int rank, const hsize_t *dim, hid_t dcpl,
                             const void *data)
{
	hid_t space = H5Screate_simple(rank, dim, NULL);
	hid_t d = H5Dcreate2(in, name, type, space, H5P_DEFAULT, dcpl, H5P_DEFAULT);
	CU_ASSERT_TRUE(d >= 0);
	if (data)
		CU_ASSERT_TRUE(H5Dwrite(d, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
	H5Sclose(space);
	return d;
}

static inline void put_floats(hid_t in, const char *name)
{
	static const float x[6] = { 1, 2, 3, 4, 5, 6 };
	H5Dclose(put_data(in, name, H5T_IEEE_F32LE, 2, (hsize_t[]) { 2, 3 }, H5P_DEFAULT, x));
}

/* The version of object headers that HDF5 writes: 1, or 2 with checksums, as in our own files. */
static bool newer;

static inline hid_t create(const char *name)
{
	hid_t how = H5Pcreate(H5P_FILE_ACCESS);
	if (newer)
		H5Pset_libver_bounds(how, H5F_LIBVER_V18, H5F_LIBVER_LATEST);
	hid_t f = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, how);
	H5Pclose(how);
	return f;
}

/* A whole, good file with one tensor `embed`; *step is the open group of step 0. */
static inline hid_t make_file(hid_t *step)
{
	static const int32_t ids[2] = { 7, 8 }, positions[2] = { 0, 1 };
	hid_t                f = create(path);
	hid_t                run = H5Gcreate2(f, "run", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);

	put_text(f, "format", "vernier-checkpoint");
	put_int(f, "format_version", 1);
	put_int(f, "complete", 1);
	put_text(run, "engine", "foreign");
	put_text(run, "precision", "f32");
	H5Dclose(put_data(run, "token_ids", H5T_STD_I32LE, 1, (hsize_t[]) { 2 }, H5P_DEFAULT, ids));
	H5Dclose(put_data(run, "positions", H5T_STD_I32LE, 1, (hsize_t[]) { 2 }, H5P_DEFAULT, positions));
	H5Gclose(run);
	*step = H5Gcreate2(f, "step.0", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	put_floats(*step, "embed");
	return f;
}

static inline void close_file(hid_t f, hid_t step)
{
	H5Gclose(step);
	CU_ASSERT_TRUE(H5Fclose(f) >= 0);
}

static inline vn_recording *opens(void)
{
	vn_recording *r = NULL;
	vn_error      err = { 0 };
	if (vn_recording_open(path, &r, &err))
		fprintf(stderr, "%s\n", err.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	return r;
}

/* Checks that the message is one line with the file's name and these words. */
static inline void is_refused(const char *a, const char *b)
{
	vn_recording *r = NULL;
	vn_error      err = { 0 };

	CU_ASSERT_NOT_EQUAL(vn_recording_open(path, &r, &err), VN_OK);
	CU_ASSERT_PTR_NULL(r);
	vn_recording_close(r);
	if (!strstr(err.text, a) || !strstr(err.text, b))
		fprintf(stderr, "expected '%s' and '%s' in '%s'\n", a, b, err.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, path));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, a));
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, b));
}

/* Runs the suite twice, with files of either header version. */
static inline int run_recordings(const char *what, CU_TestInfo *tests)
{
	char title[80];
	int  failed = 0;
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof path, "%s/run.h5", dir);
	H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
	for (int version = 1; version <= 2; version++) {
		newer = version == 2;
		snprintf(title, sizeof title, "%s with headers of version %d", what, version);
		failed |= run_suite(title, tests);
	}
	unlink(path);
	rmdir(dir);
	return failed;
}
