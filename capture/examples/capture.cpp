// capture.cpp MODEL FILE [REF]: the same from C++, by libvernier-capture.
//
//     c++ -std=c++11 capture.cpp $(pkg-config --cflags --libs vernier-capture) -o capture
//     ./capture MODEL cand.h5
#include "vernier_capture.h"

#include "tiny_mistral.h"

#include <memory>
#include <stdexcept>
#include <vector>

static void record_tensor(void *recording, const char *name, const char *dims, const float *x, int rank,
                          const int64_t *shape)
{
	vernier_capture_put(static_cast<vernier_capture *>(recording), name, dims, "f32", x, rank, shape);
}

int main(int argc, char **argv)
try {
	const std::vector<int32_t> ids = { 12, 345, 6, 78, 9, 10, 111, 213, 14, 415, 16, 17, 318, 19, 20, 21, 222 };
	size_t bytes = 0;
	std::unique_ptr<char, decltype(&std::free)> config(
	    argc == 3 || argc == 4 ? tiny_read(argv[1], "config.json", &bytes) : nullptr,
	                                                 std::free);
	if (!config)
		throw std::runtime_error("usage: capture MODEL FILE [REF]");
	std::unique_ptr<vernier_capture, decltype(&vernier_capture_free)> rec(
	    vernier_capture_open(argv[2], 0, "tiny mistral", "f32"),
	                                                                      vernier_capture_free);
	vernier_capture_say(rec.get(), "language", "C++");
	vernier_capture_config(rec.get(), config.get());
	if (argc == 4) // only what differs from REF is written
		vernier_capture_against(rec.get(), argv[3], 0);
	vernier_capture_step(rec.get(), ids.data(), ids.size());
	if (tiny_run(argv[1], ids.data(), static_cast<int>(ids.size()), record_tensor, rec.get()) != 0)
		throw std::runtime_error("no such model");
	if (vernier_capture_commit(rec.get()) != 0) // the first failure of all calls
		throw std::runtime_error(vernier_capture_error(rec.get()));
	if (*vernier_capture_differs(rec.get()))
		std::printf("differs first: %s\n", vernier_capture_differs(rec.get()));
	return 0;
} catch (const std::exception &e) {
	std::fprintf(stderr, "capture: %s\n", e.what());
	return 2;
}
