// A tool that takes NVTX's ranges, for tests: it attaches as Nsight Systems does, by the structures of nvtxTypes.h, and
// writes what it is told into a text.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifndef WITHOUT_InitializeInjectionNvtx2
typedef void (*function)(void);
typedef function **functions;

struct callbacks {
	size_t struct_size;
	int (*get_module_function_table)(int module, functions *table, unsigned *size);
};

struct version_info {
	size_t struct_size;
	uint32_t version, reserved0;
	void (*set_injection_nvtx_version)(uint32_t version);
};

enum { CORE = 1, CORE2 = 5, SYNC = 6 };
enum { MARK_A = 2, RANGE_START_A = 5, RANGE_END = 7, CORE_SIZE = 16 };

static char text[1 << 16];
static size_t used;
static uint64_t next = UINT64_C(0x1234567800000000);
int tool_refuses;

static void mark(const char *name) { used += snprintf(text + used, sizeof text - used, "mark %s\n", name); }

static uint64_t start(const char *name) {
	used += snprintf(text + used, sizeof text - used, "start %s\n", name);
	return ++next;
}

static void end(uint64_t id) { used += snprintf(text + used, sizeof text - used, "end %llx\n", (unsigned long long)id); }

const char *tool_text(void) { return text; }
int tool_used(void) { return (int)used; }
void tool_set_refuses(int on) { tool_refuses = on; }

// fill takes one function of a table, and says whether the table is as NVTX's is.
static int fill(const struct callbacks *c, int module, unsigned id, function f) {
	functions table = NULL;
	unsigned size = 0;
	if (!c->get_module_function_table(module, NULL, &size) || size <= id || !c->get_module_function_table(module, &table, &size))
		return 0;
	if (table[0])
		return 0;
	for (unsigned i = 1; i < CORE_SIZE; i++)
		if (!table[i])
			return 0;
	*table[id] = f;
	return 1;
}

int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t)) {
	const struct version_info *v = get_export_table(3);
	const struct callbacks *c = get_export_table(1);
	if (tool_refuses || !v || v->struct_size < sizeof *v || v->version < 2 || !c || c->struct_size < sizeof *c)
		return 0;
	v->set_injection_nvtx_version(3);
	if (get_export_table(2) || get_export_table(77) || c->get_module_function_table(0, NULL, NULL) || c->get_module_function_table(7, NULL, NULL))
		return 0;
	return fill(c, CORE, MARK_A, (function)mark) && fill(c, CORE, RANGE_START_A, (function)start) && fill(c, CORE, RANGE_END, (function)end) &&
		fill(c, CORE2, 1, (function)mark) && fill(c, SYNC, 1, (function)mark);
}
#endif
