package ptx

import (
	"fmt"
	"path"
	"slices"
)

// Same says where two texts differ as modules, nil if they do not: in version, target, variables, functions, instructions
// or, of each instruction, the source line. Names of registers, labels and parameters of kernels may differ, and so may
// what no instruction needs. Tables of [Lines] behind the texts count.
func Same(a, b string) error {
	left, err := account(a)
	if err != nil {
		return err
	}
	right, err := account(b)
	if err != nil {
		return err
	}
	for i := range min(len(left), len(right)) {
		if left[i] != right[i] {
			return fmt.Errorf("modules differ: %s; %s", left[i], right[i])
		}
	}
	if len(left) != len(right) {
		return fmt.Errorf("modules differ: of %d and %d lines", len(left), len(right))
	}
	return nil
}

// account tells all that a module means in lines that two modules of the same meaning share.
func account(text string) (lines []string, err error) {
	m, err := Parse(text)
	if err != nil {
		return nil, err
	}
	if err := AddLines(m, text); err != nil {
		return nil, err
	}
	lines = append(lines, fmt.Sprint(m.Version, m.Target, m.Options, m.AddressSize))
	for _, it := range m.Items {
		switch it := it.(type) {
		case *File, *Section:
		case *Func:
			lines = append(lines, it.account(m)...)
		default:
			w := &printer{}
			w.item(it)
			lines = append(lines, w.String())
		}
	}
	return lines, nil
}

// account names registers by type and the order in which they occur, or in which their values are written, labels by the number of the instruction behind them,
// and parameters by their place. It leaves the function with these names.
func (f *Func) account(m *Module) (lines []string) {
	if f.Entry {
		f.nameParams("$")
	}
	f.plainJumps()
	values := f.values()
	regs, labels, n := map[int]string{}, map[int]string{}, 0
	for s := range f.stmts() {
		switch s := s.(type) {
		case *LabelDef:
			labels[s.ID] = fmt.Sprint("@", n)
		case *Inst:
			n++
		}
	}
	for o := range f.operands() {
		switch o := o.(type) {
		case *Reg:
			r := f.Regs[o.ID]
			if v, ok := values.number[o]; ok {
				o.Name = fmt.Sprintf("%%value.%s.%d.%d", r.Type, r.Vec, v)
				break
			}
			if regs[o.ID] == "" {
				regs[o.ID] = fmt.Sprintf("%%%s.%d.%d", r.Type, r.Vec, len(regs))
			}
			o.Name = regs[o.ID]
		case *Label:
			o.Name = labels[o.ID]
		}
	}
	for i, v := range slices.Concat(f.Ret, f.Params) {
		if i < len(f.Formals) && f.Formals[i] >= 0 { // a register
			v.Name = regs[f.Formals[i]]
		}
	}
	head := *f
	head.Body = nil
	w := &printer{}
	w.function(&head)
	lines = append(lines, w.String())
	var at Place
	for s := range f.stmts() {
		switch s := s.(type) {
		case *Loc:
			if p, ok := m.place(s); ok {
				at = p
			}
		case *Inst:
			lines = append(lines, fmt.Sprintf("%s of %s, %s:%d", s, f.Name, path.Clean(m.FileName(at.File)), at.Line))
		case *LabelDef, *RegDecl, *File, *Block:
		default:
			w := &printer{}
			w.stmt(s)
			lines = append(lines, w.String())
		}
	}
	return lines
}
