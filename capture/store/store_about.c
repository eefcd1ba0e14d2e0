/* store_about.c: what a store says about the run beside its tensors: /run, and /model in words. See store.h. */
#include "capture/store/store_inside.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool vn_store_list(hid_t group, const char *name, hid_t disk, hid_t memory, int64_t n, const void *data,
                     const char *digest)
{
	hsize_t dim = (hsize_t)n;
	hid_t   space = H5Screate_simple(1, &dim, NULL), dcpl = H5Pcreate(H5P_DATASET_CREATE);
	hid_t   dset = H5I_INVALID_HID;
	bool    good = space >= 0 && dcpl >= 0 && H5Pset_obj_track_times(dcpl, false) >= 0 &&
	            (dset = H5Dcreate2(group, name, disk, space, H5P_DEFAULT, dcpl, H5P_DEFAULT)) >= 0 &&
	            (n == 0 || H5Dwrite(dset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0) &&
	            (!digest || vn_h5_put_text(dset, "digest", digest));
	if (dset >= 0)
		good &= H5Dclose(dset) >= 0;
	if (dcpl >= 0)
		H5Pclose(dcpl);
	if (space >= 0)
		H5Sclose(space);
	return good;
}

bool vn_store_lines(hid_t group, const char *name, char *const *line, int64_t n)
{
	hid_t type = vn_h5_text_type();
	bool  good = type >= 0 && vn_store_list(group, name, type, type, n, line, NULL);
	if (type >= 0)
		H5Tclose(type);
	return good;
}

/* ---- /run ---------------------------------------------------------------------- */

static bool put_ids(hid_t group, const char *name, const int32_t *list, int64_t n, bool known)
{
	vn_digest d = vn_digest_of(list, (size_t)n * sizeof *list);
	return vn_store_list(group, name, H5T_STD_I32LE, H5T_NATIVE_INT32, n, list, known ? d.hex : NULL);
}

/* Ids that are known only later are written where they belong, as tensors are:
 * the list has its length from the start, and no structure of the file changes. */
static bool expect_ids(vn_store *s, hid_t group, const int32_t *ids, int64_t n)
{
	if (s->unknown == 0)
		return true;
	hid_t   d = H5Dopen2(group, "token_ids", H5P_DEFAULT);
	haddr_t at = d >= 0 ? H5Dget_offset(d) : HADDR_UNDEF;

	if (d >= 0)
		H5Dclose(d);
	if (at == HADDR_UNDEF || !(s->ids = malloc((size_t)n * sizeof *ids)))
		return false;
	memcpy(s->ids, ids, (size_t)n * sizeof *ids);
	s->n_ids = n;
	s->ids_at = (int64_t)at;
	return true;
}

vn_status vn_store_run(vn_store *s, const vn_facts *facts, const int32_t *ids, const int32_t *positions,
                       int64_t n, vn_error *err)
{
	vn_status st = vn_store_enter(s, err);
	if (st)
		return st;
	for (int64_t i = n; i > 0 && ids[i - 1] < 0; i--)
		s->unknown++;
	hid_t g = H5Gcreate2(s->file, "run", H5P_DEFAULT, s->groups, H5P_DEFAULT);
	bool  good = g >= 0;
	for (int i = 0; good && i < facts->n; i++)
		good = vn_h5_put_text(g, facts->fact[i].key, facts->fact[i].value);
	good = good && put_ids(g, "token_ids", ids, n, s->unknown == 0) && put_ids(g, "positions", positions, n, true) &&
	       expect_ids(s, g, ids, n);
	if (g >= 0)
		H5Gclose(g);
	st = vn_store_settle(s, good, "/run", true, err);
	vn_h5_unlock();
	return st;
}

static bool put_ids_digest(vn_store *s)
{
	const vn_digest d = vn_digest_of(s->ids, (size_t)s->n_ids * sizeof *s->ids);
	hid_t           o = H5Dopen2(s->file, "run/token_ids", H5P_DEFAULT);
	bool            good = o >= 0 && vn_h5_put_text(o, "digest", d.hex);
	if (o >= 0)
		H5Dclose(o);
	return good;
}

vn_status vn_store_token(vn_store *s, int64_t at, int32_t id, vn_error *err)
{
	vn_status st = vn_store_status(s, err);
	if (st)
		return st;
	assert(at == s->n_ids - s->unknown && id >= 0);
	s->ids[at] = id;
	s->unknown--;
	if ((st = vn_write_at(s->place.fd, s->place.partial, "/run/token_ids", &id, sizeof id, s->ids_at + at * 4, err)) ||
	    s->unknown > 0)
		return st;
	if ((st = vn_store_enter(s, err)))
		return st;
	st = vn_store_settle(s, put_ids_digest(s), "/run/token_ids", true, err);
	vn_h5_unlock();
	return st;
}

vn_status vn_store_token_text(vn_store *s, char *const *text, int64_t n, vn_error *err)
{
	vn_status st = vn_store_enter(s, err);
	if (st)
		return st;
	hid_t g = H5Gopen2(s->file, "run", H5P_DEFAULT);
	bool  good = g >= 0 && vn_store_lines(g, "token_text", text, n);
	if (g >= 0)
		H5Gclose(g);
	st = vn_store_settle(s, good, "/run/token_text", true, err);
	vn_h5_unlock();
	return st;
}

vn_status vn_store_facts(vn_store *s, const vn_facts *facts, vn_error *err)
{
	vn_status st = vn_store_enter(s, err);
	if (st)
		return st;
	hid_t g = H5Gopen2(s->file, "run", H5P_DEFAULT);
	bool  good = g >= 0;
	for (int i = 0; good && i < facts->n; i++) {
		const char *key = facts->fact[i].key;
		good = (H5Aexists(g, key) <= 0 || H5Adelete(g, key) >= 0) && vn_h5_put_text(g, key, facts->fact[i].value);
	}
	if (g >= 0)
		H5Gclose(g);
	st = vn_store_settle(s, good, "/run", true, err);
	vn_h5_unlock();
	return st;
}

/* ---- /model ------------------------------------------------------------------------ */

hid_t vn_store_put_words(vn_store *s, const vn_model_words *w)
{
	const struct { const char *key, *text; } word[] = {
		{ "family", w->family }, { "config", w->config }, { "provenance", w->provenance }, { "format", w->format }, { "path", w->path },
	};
	hid_t g = H5Gcreate2(s->file, "model", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	bool  good = g >= 0;
	for (size_t i = 0; good && i < sizeof word / sizeof *word; i++)
		good = !word[i].text || vn_h5_put_text(g, word[i].key, word[i].text);
	if (!good && g >= 0)
		H5Gclose(g);
	return good ? g : H5I_INVALID_HID;
}

vn_status vn_store_words(vn_store *s, const vn_model_words *w, vn_error *err)
{
	vn_status st = vn_store_enter(s, err);

	if (st)
		return st;
	hid_t g = vn_store_put_words(s, w);
	if (g >= 0)
		H5Gclose(g);
	st = vn_store_settle(s, g >= 0, "/model", true, err);
	vn_h5_unlock();
	return st;
}
