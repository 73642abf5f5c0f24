package gpusim

import (
	"sync"

	"github.com/warpline-ml/warpline/internal/gpusim/compile"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Source is a module that nobody changes any more: the devices that load it share the code of its kernels, unless it has variables.
type Source struct {
	Module *ptx.Module
	mu     sync.Mutex
	code   map[sourceKey]*warp.Code
}

type sourceKey struct {
	fn      *ptx.Func
	variant compile.Variant
}

// NewSource is of a module that [ptx.Parse] has read.
func NewSource(m *ptx.Module) *Source { return &Source{Module: m, code: map[sourceKey]*warp.Code{}} }

// compiled is the code of a kernel of a module without variables, whose addresses would be those of one device.
func (s *Source) compiled(fn *ptx.Func, v compile.Variant) (*warp.Code, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sourceKey{fn, v}
	if c := s.code[key]; c != nil {
		return c, nil
	}
	c, err := compile.Kernel(flow.NewModule(s.Module, func(v *ptx.Var) error { panic("gpusim: " + v.Name + " has no address") }), fn, v)
	if err == nil {
		s.code[key] = c
	}
	return c, err
}
