package libcuda

import (
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cuda/shimtest"
)

// Options, tags and structures have the numbers, sizes and offsets of cuda.h.
func TestNumbers(t *testing.T) {
	var c launchConfig
	var a launchAttribute
	word, grid, block := unsafe.Sizeof(c.grid[0]), unsafe.Offsetof(c.grid), unsafe.Offsetof(c.block)
	numbers := shimtest.Numbers()
	for name, v := range map[string]uintptr{
		"CU_JIT_INFO_LOG_BUFFER": jitInfoLog, "CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES": jitInfoLogSize,
		"CU_JIT_ERROR_LOG_BUFFER": jitErrorLog, "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES": jitErrorLogSize,
		"CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION": attributeCluster, "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION": attributeDependent,
		"CU_LAUNCH_PARAM_BUFFER_POINTER": extraBuffer, "CU_LAUNCH_PARAM_BUFFER_SIZE": extraSize, "CU_LAUNCH_PARAM_END": 0,

		"sizeof CUlaunchConfig": unsafe.Sizeof(c), "CUlaunchConfig.hStream": unsafe.Offsetof(c.stream), "CUlaunchConfig.attrs": unsafe.Offsetof(c.attributes),
		"CUlaunchConfig.gridDimX": grid, "CUlaunchConfig.gridDimY": grid + word, "CUlaunchConfig.gridDimZ": grid + 2*word,
		"CUlaunchConfig.blockDimX": block, "CUlaunchConfig.blockDimY": block + word, "CUlaunchConfig.blockDimZ": block + 2*word,
		"CUlaunchConfig.sharedMemBytes": unsafe.Offsetof(c.shared), "CUlaunchConfig.numAttrs": unsafe.Offsetof(c.numAttributes),
		"sizeof CUlaunchAttribute": unsafe.Sizeof(a), "CUlaunchAttribute.id": unsafe.Offsetof(a.id), "CUlaunchAttribute.value": unsafe.Offsetof(a.value),
		"sizeof CUlaunchAttributeValue": unsafe.Sizeof(a.value), "sizeof CUdeviceptr": unsafe.Sizeof(scratch{}.out[0]), "sizeof CUuuid": unsafe.Sizeof([16]byte{}),

		"CU_MEM_LOCATION_TYPE_DEVICE": locationDevice, "CU_MEM_ALLOCATION_TYPE_PINNED": typePinned,
		"CU_MEMORYTYPE_HOST": memoryHost, "CU_MEMORYTYPE_DEVICE": memoryDevice,
	} {
		if want, ok := numbers[name]; !ok || want != int64(v) {
			t.Errorf("%s is %d, want %d", name, v, want)
		}
	}
}

// What graphs and memory are told has the sizes and offsets of cuda.h, under these names of its fields.
func TestStructures(t *testing.T) {
	names := map[string]string{"func": "function", "gridDimX": "grid", "blockDimX": "block", "sharedMemBytes": "shared", "kern": "kernel",
		"ctx": "kernelsContext", "WidthInBytes": "width", "Height": "height", "Depth": "depth", "errorNode": "node", "errorFromNode": "from",
		"XInBytes": "x", "Y": "y", "Z": "z", "LOD": "lod", "MemoryType": "memoryType", "Host": "host", "Device": "device", "Array": "array",
		"Pitch": "pitch", "reserved0": "src.reserved", "reserved1": "dst.reserved",
		"type": "kind", "requestedHandleTypes": "handleTypes", "win32HandleMetaData": "win32", "allocFlags": "flags",
		"gridDimY": "grid+4", "gridDimZ": "grid+8", "blockDimY": "block+4", "blockDimZ": "block+8"}
	types := map[string]reflect.Type{"CUDA_KERNEL_NODE_PARAMS": reflect.TypeFor[kernelNode](), "CUDA_MEMCPY3D": reflect.TypeFor[copyNode](),
		"CUDA_MEMSET_NODE_PARAMS": reflect.TypeFor[fillNode](), "CUgraphExecUpdateResultInfo": reflect.TypeFor[updateInfo](),
		"CUmemLocation": reflect.TypeFor[location](), "CUmemAllocationProp": reflect.TypeFor[allocationProp](), "CUmemAccessDesc": reflect.TypeFor[accessDesc]()}
	seen := 0
	for name, want := range shimtest.Numbers() {
		of, field, _ := strings.Cut(strings.TrimPrefix(name, "sizeof "), ".")
		typ := types[of]
		if typ == nil {
			continue
		}
		seen++
		if field == "" {
			if int64(typ.Size()) != want {
				t.Errorf("%s is %d, want %d", name, typ.Size(), want)
			}
			continue
		}
		if got := offset(t, typ, field, names); got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
	if seen < 57 {
		t.Errorf("%d sizes and offsets", seen)
	}
}

// offset is that of a field of cuda.h in a structure of Go, in a part of it if the name begins with the part's.
func offset(t *testing.T, typ reflect.Type, field string, names map[string]string) int64 {
	t.Helper()
	path := field
	if n, ok := names[field]; ok {
		path = n
	} else if len(field) > 3 && names[field[3:]] != "" {
		path = field[:3] + "." + names[field[3:]]
	}
	path, plus, _ := strings.Cut(path, "+")
	at, _ := strconv.Atoi(plus) // 0 without one
	for name := range strings.SplitSeq(path, ".") {
		f, ok := typ.FieldByName(name)
		if !ok {
			t.Fatalf("%s has no %s, for %s", typ, name, field)
		}
		at += int(f.Offset)
		typ = f.Type
	}
	return int64(at)
}
