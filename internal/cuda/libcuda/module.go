package libcuda

import (
	"strings"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cuda/driver"
	"github.com/warpline-ml/warpline/internal/dl"
)

// Options of the driver's compiler, by their numbers in cuda.h.
const (
	jitInfoLog      = 3
	jitInfoLogSize  = 4
	jitErrorLog     = 5
	jitErrorLogSize = 6
)

// jit is what a compilation points to. The driver writes how much it used of a log over the log's size.
type jit struct {
	image    []byte // with a NUL after it: there is no other sign of its end
	options  [4]int32
	values   jitValues
	info     [8 << 10]byte
	failures [8 << 10]byte
}

// jitValues are the options' values: pointers, and numbers in their place.
type jitValues struct {
	info         unsafe.Pointer
	infoSize     uintptr
	failures     unsafe.Pointer
	failuresSize uintptr
}

var _ [32]byte = [unsafe.Sizeof(jitValues{})]byte{}

func newJIT(image []byte) *jit {
	j := &jit{options: [4]int32{jitInfoLog, jitInfoLogSize, jitErrorLog, jitErrorLogSize}}
	j.image = append(append(make([]byte, 0, len(image)+1), image...), 0)
	j.values = jitValues{
		unsafe.Pointer(&j.info), uintptr(len(j.info)),
		unsafe.Pointer(&j.failures), uintptr(len(j.failures)),
	}
	return j
}

// log is what the compiler said, errors first.
func (j *jit) log() string {
	return strings.TrimSpace(text(j.failures[:]) + "\n" + text(j.info[:]))
}

// loadModule compiles an image.
func loadModule(p dl.Proc, image []byte) (driver.Module, string, driver.Result) {
	j := newJIT(image)
	m, r := get[driver.Module](p, uintptr(unsafe.Pointer(&j.image[0])), uintptr(len(j.options)),
		uintptr(unsafe.Pointer(&j.options)), uintptr(unsafe.Pointer(&j.values)))
	return m, j.log(), r
}
