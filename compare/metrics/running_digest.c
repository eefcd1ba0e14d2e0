/* running_digest.c: see running_digest.h. */
#include "compare/metrics/running_digest.h"

void vn_running_digest_begin(vn_running_digest *d, const vn_job *job)
{
	for (int side = 0; side < 2; side++)
		if (job->digest[side]) {
			d->side[side].lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
			d->side[side].digester = vn_digester_create();
		}
}

bool vn_running_digest_wanted(const vn_running_digest *d)
{
	return d->side[0].digester || d->side[1].digester;
}

static void add_bytes(vn_running_digest *d, const vn_pair *p, int side, int64_t from, int64_t to)
{
	to = to < p->n ? to : p->n;
	vn_digester_add(d->side[side].digester, vn_pair_at(p, side, from),
	                (size_t)(to - from) * vn_dtype_size(p->dtype[side]));
}

/* Adds all measured units that are next in order; the side is locked. */
static void add_units(vn_running_digest *d, const vn_pair *p, int side)
{
	int64_t *next = &d->side[side].next, from, to;
	for (; *next < d->units && d->measured[*next]; ++*next) {
		add_bytes(d, p, side, *next * d->unit, (*next + 1) * d->unit);
		if (vn_stretch_over(d->stretches, *next, &from, &to))
			vn_pair_give_back(p, from * d->unit, to * d->unit < p->n ? to * d->unit : p->n);
	}
}

void vn_running_digest_unit(vn_running_digest *d, const vn_pair *p, int64_t unit)
{
	if (!d->measured)
		return;
	d->measured[unit] = true;
	for (int side = 0; side < 2; side++)
		if (d->side[side].digester && pthread_mutex_trylock(&d->side[side].lock) == 0) {
			add_units(d, p, side);
			pthread_mutex_unlock(&d->side[side].lock);
		}
}

void vn_running_digest_end(vn_running_digest *d, const vn_pair *p, vn_job *job)
{
	for (int side = 0; side < 2; side++) {
		if (!d->side[side].digester)
			continue;
		pthread_mutex_lock(&d->side[side].lock); /* another thread may hold it */
		if (d->measured)
			add_units(d, p, side);
		else
			add_bytes(d, p, side, 0, p->n);
		pthread_mutex_unlock(&d->side[side].lock);
		job->found[side] = vn_digester_finish(d->side[side].digester);
		d->side[side].digester = NULL;
	}
}

void vn_running_digest_drop(vn_running_digest *d)
{
	for (int side = 0; side < 2; side++)
		if (d->side[side].digester)
			vn_digester_finish(d->side[side].digester);
}
