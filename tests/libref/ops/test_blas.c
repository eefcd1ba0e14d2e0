/* test_blas.c: detects that OpenBLAS chose wrong kernels. */
#include "libref/ops/blas.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *better(const char *core, int avx2, int avx512)
{
	const char *b = vn_blas_better(core, avx2, avx512);
	return b ? b : "(none)";
}

/* OpenBLAS 0.3.21 on Intel family 6 model 207: Prescott, five times slower. */
static void kernels_of_2004_are_replaced_on_a_machine_that_has_more(void)
{
	const char *old[] = {
		"Prescott", "Core2", "Nehalem", "Sandybridge", "Barcelona", "Bulldozer", "generic", "prescott"
	};

	for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
		CU_ASSERT_STRING_EQUAL(better(old[i], 1, 1), "SKYLAKEX");
		CU_ASSERT_STRING_EQUAL(better(old[i], 1, 0), "HASWELL");
	}
}

static void they_are_left_alone_on_a_machine_that_has_no_more(void)
{
	CU_ASSERT_STRING_EQUAL(better("Prescott", 0, 0), "(none)");
	CU_ASSERT_STRING_EQUAL(better("Nehalem", 0, 0), "(none)");
}

static void kernels_with_avx2_are_good_enough_everywhere(void)
{
	const char *good[] = { "Haswell",        "Zen",     "Excavator", "SkylakeX", "Cooperlake",
		                   "Sapphirerapids", "HASWELL", "SKYLAKEX" };

	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		CU_ASSERT_STRING_EQUAL(better(good[i], 1, 1), "(none)");
		CU_ASSERT_STRING_EQUAL(better(good[i], 1, 0), "(none)");
	}
}

static void what_runs_is_named(void)
{
	vn_error err = { "" };

	CU_ASSERT_EQUAL_FATAL(vn_blas_prepare(1, &err), VN_OK);
	CU_ASSERT(strlen(vn_blas_core()) > 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(vn_blas_version(), "OpenBLAS"));
}

/* OpenBLAS itself would ask for ever. */
static void too_little_address_space_is_said_at_once(void)
{
	struct rlimit was = { 0 }, now;
	long long     pages = 0;
	vn_error      err = { "" };
	FILE         *f = fopen("/proc/self/statm", "r");

	CU_ASSERT_FATAL(f && fscanf(f, "%lld", &pages) == 1 && getrlimit(RLIMIT_AS, &was) == 0);
	fclose(f);
	now = was;
	now.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)300 << 20);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_AS, &now), 0);
	const vn_status st = vn_blas_prepare(100, &err);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_AS, &was), 0);
	CU_ASSERT(st == VN_ERR_NOMEM || is_emulated());
	CU_ASSERT(strstr(err.text, "128 MiB for each of 100 threads") || is_emulated());
	CU_ASSERT_EQUAL(vn_blas_prepare(3, &err), VN_OK);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(kernels_of_2004_are_replaced_on_a_machine_that_has_more),
		TEST(they_are_left_alone_on_a_machine_that_has_no_more),
		TEST(kernels_with_avx2_are_good_enough_everywhere),
		TEST(what_runs_is_named),
		TEST(too_little_address_space_is_said_at_once),
		CU_TEST_INFO_NULL,
	};
	return run_suite("blas", tests);
}
