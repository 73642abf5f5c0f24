package simdebug

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// needWarp is an error where the launch has ended: there are no registers then.
func (s *Session) needWarp() error {
	if s.w == nil {
		return advice.Failf("restart, back, undo and goto start it again; mem shows what it has written", "the kernel has ended: it has no registers any more")
	}
	return nil
}

// register is a register of the function that the warp is in, or of one that called it. Nested blocks of PTX may hide a name:
// the last that the function declares is meant.
func (s *Session) register(name string) (reg *warp.Register, id int, err error) {
	symbols := s.run.code.Symbols
	stack := s.point(s.w).Stack
	for i := len(stack) - 1; i >= 0; i-- {
		f := stack[i]
		for k := len(f.Func.Regs) - 1; k >= 0; k-- {
			if r := &symbols.Registers[f.Reg+k]; r.Name == name || r.Name == "%"+name {
				return r, f.Reg + k, nil
			}
		}
	}
	return nil, 0, advice.Failf("registers lists them", "%s has no register %s", stack[len(stack)-1].Func.Name, name)
}

// specials are the registers that tell a lane's place.
var specials = map[string]func(w *warp.Warp, lane int) uint32{
	"%laneid": func(_ *warp.Warp, lane int) uint32 { return uint32(lane) },
	"%warpid": func(w *warp.Warp, _ int) uint32 { return w.Id },
}

func init() {
	for i, d := range []string{"x", "y", "z"} {
		specials["%tid."+d] = func(w *warp.Warp, lane int) uint32 {
			return w.CTA.Launch.ThreadID(w.Id*simt.WarpSize + uint32(lane))[i]
		}
		specials["%ctaid."+d] = func(w *warp.Warp, _ int) uint32 { return w.CTA.Id[i] }
		specials["%ntid."+d] = func(w *warp.Warp, _ int) uint32 { return w.CTA.Launch.Block[i] }
		specials["%nctaid."+d] = func(w *warp.Warp, _ int) uint32 { return w.CTA.Launch.Dims[i] }
	}
}

// Values are a register in all lanes of a warp.
type Values struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Values []string `json:"values"` // by lane; "" where the lane has never run, "?" where nobody wrote it
}

// values reads a register.
func (s *Session) values(name, format string) (*Values, error) {
	if read, ok := specials[name]; ok {
		v := &Values{Name: name, Type: "u32"}
		for lane := range simt.WarpSize {
			v.Values = append(v.Values, s.lived(lane, fmt.Sprint(read(s.w, lane))))
		}
		return v, nil
	}
	r, id, err := s.register(name)
	if err != nil {
		return nil, err
	}
	v := &Values{Name: r.Name, Type: r.Type.String()}
	for lane := range simt.WarpSize {
		text := "?"
		if s.w.Undef == nil || s.w.Undef[id]>>lane&1 == 0 {
			text = valueText(s.bits(r, lane), r.Type, format)
		}
		v.Values = append(v.Values, s.lived(lane, text))
	}
	return v, nil
}

// lived is a text for lanes that there are.
func (s *Session) lived(lane int, text string) string {
	if s.w.Born()>>lane&1 == 0 {
		return ""
	}
	return text
}

func (s *Session) bits(r *warp.Register, lane int) uint64 {
	if r.Slot.Bank == simt.BankPred {
		return uint64(s.w.Preds[r.Slot.I] >> lane & 1)
	}
	return s.w.Get(r.Slot, lane)
}

// valueText is a register's bits as its type says, or as asked.
func valueText(bits uint64, t ptx.Type, format string) string {
	size := max(t.Bits()/8, 1)
	switch kind := t.Kind(); {
	case t == ptx.Pred:
		return strconv.FormatBool(bits != 0)
	case format == "f" || format == "" && kind == ptx.KindFloat:
		return number{'f', size}.text(bits)
	case format == "x" || format == "" && kind == ptx.KindBits:
		return number{'x', size}.text(bits)
	case format == "d" || format == "" && kind == ptx.KindInt:
		return number{'i', size}.text(bits)
	}
	return number{'u', size}.text(bits)
}

// number is a type of memory: f, i, u or x, and its bytes.
type number struct {
	kind byte
	size int
}

func numberOf(name string) (number, error) {
	n := number{size: 4}
	if name == "bf16" {
		return number{'b', 2}, nil
	}
	if name == "bool" {
		name = "u8"
	}
	if len(name) >= 2 {
		n.kind = name[0]
		bits, err := strconv.Atoi(name[1:])
		n.size = bits / 8
		if err == nil && strings.ContainsRune("fiux", rune(n.kind)) && (bits == 8 && n.kind != 'f' || bits == 16 || bits == 32 || bits == 64) {
			return n, nil
		}
	}
	return n, advice.Failf("f64 f32 f16 bf16, or i, u and x of 8 to 64 bits, as in x32", "%q is no type of memory", name)
}

func (n number) text(bits uint64) string {
	shift := 64 - 8*n.size
	switch {
	case n.kind == 'f' && n.size == 8:
		return strconv.FormatFloat(math.Float64frombits(bits), 'g', -1, 64)
	case n.kind == 'f' && n.size == 2:
		return strconv.FormatFloat(float64(dtype.Float16(bits).Float32()), 'g', -1, 32)
	case n.kind == 'b':
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(bits)<<16)), 'g', -1, 32)
	case n.kind == 'f':
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(bits))), 'g', -1, 32)
	case n.kind == 'i':
		return strconv.FormatInt(int64(bits<<shift)>>shift, 10)
	case n.kind == 'x':
		return fmt.Sprintf("%0*x", 2*n.size, bits<<shift>>shift)
	}
	return strconv.FormatUint(bits<<shift>>shift, 10)
}

func (s *Session) print(_ context.Context, args []string) (*Reply, error) {
	if err := s.needWarp(); err != nil {
		return nil, err
	}
	format := ""
	if len(args) == 2 {
		if format = args[1]; !strings.Contains("xduf", format) || len(format) != 1 {
			return nil, advice.Failf("x, d, u or f", "%q is no way to print a register", format)
		}
	}
	v, err := s.values(args[0], format)
	if err != nil {
		return nil, err
	}
	return &Reply{Registers: []*Values{v}, Text: fmt.Sprintf("%s .%s\n%s", v.Name, v.Type, s.byLane(v.Values))}, nil
}

// byLane is a line if all lanes have the same, else a row for eight lanes each. What lanes hold that do not run is in brackets.
func (s *Session) byLane(values []string) string {
	same, first := true, ""
	for _, v := range values {
		if v == "" {
			continue
		}
		if first == "" {
			first = v
		}
		same = same && v == first
	}
	if same {
		return "  all lanes  " + first + "\n"
	}
	width := 0
	cells := make([]string, len(values))
	for i, v := range values {
		cells[i] = v
		if s.w.Mask>>i&1 == 0 && v != "" {
			cells[i] = "(" + v + ")"
		}
		width = max(width, len(cells[i]))
	}
	var b strings.Builder
	for i := 0; i < len(cells); i += 8 {
		fmt.Fprintf(&b, "  lanes %2d to %2d ", i, i+7)
		for _, c := range cells[i : i+8] {
			fmt.Fprintf(&b, "  %*s", width, c)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// registers are those of the function, in the lane.
func (s *Session) registers(_ context.Context, args []string) (*Reply, error) {
	if err := s.needWarp(); err != nil {
		return nil, err
	}
	stack := s.point(s.w).Stack
	f := stack[len(stack)-1]
	r := &Reply{Registers: []*Values{}}
	var b strings.Builder
	fmt.Fprintf(&b, "lane %d in %s\n", s.lane, f.Func.Name)
	seen := map[string]bool{}
	for k := range f.Func.Regs {
		name := s.run.code.Symbols.Registers[f.Reg+k].Name
		if seen[name] || len(args) == 1 && !strings.HasPrefix(name, args[0]) {
			continue
		}
		seen[name] = true
		v, err := s.values(name, "")
		if err != nil {
			return nil, err
		}
		r.Registers = append(r.Registers, v)
		fmt.Fprintf(&b, "  %-8s .%-5s %s\n", v.Name, v.Type, s.meanings(name, v))
	}
	r.Text = b.String()
	return r, nil
}

// meanings is a register in the lane; one of 32 bits without a kind also as an integer and as a float.
func (s *Session) meanings(name string, v *Values) string {
	text := v.Values[s.lane]
	if v.Type != "b32" || text == "?" || text == "" {
		return text
	}
	r, _, err := s.register(name)
	if err != nil {
		return text
	}
	bits := s.bits(r, s.lane)
	return fmt.Sprintf("%s  %s  %s", text, number{'i', 4}.text(bits), number{'f', 4}.text(bits))
}

// place is a place in memory.
type place struct {
	space ptx.Space
	addr  uint64
	elem  string // what lies there; empty if that is not known
}

// find is the place that words name: arg0+64, shared:0, global:0x7000…, local:0, param:0, a variable, or a register of the lane.
func (s *Session) find(where string) (place, error) {
	base, off, added := strings.Cut(where, "+")
	var plus uint64
	if added {
		n, err := strconv.ParseUint(off, 0, 64)
		if err != nil {
			return place{}, advice.Failf("as in arg0+64", "%q is no number of bytes", off)
		}
		plus = n
	}
	p, err := s.based(base)
	p.addr += plus
	return p, err
}

var spaceNames = map[string]ptx.Space{"global": ptx.Global, "const": ptx.Global, "shared": ptx.Shared, "local": ptx.Local, "param": ptx.Param, "generic": ptx.Generic}

func (s *Session) based(base string) (place, error) {
	if n, ok := strings.CutPrefix(base, "arg"); ok {
		i, err := strconv.Atoi(n)
		a, buffer := s.run.target.Argument(i)
		if err == nil && !buffer {
			return place{}, advice.Failf("param:0 shows the kernel's parameters", "argument %s is no buffer", n)
		}
		if err == nil {
			return place{ptx.Global, a.Addr, a.Type}, nil
		}
	}
	if name, at, ok := strings.Cut(base, ":"); ok {
		space, known := spaceNames[name]
		addr, err := strconv.ParseUint(at, 0, 64)
		if !known || err != nil {
			return place{}, advice.Failf("as in global:0x700000000000 or shared:128; spaces are global, shared, local, param and generic", "%q is no place in memory", base)
		}
		space, addr = placed(space, addr)
		return place{space, addr, ""}, nil
	}
	if strings.HasPrefix(base, "%") {
		return s.pointed(base)
	}
	if s.run.code != nil {
		for v, h := range s.run.code.Symbols.Variables {
			if v.Name == base {
				return variable(v, h), nil
			}
		}
	}
	return place{}, advice.Failf("arg0, shared:0, global:0x…, local:0, param:0, a variable of the kernel, or a register as %rd4", "%q is no place in memory", base)
}

// variable is the place of a variable, with what its elements are.
func variable(v *ptx.Var, h flow.Home) place {
	space := h.Space
	if space == ptx.ConstSpace {
		space = ptx.Global
	}
	elem := ""
	if size := v.Type.Size(); size > 0 && v.Type != ptx.Pred {
		kind := map[ptx.Kind]string{ptx.KindFloat: "f", ptx.KindInt: "i", ptx.KindUint: "u"}[v.Type.Kind()]
		if kind == "" {
			kind = "x"
		}
		elem = fmt.Sprint(kind, 8*size)
	}
	return place{space, uint64(h.Off), elem}
}

// pointed is where a register of the lane points to: an address of 64 bits is generic, one of 32 is in shared memory.
func (s *Session) pointed(name string) (place, error) {
	if err := s.needWarp(); err != nil {
		return place{}, err
	}
	r, _, err := s.register(name)
	if err != nil {
		return place{}, err
	}
	addr := s.bits(r, s.lane)
	if r.Type.Bits() <= 32 {
		return place{ptx.Shared, addr, ""}, nil
	}
	space, addr := placed(ptx.Generic, addr)
	return place{space, addr, ""}, nil
}

// bytes are those at a place, as far as they are there: of n, or fewer.
func (s *Session) bytes(p place, n int) ([]byte, error) {
	var mem []byte
	at := p.addr
	what := p.space.String() + " memory"
	if p.space != ptx.Global {
		if err := s.needWarp(); err != nil {
			return nil, err
		}
	}
	switch p.space {
	case ptx.Shared:
		mem = s.w.CTA.SharedMemory()
	case ptx.Local:
		mem = s.w.Local[s.lane*s.w.Code.Local:][:s.w.Code.Local]
	case ptx.Param:
		mem = s.w.CTA.Launch.Params
	default:
		var err error
		if mem, at, err = s.run.target.Memory(p.addr); err != nil {
			return nil, err
		}
		what = "that allocation"
	}
	if at >= uint64(len(mem)) {
		return nil, advice.Failf("offsets go from 0", "%#x is not in %s, which has %d bytes", at, what, len(mem))
	}
	mem = mem[at:]
	return mem[:min(n, len(mem))], nil
}

// Memory is numbers at a place.
type Memory struct {
	Space  string   `json:"space"`
	Addr   string   `json:"address"`
	Type   string   `json:"type"`
	Values []string `json:"values"`
}

const mostShown = 4096 // numbers

func (s *Session) memory(_ context.Context, args []string) (*Reply, error) {
	p, err := s.find(args[0])
	if err != nil {
		return nil, err
	}
	rest := args[1:]
	count := 16
	if len(rest) > 0 && rest[0][0] >= '0' && rest[0][0] <= '9' {
		if count, err = optional(rest, 0, 16, 1, mostShown); err != nil {
			return nil, err
		}
		rest = rest[1:]
	}
	name := p.elem
	if len(rest) > 0 {
		name = rest[0]
	}
	if name == "" {
		name = "x32"
	}
	n, err := numberOf(name)
	if err != nil {
		return nil, err
	}
	b, err := s.bytes(p, count*n.size)
	if err != nil {
		return nil, err
	}
	m := &Memory{Space: p.space.String(), Addr: fmt.Sprintf("%#x", p.addr), Type: name, Values: n.list(b)}
	return &Reply{Memory: m, Text: m.text(p.addr, n.size)}, nil
}

// list is bytes as numbers.
func (n number) list(b []byte) []string {
	list := []string{}
	for ; len(b) >= n.size; b = b[n.size:] {
		var word [8]byte
		copy(word[:], b[:n.size])
		list = append(list, n.text(binary.LittleEndian.Uint64(word[:])))
	}
	return list
}

func (m *Memory) text(addr uint64, size int) string {
	var b strings.Builder
	width := 0
	for _, v := range m.Values {
		width = max(width, len(v))
	}
	const row = 8
	for i := 0; i < len(m.Values); i += row {
		fmt.Fprintf(&b, "  %s %#x", m.Space, addr+uint64(i*size))
		for _, v := range m.Values[i:min(i+row, len(m.Values))] {
			fmt.Fprintf(&b, "  %*s", width, v)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// shared shows shared memory as its banks have it: 32 words a row, a line for eight of them.
func (s *Session) shared(_ context.Context, args []string) (*Reply, error) {
	if err := s.needWarp(); err != nil {
		return nil, err
	}
	all := s.w.CTA.SharedMemory()
	if len(all) == 0 {
		return nil, advice.Failf("mem shows other memory", "the block has no shared memory")
	}
	from, err := optional(args, 0, 0, 0, len(all)-1)
	if err != nil {
		return nil, err
	}
	rows, err := optional(args, 1, 4, 1, mostShown/32)
	if err != nil {
		return nil, err
	}
	from &^= 127
	words := number{'x', 4}.list(all[from:min(from+128*rows, len(all))])
	var b strings.Builder
	for i := 0; i < len(words); i += 8 {
		fmt.Fprintf(&b, "  shared %#05x  banks %2d to %2d ", from+4*i, i%32, i%32+7)
		for _, w := range words[i:min(i+8, len(words))] {
			b.WriteString(" " + w)
		}
		b.WriteByte('\n')
	}
	return &Reply{Memory: &Memory{"shared", fmt.Sprintf("%#x", from), "x32", words}, Text: b.String()}, nil
}

// bank shows the words of one bank.
func (s *Session) bank(_ context.Context, args []string) (*Reply, error) {
	if err := s.needWarp(); err != nil {
		return nil, err
	}
	bank, err := optional(args, 0, 0, 0, 31)
	if err != nil {
		return nil, err
	}
	count, err := optional(args, 1, 16, 1, mostShown)
	if err != nil {
		return nil, err
	}
	all := s.w.CTA.SharedMemory()
	m := &Memory{Space: "shared", Addr: fmt.Sprintf("%#x", 4*bank), Type: "x32", Values: []string{}}
	var b strings.Builder
	for at := 4 * bank; at+4 <= len(all) && len(m.Values) < count; at += 128 {
		m.Values = append(m.Values, number{'x', 4}.text(uint64(binary.LittleEndian.Uint32(all[at:]))))
		fmt.Fprintf(&b, "  shared %#05x  %s\n", at, m.Values[len(m.Values)-1])
	}
	if len(m.Values) == 0 {
		return nil, advice.Failf("shared shows what there is", "the block's shared memory has %d bytes, none of them in bank %d", len(all), bank)
	}
	return &Reply{Memory: m, Text: b.String()}, nil
}

// addWatch watches an address.
func (s *Session) addWatch(_ context.Context, args []string) (*Reply, error) {
	p, err := s.find(args[0])
	if err != nil {
		return nil, err
	}
	if p.space != ptx.Global && p.space != ptx.Shared {
		return nil, advice.Failf("watch global or shared memory", "%s memory cannot be watched: it is a thread's own", p.space)
	}
	w := &Watch{Space: p.space.String(), Addr: fmt.Sprintf("%#x", p.addr), Bytes: 4, space: p.space, lo: p.addr}
	if n, err := numberOf(p.elem); err == nil {
		w.Bytes = n.size
	}
	for _, a := range args[1:] {
		if a == "reads" {
			w.Reads = true
			continue
		}
		if w.Bytes, err = optional([]string{a}, 0, 4, 1, 1<<30); err != nil {
			return nil, err
		}
	}
	if w.space == ptx.Shared {
		if err := s.needWarp(); err != nil {
			return nil, err
		}
		w.Block = s.w.CTA.Index
	}
	if _, err := s.bytes(p, w.Bytes); err != nil {
		return nil, err
	}
	s.ids++
	w.ID = s.ids
	s.watches = append(s.watches, w)
	return &Reply{Watches: []*Watch{w}, Text: w.text()}, nil
}
