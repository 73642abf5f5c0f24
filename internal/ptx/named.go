package ptx

import (
	"strconv"
	"strings"
)

// Named are the kernels of a name: the one that has it in the file, or those that have it in C++, mangled.
func (m *Module) Named(name string) (list []*Func) {
	prefix := "_Z" + strconv.Itoa(len(name)) + name
	for f := range m.Funcs() {
		switch {
		case !f.Entry || f.Body == nil:
		case f.Name == name:
			return []*Func{f}
		case strings.HasPrefix(f.Name, prefix):
			list = append(list, f)
		}
	}
	return list
}
