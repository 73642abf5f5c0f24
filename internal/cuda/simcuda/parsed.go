package simcuda

import (
	"crypto/sha256"
	"runtime"
	"sync"
	"weak"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// parsed are the modules in use, by the hashes of their texts: GPUs load the same kernels, of which what is read and compiled is as
// much again for each. Nobody changes a module.
var parsed = struct {
	sync.Mutex
	modules map[[sha256.Size]byte]weak.Pointer[gpusim.Source]
}{modules: map[[sha256.Size]byte]weak.Pointer[gpusim.Source]{}}

// parse is [ptx.Parse] with the lines of the text's debug information, once for all who have the same text.
func parse(text string) (*gpusim.Source, error) {
	key := sha256.Sum256([]byte(text))
	parsed.Lock()
	known := parsed.modules[key].Value()
	parsed.Unlock()
	if known != nil {
		return known, nil
	}
	m, err := ptx.Parse(text)
	if err == nil {
		err = ptx.AddLines(m, text)
	}
	s := gpusim.NewSource(m)
	if err != nil {
		return s, err
	}
	parsed.Lock()
	defer parsed.Unlock()
	parsed.modules[key] = weak.Make(s)
	runtime.AddCleanup(s, forget, key)
	return s, nil
}

// forget ends what is known of a text, unless it was read again meanwhile.
func forget(key [sha256.Size]byte) {
	parsed.Lock()
	defer parsed.Unlock()
	if parsed.modules[key].Value() == nil {
		delete(parsed.modules, key)
	}
}
