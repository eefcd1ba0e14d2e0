// record.cpp MODEL DIR: the same from C++: a class around vernier_record.h, whose destructor never
// claims that all is there.
//
//     c++ -std=c++11 record.cpp -o record && ./record MODEL dump
#define VERNIER_RECORD_IMPLEMENTATION
#include "vernier_record.h"

#include "tiny_mistral.h"

#include <stdexcept>
#include <string>
#include <vector>

class Recording {
public:
	Recording(const std::string &dir, const char *engine)
	{
		check(vernier_record_open(&rec_, dir.c_str(), engine, "f32"));
	}
	~Recording() { vernier_record_abandon(&rec_); }
	Recording(const Recording &) = delete;
	Recording &operator=(const Recording &) = delete;

	void say(const char *key, const char *value) { check(vernier_record_say(&rec_, key, value)); }
	void config(const char *json) { check(vernier_record_config(&rec_, json)); }
	void step(const std::vector<int32_t> &ids) { check(vernier_record_step(&rec_, ids.data(), ids.size())); }
	void put(const char *name, const char *dims, const float *x, int rank, const int64_t *shape)
	{
		check(vernier_record_put(&rec_, name, dims, "f32", x, rank, shape));
	}
	void close() { check(vernier_record_close(&rec_)); }

private:
	void check(int status)
	{
		if (status != 0)
			throw std::runtime_error(vernier_record_error(&rec_));
	}
	vernier_record rec_;
};

static void record_tensor(void *recording, const char *name, const char *dims, const float *x, int rank,
                          const int64_t *shape)
{
	static_cast<Recording *>(recording)->put(name, dims, x, rank, shape);
}

int main(int argc, char **argv)
try {
	const std::vector<int32_t> ids = { 12, 345, 6, 78, 9, 10, 111, 213, 14, 415, 16, 17, 318, 19, 20, 21, 222 };
	size_t bytes = 0;
	char  *config = argc == 3 ? tiny_read(argv[1], "config.json", &bytes) : nullptr;
	if (!config)
		throw std::runtime_error("usage: record MODEL DIR");
	Recording rec(argv[2], "tiny mistral");
	rec.say("language", "C++");
	rec.config(config);
	std::free(config);
	rec.step(ids);
	if (tiny_run(argv[1], ids.data(), static_cast<int>(ids.size()), record_tensor, &rec) != 0)
		throw std::runtime_error("no such model");
	rec.close();
	return 0;
} catch (const std::exception &e) {
	std::fprintf(stderr, "record: %s\n", e.what());
	return 2;
}
