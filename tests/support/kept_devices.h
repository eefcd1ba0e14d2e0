/* kept_devices.h: engines of a suite take over the devices of earlier ones, with their pipelines.
 *
 * A suite opens dozens of engines. Opening a device for each and building its pipelines took 40 %
 * of the time on lavapipe. So a closed device is kept for the next engine that wants one opened the
 * same way, unless a failure was reported of it (vn_device_fail), the validation layer complained,
 * some of its memory was not freed, or eight are kept.
 */
#pragma once

#include "libgpu/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a device was opened: the arguments of vn_device_open, VERNIER_DEVICE, and the variables for
 * tests of device.h. */
typedef struct device_way {
	int  index;
	char name[200];
	bool float16, validate, hide_memory, no_coop, old_layer;
} device_way;

static struct kept_device {
	device_way way;
	vn_device  device;
	VkDevice   used; /* by an engine, which has a copy of `device`; NULL: by none */
} kept_device_[8];
static bool keep_none_;

static inline device_way way_of(int index, bool float16, bool validate)
{
	const char *name = getenv("VERNIER_DEVICE");
	device_way  way = { .index = index,
		                .float16 = float16,
		                .validate = validate,
		                .hide_memory = vn_device_hide_memory,
		                .no_coop = vn_device_no_coop,
		                .old_layer = vn_device_old_layer };

	snprintf(way.name, sizeof way.name, "%s", name ? name : "");
	return way;
}

static inline bool same_way(const device_way *a, const device_way *b)
{
	return a->index == b->index && a->float16 == b->float16 && a->validate == b->validate &&
	       a->hide_memory == b->hide_memory && a->no_coop == b->no_coop && a->old_layer == b->old_layer &&
	       strcmp(a->name, b->name) == 0;
}

static inline vn_status open_kept(vn_device *d, int index, bool float16, bool validate, vn_error *err)
{
	const device_way    way = way_of(index, float16, validate);
	struct kept_device *room = NULL;
	vn_status           st;

	for (size_t i = 0; i < sizeof kept_device_ / sizeof *kept_device_ && !keep_none_; i++) {
		struct kept_device *k = &kept_device_[i];
		if (k->device.device && !k->used && same_way(&k->way, &way)) {
			k->used = k->device.device;
			*d = k->device;
			return VN_OK;
		}
		room = !k->device.device ? k : room;
	}
	if (!(st = vn_device_open(d, index, float16, validate, err)) && room)
		*room = (struct kept_device) { way, *d, d->device };
	return st;
}

static inline void close_kept(vn_device *d)
{
	const bool good = d->device && !d->trouble->complaints && !d->trouble->failed && !d->allocated;

	for (size_t i = 0; i < sizeof kept_device_ / sizeof *kept_device_; i++)
		if (d->device && kept_device_[i].used == d->device) {
			kept_device_[i] = (struct kept_device) { .way = kept_device_[i].way };
			if (good) {
				kept_device_[i].device = *d;
				return;
			}
		}
	vn_device_close(d);
}

static inline void close_kept_devices(void)
{
	for (size_t i = 0; i < sizeof kept_device_ / sizeof *kept_device_; i++) {
		if (kept_device_[i].device.device && !kept_device_[i].used)
			vn_device_close(&kept_device_[i].device);
		kept_device_[i] = (struct kept_device) { 0 };
	}
}

/* Are the devices of engines from now on kept? They are, unless a suite says no. */
static inline void keep_devices(bool keep)
{
	keep_none_ = !keep;
	close_kept_devices();
}

static inline void use_kept_devices(void)
{
	vn_gpu_open_device = open_kept;
	vn_gpu_close_device = close_kept;
}
