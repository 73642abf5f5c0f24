// A management library for tests: cards of a scenario that the test chooses. It is compiled against declarations of its
// own, transcribed from nvml.h; the tests compare the layouts that it reports with Go's.
#include <stddef.h>
#include <string.h>

typedef int nvmlReturn_t;
typedef struct device *nvmlDevice_t;
typedef unsigned long long ull;

typedef struct { ull total, free, used; } nvmlMemory_t;
typedef struct { unsigned int version; ull total, reserved, free, used; } nvmlMemory_v2_t;
typedef struct { unsigned int gpu, memory; } nvmlUtilization_t;
typedef struct { unsigned int pid; ull usedGpuMemory; } nvmlProcessInfo_v1_t;
typedef struct { unsigned int pid; ull usedGpuMemory; unsigned int gpuInstanceId, computeInstanceId; } nvmlProcessInfo_t;
typedef struct { unsigned int pid; ull timeStamp; unsigned int smUtil, memUtil, encUtil, decUtil; } nvmlProcessUtilizationSample_t;
typedef struct {
	char busIdLegacy[16];
	unsigned int domain, bus, device, pciDeviceId, pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

const unsigned long layout[] = {
	sizeof(nvmlMemory_t), offsetof(nvmlMemory_t, free), offsetof(nvmlMemory_t, used),
	sizeof(nvmlMemory_v2_t), offsetof(nvmlMemory_v2_t, total), offsetof(nvmlMemory_v2_t, reserved), offsetof(nvmlMemory_v2_t, free), offsetof(nvmlMemory_v2_t, used),
	sizeof(nvmlUtilization_t), offsetof(nvmlUtilization_t, memory),
	sizeof(nvmlProcessInfo_v1_t), offsetof(nvmlProcessInfo_v1_t, usedGpuMemory),
	sizeof(nvmlProcessInfo_t), offsetof(nvmlProcessInfo_t, usedGpuMemory), offsetof(nvmlProcessInfo_t, gpuInstanceId), offsetof(nvmlProcessInfo_t, computeInstanceId),
	sizeof(nvmlProcessUtilizationSample_t), offsetof(nvmlProcessUtilizationSample_t, timeStamp), offsetof(nvmlProcessUtilizationSample_t, smUtil), offsetof(nvmlProcessUtilizationSample_t, decUtil),
	sizeof(nvmlPciInfo_t), offsetof(nvmlPciInfo_t, domain), offsetof(nvmlPciInfo_t, busId),
};

enum { PLAIN, DIVIDED, GRAPHICS, LOST, FORBIDDEN, HOSTILE, CROWDED };
enum { SUCCESS = 0, INVALID = 2, UNSUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, TOO_SMALL = 7, IS_LOST = 15 };

static int scenario, start, calls_since_init = -1;

int fake_set(int s, int init) { scenario = s; start = init; return 0; }

struct device { int instance; };
static struct device cards[2], slices[7];
static const ull MiB = 1 << 20;

static nvmlReturn_t state(nvmlDevice_t d) {
	if (calls_since_init < 0)
		return 1;
	if (d != &cards[0] && d != &cards[1] && !(d >= slices && d < slices + 7))
		return INVALID;
	return scenario == LOST ? IS_LOST : SUCCESS;
}
#define CHECK(d) do { nvmlReturn_t r = state(d); if (r) return r; } while (0)
#define NOT_ON(s) do { if (scenario == s) return UNSUPPORTED; } while (0)

static nvmlReturn_t put(char *to, unsigned int room, const char *text) {
	if (scenario == HOSTILE) {
		memset(to, 0xff, room);
		return SUCCESS;
	}
	if (strlen(text) >= room)
		return TOO_SMALL;
	strcpy(to, text);
	return SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) { calls_since_init = 0; return start; }
nvmlReturn_t nvmlShutdown(void) { calls_since_init = -1; return SUCCESS; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *v, unsigned int n) { return put(v, n, "535.54.03"); }
nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 12020; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *n) { *n = scenario == HOSTILE ? 0xffffffffu : 2; return SUCCESS; }

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int i, nvmlDevice_t *d) {
	if (i > 1)
		return INVALID;
	if (scenario == LOST && i == 1)
		return IS_LOST;
	*d = &cards[i];
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *s, unsigned int n) {
	CHECK(d);
	if (d >= slices && d < slices + 7)
		return put(s, n, "NVIDIA A100-SXM4-80GB MIG 1g.20gb");
	return put(s, n, scenario == GRAPHICS ? "NVIDIA GeForce RTX 3090" : "NVIDIA A100-SXM4-80GB");
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *s, unsigned int n) {
	CHECK(d);
	return put(s, n, d == cards ? "GPU-513536b6-7d19-9063-b049-1e69664bb298" : "GPU-other");
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p) {
	CHECK(d);
	return put(p->busId, sizeof p->busId, d == cards ? "00000000:01:00.0" : "00000000:C1:00.0");
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *m) {
	CHECK(d);
	if (m->version != (sizeof *m | 2u << 24))
		return 25;
	if (d >= slices && d < slices + 7)
		*m = (nvmlMemory_v2_t){m->version, 19968 * MiB, 0, 19955 * MiB, 13 * MiB};
	else
		*m = (nvmlMemory_v2_t){m->version, 81920 * MiB, 869 * MiB, 60000 * MiB, 21051 * MiB};
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) {
	CHECK(d);
	*m = (nvmlMemory_t){81920 * MiB, 60000 * MiB, 21920 * MiB};
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *u) {
	CHECK(d);
	NOT_ON(DIVIDED);
	*u = (nvmlUtilization_t){93, 41};
	return SUCCESS;
}

#define NUMBER(name, value) nvmlReturn_t name(nvmlDevice_t d, unsigned int *v) { CHECK(d); *v = value; return SUCCESS; }
#define OF(name, value) nvmlReturn_t name(nvmlDevice_t d, int which, unsigned int *v) { CHECK(d); *v = value; return SUCCESS; }
NUMBER(nvmlDeviceGetPowerUsage, 245300)
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned int *v) {
	CHECK(d);
	NOT_ON(GRAPHICS);
	if (scenario == FORBIDDEN)
		return NO_PERMISSION;
	*v = 400000;
	return SUCCESS;
}
OF(nvmlDeviceGetTemperature, which == 0 ? 47 : 0)
OF(nvmlDeviceGetTemperatureThreshold, which == 1 ? 89 : 0)
OF(nvmlDeviceGetClockInfo, which == 1 ? 1275 : which == 2 ? 1593 : 0)
OF(nvmlDeviceGetMaxClockInfo, which == 1 ? 1410 : which == 2 ? 1593 : 0)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 4)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 4)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 8)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)
OF(nvmlDeviceGetPcieThroughput, which == 0 ? 4000 : 0)

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, int kind, int counter, ull *v) {
	CHECK(d);
	NOT_ON(GRAPHICS);
	*v = counter != 0 ? 99 : kind == 0 ? 5000000000ull : 1;
	return SUCCESS;
}
static ull mask(void) { return scenario == HOSTILE ? 0x8000000000000004ull : scenario == CROWDED ? 1 : 0x4 | 0x40; }
nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, ull *v) { CHECK(d); *v = mask(); return SUCCESS; }
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, ull *v) { CHECK(d); *v = mask(); return SUCCESS; }

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t d, unsigned int *now, unsigned int *later) {
	CHECK(d);
	NOT_ON(GRAPHICS);
	*now = *later = 1;
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned int *now, unsigned int *later) {
	CHECK(d);
	NOT_ON(GRAPHICS);
	*now = *later = scenario == DIVIDED;
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned int *n) { CHECK(d); *n = scenario == HOSTILE ? -1 : 7; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned int i, nvmlDevice_t *out) {
	CHECK(d);
	if (i >= 4)
		return NOT_FOUND;
	*out = &slices[i];
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned int *v) { CHECK(d); *v = 3 + (d - slices); return SUCCESS; }
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned int *v) { CHECK(d); *v = 0; return SUCCESS; }

// Of a crowd there are more at each call.
static unsigned int crowd = 100;

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_t *list) {
	CHECK(d);
	unsigned int room = *n;
	if (scenario == HOSTILE) {
		*n = room + 1000;
		return SUCCESS;
	}
	if (scenario == CROWDED) {
		*n = crowd++;
		if (room < *n)
			return TOO_SMALL;
		for (unsigned int i = 0; i < *n; i++)
			list[i] = (nvmlProcessInfo_t){1000 + i, i * MiB, -1, -1};
		return SUCCESS;
	}
	*n = 1;
	if (room < 1)
		return TOO_SMALL;
	int slice = d >= slices && d < slices + 7;
	list[0] = (nvmlProcessInfo_t){4242, scenario == GRAPHICS ? ~0ull : 20000 * MiB, slice ? 3 + (d - slices) : -1, slice ? 0 : -1};
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_v1_t *list) {
	CHECK(d);
	*n = 2;
	list[0] = (nvmlProcessInfo_v1_t){4242, 20000 * MiB};
	list[1] = (nvmlProcessInfo_v1_t){4243, 1 * MiB};
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t d, unsigned int *n, nvmlProcessInfo_t *list) {
	CHECK(d);
	*n = scenario == GRAPHICS ? 2 : 0;
	if (scenario == GRAPHICS) {
		list[0] = (nvmlProcessInfo_t){900, 300 * MiB, -1, -1};
		list[1] = (nvmlProcessInfo_t){4242, ~0ull, -1, -1};
	}
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t d, nvmlProcessUtilizationSample_t *list, unsigned int *n, ull since) {
	CHECK(d);
	NOT_ON(DIVIDED);
	if (scenario == FORBIDDEN)
		return NO_PERMISSION;
	if (*n < 3 || since != 0) {
		*n = 3;
		return TOO_SMALL;
	}
	*n = 3;
	list[0] = (nvmlProcessUtilizationSample_t){4242, 20, 91, 40, 0, 0};
	list[1] = (nvmlProcessUtilizationSample_t){4242, 10, 1, 0, 0, 0};
	list[2] = (nvmlProcessUtilizationSample_t){77, 10, 4000000000u, 0, 0, 0};
	return SUCCESS;
}

// What Health asks.
typedef struct { unsigned char clusterUuid[16]; nvmlReturn_t status; unsigned int cliqueId; unsigned char state; } nvmlGpuFabricInfo_t;
typedef struct { ull referenceTime, violationTime; } nvmlViolationTime_t;
typedef struct { unsigned int year; unsigned short month, day, hour, min, sec; unsigned char status; } nvmlGridLicenseExpiry_t;
typedef struct { int featureCode; unsigned int featureState; char licenseInfo[128], productName[128]; unsigned int featureEnabled; nvmlGridLicenseExpiry_t licenseExpiry; } nvmlGridLicensableFeature_t;
typedef struct { int isGridLicenseSupported; unsigned int licensableFeaturesCount; nvmlGridLicensableFeature_t gridLicensableFeatures[3]; } nvmlGridLicensableFeatures_t;
const unsigned long health_layout[] = {
	sizeof(nvmlGpuFabricInfo_t), offsetof(nvmlGpuFabricInfo_t, status), offsetof(nvmlGpuFabricInfo_t, cliqueId), offsetof(nvmlGpuFabricInfo_t, state),
	sizeof(nvmlViolationTime_t), offsetof(nvmlViolationTime_t, violationTime),
	sizeof(nvmlGridLicensableFeatures_t), offsetof(nvmlGridLicensableFeatures_t, gridLicensableFeatures[1].featureState),
};
nvmlReturn_t nvmlDeviceGetGridLicensableFeatures_v4(nvmlDevice_t d, nvmlGridLicensableFeatures_t *f) {
	CHECK(d);
	f->isGridLicenseSupported = 1;
	f->licensableFeaturesCount = 2;
	f->gridLicensableFeatures[1].featureState = 1;
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t d, unsigned int *mw) { CHECK(d); *mw = 500000; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t d, unsigned int *mode) { CHECK(d); *mode = 3; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t d, unsigned int *mode) { CHECK(d); *mode = 1; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetDisplayActive(nvmlDevice_t d, unsigned int *on) { CHECK(d); *on = 0; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t d, int cause, unsigned int *n, ull *pages) {
	CHECK(d);
	if (*n != 0 || pages) return 2; // the caller asks for the number alone
	*n = cause == 1 ? 4 : 0;
	return *n ? 7 : SUCCESS;
}
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t d, unsigned int *pending) { CHECK(d); *pending = 1; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t d, unsigned int *c, unsigned int *u, unsigned int *pending, unsigned int *failed) {
	CHECK(d);
	*c = 9; *u = 5; *pending = 1; *failed = 0;
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetVirtualizationMode(nvmlDevice_t d, unsigned int *mode) { CHECK(d); *mode = 2; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t d, nvmlGpuFabricInfo_t *f) { CHECK(d); f->state = 2; f->status = 27; f->cliqueId = 77; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t d, unsigned int link, unsigned int *up) { CHECK(d); if (link >= 3) return 2; *up = link != 1; return SUCCESS; }
nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t d, int policy, nvmlViolationTime_t *v) {
	CHECK(d);
	v->referenceTime = 1;
	v->violationTime = policy == 0 ? 2500000000ull : 0;
	return SUCCESS;
}
nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int index, int *status) { CHECK(a); CHECK(b); *status = a == b ? 0 : 4; return SUCCESS; }
