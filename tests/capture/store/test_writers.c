/* test_writers.c: blocks that threads write at their places, and a disk that refuses them. */
#include "capture/store/writers.h"
#include "tests/support/suite.h"
#include "tests/support/toy_model.h"

#include <fcntl.h>

enum { BLOCKS = 40, BYTES = 300 * 1000 }; /* no whole pages */

static char dir[256];

/* Posts all blocks, the last first in the file; each is given back by this thread, too. */
static void post_all(vn_writers *w, vn_queue *q)
{
	for (int i = 0; i < BLOCKS; i++) {
		vn_block *b = vn_queue_take(q);
		CU_ASSERT_PTR_NOT_NULL_FATAL(b);
		memset(b->data, i + 1, BYTES);
		b->used = BYTES;
		vn_queue_post(q, b);
		CU_ASSERT_PTR_EQUAL_FATAL(vn_queue_fetch(q), b);
		vn_writers_post(w, b, (int64_t)(BLOCKS - 1 - i) * BYTES, "logits");
		vn_queue_give_back(q, b);
	}
}

static void every_block_is_written_at_its_place_and_given_back_once(void)
{
	const int   fd = open(toy_path(dir, "f"), O_RDWR | O_CREAT, 0600);
	vn_queue   *q = vn_queue_create(3 * VN_BLOCK_BYTES); /* fewer than posted, so blocks must come back */
	vn_writers *w = fd >= 0 && q ? vn_writers_create(fd, "f", q) : NULL;
	static char back[BYTES], want[BYTES];
	vn_error    err;

	CU_ASSERT_PTR_NOT_NULL_FATAL(w);
	post_all(w, q);
	CU_ASSERT_EQUAL(vn_writers_wait(w, &err), VN_OK);
	for (int i = 0; i < BLOCKS; i++) {
		memset(want, i + 1, BYTES);
		CU_ASSERT_EQUAL(pread(fd, back, BYTES, (off_t)(BLOCKS - 1 - i) * BYTES), BYTES);
		CU_ASSERT_EQUAL(memcmp(back, want, BYTES), 0);
	}
	vn_queue_drain(q); /* hangs if a block was not given back */
	vn_writers_destroy(w);
	vn_queue_destroy(q);
	close(fd);
}

static void a_disk_that_is_full_is_an_error_of_wait_and_gives_the_blocks_back(void)
{
	const int   fd = open("/dev/full", O_WRONLY);
	vn_queue   *q = vn_queue_create(3 * VN_BLOCK_BYTES);
	vn_writers *w = fd >= 0 && q ? vn_writers_create(fd, "big.h5.partial", q) : NULL;
	vn_error    err = { "" };

	CU_ASSERT_PTR_NOT_NULL_FATAL(w);
	post_all(w, q);
	CU_ASSERT_EQUAL(vn_writers_wait(w, &err), VN_ERR_IO);
	CU_ASSERT_STRING_EQUAL(err.text, "big.h5.partial: cannot write logits: No space left on device");
	CU_ASSERT_EQUAL(vn_writers_wait(w, &err), VN_OK);
	vn_queue_drain(q);
	vn_writers_destroy(w);
	vn_queue_destroy(q);
	close(fd);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_block_is_written_at_its_place_and_given_back_once),
		TEST(a_disk_that_is_full_is_an_error_of_wait_and_gives_the_blocks_back),
		CU_TEST_INFO_NULL,
	};

	toy_directory(dir);
	const int failures = run_suite("writers", tests);
	toy_remove(dir);
	return failures;
}
