package libcuda

import (
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
	} {
		if want, ok := numbers[name]; !ok || want != int64(v) {
			t.Errorf("%s is %d, want %d", name, v, want)
		}
	}
}
