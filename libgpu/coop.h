/* coop.h: declares VK_KHR_cooperative_matrix, which the headers of Vulkan 1.3.239 lack, and finds
 * the size that a device supports. Inside libgpu only.
 *
 * Cooperative matrices are small matrices that the lanes of a subgroup hold and multiply together;
 * shaders/coop.glsl uses them. Shaders are compiled for each size below. A device needs one of
 * these sizes, with float16 inputs and float32 sums, for subgroups of that many lanes, and
 * workgroups of VN_COOP_LANES lanes.
 */
#pragma once

#include "libgpu/vulkan.h"

#define VN_COOP_EXTENSION "VK_KHR_cooperative_matrix"
/* older validation layers do not know the extension */
#define VN_COOP_LAYER VK_MAKE_API_VERSION(0, 1, 3, 255)
#define VN_COOP_LANES 256

typedef enum vn_coop {
	VN_COOP_NONE,
	VN_COOP_16, /* 16x16x16, subgroups of 32 */
	VN_COOP_8,  /* 8x8x8, subgroups of 8: Mesa's lavapipe */
	VN_N_COOPS
} vn_coop;

/* Rows and columns of a matrix, and lanes of its subgroup; 0 for VN_COOP_NONE. */
uint32_t vn_coop_side(vn_coop c);
uint32_t vn_coop_subgroup(vn_coop c);

/* Sets *found to the first of the sizes that a suitable device supports. */
vn_status vn_coop_of(VkInstance instance, VkPhysicalDevice p, vn_coop *found, vn_error *err);

/* VkPhysicalDeviceCooperativeMatrixFeaturesKHR */
typedef struct vn_coop_features {
	VkStructureType sType;
	void           *pNext;
	VkBool32        cooperativeMatrix, cooperativeMatrixRobustBufferAccess;
} vn_coop_features;

#define VN_COOP_FEATURES ((VkStructureType)1000506000) /* its sType */
