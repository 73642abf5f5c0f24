package simt

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// Unsupported is the error of Load for what is not simulated.
type Unsupported struct {
	Pos  ptx.Pos
	Inst string
	Why  string
}

// Error names line and instruction.
func (u *Unsupported) Error() string {
	return fmt.Sprintf("gpusim: PTX line %d: %s is not supported: %s", u.Pos.Line, u.Inst, u.Why)
}

// NotSupported is the error of an instruction.
func NotSupported(in *ptx.Inst, format string, args ...any) error {
	return &Unsupported{in.Pos, in.Name(), fmt.Sprintf(format, args...)}
}
