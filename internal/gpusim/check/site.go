package check

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// Site is an instruction as findings name it.
type Site struct {
	Inst   *ptx.Inst
	Loc    *ptx.Loc
	Module *ptx.Module
	Id     uint32 // in the kernel's list
}

// Source is "file:line" by .loc, empty without.
func (s *Site) Source() string {
	if s.Loc == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d", s.Module.FileName(s.Loc.File), s.Loc.Line)
}

// At names the instruction; zero for none.
func (s *Site) At() Place {
	if s == nil {
		return Place{}
	}
	return Place{s.Inst.Pos.Line, s.Source(), s.Inst.Name()}
}
