package simrun

import (
	"context"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
	"github.com/warpline-ml/warpline/internal/render"
)

// Listing is what a PTX file contains.
type Listing struct {
	File      string   `json:"file"`
	Version   string   `json:"version"` // of PTX
	Target    string   `json:"target"`
	Functions int      `json:"functions"` // with a body that are no kernels
	Dynamic   []string `json:"dynamic"`   // shared arrays without a size
	Problem   string   `json:"problem"`   // why it cannot run; empty if it can
	Kernels   []Kernel `json:"kernels"`
}

// Kernel is one kernel of a Listing. Registers and memory are known only if the file can run.
type Kernel struct {
	Name      string      `json:"name"`
	Params    []Parameter `json:"params"`
	Required  [3]int      `json:"reqntid"` // threads of a block; zero without
	MaxBlock  int         `json:"max_block"`
	Registers int         `json:"registers"`    // per thread
	By        string      `json:"registers_by"` // where that is from
	Shared    int         `json:"shared_bytes"`
	Local     int         `json:"local_bytes"`
	Total     int         `json:"instructions"` // in the text
	Mix       []Class     `json:"mix"`          // by opcode, the most frequent first
	Problem   string      `json:"problem"`      // why it cannot run though others of the file can; empty if it can
}

// Parameter is one parameter of a kernel.
type Parameter struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int64  `json:"bytes"`
	Takes string `json:"takes"` // the argument words that fit
}

// Explain reads a PTX file and says what it contains, for a card by name. The error is an *advice.Error.
func Explain(path, card string) (*Listing, error) {
	c, err := findCard(card)
	if err != nil {
		return nil, err
	}
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	m := f.module
	l := &Listing{File: path, Version: fmt.Sprint(m.Version), Target: m.Target.String(), Dynamic: []string{}, Kernels: []Kernel{}}
	dev := gpusim.NewDevice(simulated(c), false)
	prog, err := f.load(dev)
	if err != nil {
		l.Problem = err.Error()
	}
	for fn := range m.Funcs() {
		if !fn.Entry && fn.Body != nil {
			l.Functions++
		}
	}
	for v := range m.Vars() {
		if v.Space == ptx.Shared && v.Linkage == ptx.Extern {
			l.Dynamic = append(l.Dynamic, v.Name)
		}
	}
	registers := f.registers(context.Background(), dev.Card)
	for _, fn := range f.kernels() {
		k := explain(fn)
		if prog != nil {
			k.measure(f, dev, prog.Kernel(fn.Name))
			if n, ok := registers[fn.Name]; ok {
				k.Registers, k.By = n, byPtxas
			}
		}
		l.Kernels = append(l.Kernels, k)
	}
	return l, nil
}

func explain(fn *ptx.Func) Kernel {
	k := Kernel{Name: fn.Name, Params: []Parameter{}}
	for _, v := range fn.Params {
		k.Params = append(k.Params, Parameter{v.Name, typeText(v), v.Size(), wants(v)})
	}
	mix := map[string]uint64{}
	for in := range fn.Insts() {
		k.Total++
		mix[opcode(in)]++
	}
	k.Mix = classes(mix)
	return k
}

// measure adds what the device knows of a kernel.
func (k *Kernel) measure(f *file, d *gpusim.Device, g *gpusim.Kernel) {
	if err := f.refused(d, g.Refused()); err != nil {
		k.Problem = err.Error()
		return
	}
	k.Required, k.MaxBlock, k.Registers, k.By, k.Shared, k.Local = g.Required, g.MaxBlock, g.Registers, byLiveness, g.Shared, g.Local
}

// opcode names an instruction for the mix: with the space for memory, with the type for the rest.
func opcode(in *ptx.Inst) string {
	if s := in.Space(); s != ptx.Generic {
		return in.Op + "." + s.String()
	}
	if t := in.Type(); t != ptx.NoType {
		return in.Op + "." + t.String()
	}
	return in.Op
}

// Text is the listing for people.
func (l *Listing) Text(width int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: PTX %s for %s, %s, %s\n", l.File, l.Version, l.Target, plural(len(l.Kernels), "kernel"), plural(l.Functions, "function"))
	if len(l.Dynamic) > 0 {
		fmt.Fprintf(&b, "shared memory that --shared or --meta gives a size: %s\n", strings.Join(l.Dynamic, ", "))
	}
	if l.Problem != "" {
		fmt.Fprintf(&b, "it cannot run: %s\n", l.Problem)
	}
	for i := range l.Kernels {
		b.WriteString("\n" + l.Kernels[i].text(width, l.Problem == ""))
	}
	return b.String()
}

func (k *Kernel) text(width int, runs bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", k.Name)
	t := render.Table{Header: []string{"", "parameter", "type", "bytes", "takes"}, Right: []bool{true, false, false, true, false}, Spare: []int{3, 1}}
	for i, p := range k.Params {
		t.Rows = append(t.Rows, []string{fmt.Sprint(i), p.Name, p.Type, fmt.Sprint(p.Bytes), p.Takes})
	}
	if len(t.Rows) > 0 {
		b.WriteString(t.String(width))
	}
	if k.Problem != "" {
		fmt.Fprintf(&b, "it cannot run: %s\n", k.Problem)
	} else if runs {
		block := fmt.Sprintf("up to %d threads", k.MaxBlock)
		if k.Required != [3]int{} {
			block = dims(k.Required) + " threads, no other"
		}
		fmt.Fprintf(&b, "block         %s\nregisters     %d a thread, %s\nmemory        %d bytes shared a block, %d local a thread\n", block, k.Registers, k.By, k.Shared, k.Local)
	}
	fmt.Fprintf(&b, "instructions  %d in the text\n", k.Total)
	line := " "
	for _, c := range k.Mix {
		line += fmt.Sprintf(" %s×%d", c.Name, c.Count)
	}
	b.WriteString(render.Wrap(line, width, 2) + "\n")
	return b.String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
