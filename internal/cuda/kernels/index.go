package kernels

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// Param is where a kernel's parameter lies in its parameter buffer: the offset and the size, in bytes. Thousands of them make
// a good part of the index.
type Param [2]int

// Offset is where the parameter begins.
func (p Param) Offset() int { return p[0] }

// Size is how long it is.
func (p Param) Size() int { return p[1] }

// Kernel is what is known of a kernel before a driver has seen it.
type Kernel struct {
	Name         string
	Module       *Module        `json:"-"`
	Params       []Param        `json:",omitempty"`
	Shared       int            `json:",omitempty"` // bytes of static shared memory
	MaxThreads   int            `json:",omitempty"` // of a block, by __launch_bounds__; 0 without
	Registers    int            `json:",omitempty"` // of a thread, where ptxas was asked; else 0
	Instructions map[string]int `json:",omitempty"` // of the PTX, by class; not in the binary
}

// Size is the number of bytes of the parameter buffer.
func (k *Kernel) Size() int {
	if len(k.Params) == 0 {
		return 0
	}
	last := k.Params[len(k.Params)-1]
	return last.Offset() + last.Size()
}

// Module is an entry of index.json.
type Module struct {
	Name    string
	Target  string
	Source  string // the file in src, with the macros
	Hash    string // over source, headers, flags and compiler, as gen computes it
	Later   bool   // no card before its target needs it
	Kernels []*Kernel

	library *Library
	like    *Module // whose text it has, but for the target's name; nil if it has its own
}

// Path is the name of the module's file with an extension: "ptx/sm_80/copy_4.ptx", slashes on any system.
func (m *Module) Path(ext string) string { return "ptx/" + m.Target + "/" + m.Name + ext }

// PTX is the module's text.
func (m *Module) PTX() ([]byte, error) {
	if m.like != nil {
		text, err := m.like.PTX()
		return Retarget(text), err
	}
	return m.Text(m.library.files)
}

// Lines is the table of the module's source lines, in comments that belong behind its text (package ptx has the form).
func (m *Module) Lines() ([]byte, error) {
	if m.like != nil {
		return m.like.Lines()
	}
	return fs.ReadFile(m.library.files, m.Path(".lines"))
}

// Index is index.json.
type Index struct {
	Compiler string
	Flags    map[string][]string // by target
	Modules  []*Module           // by target, then name
}

// Bare is the index without what only a reader wants: kernels.json, which is in the binary.
func (ix *Index) Bare() *Index {
	bare := &Index{Compiler: ix.Compiler, Flags: ix.Flags}
	for _, m := range ix.Modules {
		c := *m
		c.Kernels, c.Source = nil, ""
		for _, k := range m.Kernels {
			short := *k
			short.Instructions = nil
			c.Kernels = append(c.Kernels, &short)
		}
		bare.Modules = append(bare.Modules, &c)
	}
	return bare
}

// ParseIndex reads index.json.
func ParseIndex(text []byte) (*Index, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	ix := &Index{}
	return ix, d.Decode(ix)
}

// Salvage reads the modules of a text that is no index as a whole, line by line, each of which [Index.String] makes
// whole; a module may occur twice.
func Salvage(text string) *Index {
	ix := &Index{}
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(strings.TrimRight(l, "\n"), ",")
		switch {
		case strings.HasPrefix(l, `{"Target"`):
			m := &Module{}
			if json.Unmarshal([]byte(l+"]}"), m) == nil {
				ix.Modules = append(ix.Modules, m)
			}
		case strings.HasPrefix(l, "\t{") && len(ix.Modules) > 0:
			k := &Kernel{}
			if json.Unmarshal([]byte(l), k) == nil {
				last := ix.Modules[len(ix.Modules)-1]
				last.Kernels = append(last.Kernels, k)
			}
		}
	}
	return ix
}

// String is the text of index.json. It has a line for each module and each kernel, so that a change of one is a line of a
// diff, and two of different modules merge.
func (ix *Index) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "{\"Compiler\": %q,\n\"Flags\": {", ix.Compiler)
	for i, t := range slices.Sorted(maps.Keys(ix.Flags)) {
		fmt.Fprintf(&b, "%s\n\t%q: %s", separator(i), t, line(ix.Flags[t]))
	}
	b.WriteString("},\n\"Modules\": [")
	for i, m := range ix.Modules {
		fmt.Fprintf(&b, "%s\n{\"Target\": %q, \"Name\": %q, \"Source\": %q, \"Hash\": %q,%s \"Kernels\": [", separator(i), m.Target, m.Name, m.Source, m.Hash, later[m.Later])
		for j, k := range m.Kernels {
			fmt.Fprintf(&b, "%s\n\t%s", separator(j), line(k))
		}
		b.WriteString("\n]}")
	}
	b.WriteString("\n]}\n")
	return b.String()
}

var later = map[bool]string{true: ` "Later": true,`}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

func line(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and integers only
	}
	return b
}
