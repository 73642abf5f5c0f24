package simrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// maxSource bounds the text files that are read, in bytes.
const maxSource = 64 << 20

// file is a PTX file and the sources that its .loc directives name.
type file struct {
	path    string
	module  *ptx.Module
	lines   []string
	sources map[string][]string
}

// ReadFile reads a whole file of at most limit bytes.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return nil, advice.Failf("check the path", "cannot read %s: %v", path, err)
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.IsDir() {
		return nil, advice.Failf("name a file in it", "cannot read %s: it is a folder", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, advice.Failf("check the file", "cannot read %s: %v", path, err)
	}
	if int64(len(b)) > limit {
		return nil, advice.Failf("use a smaller file", "%s has more than %d bytes", path, limit)
	}
	return b, nil
}

func openFile(path string) (*file, error) {
	b, err := ReadFile(path, maxSource)
	if err != nil {
		return nil, err
	}
	return parseFile(path, b)
}

// parseFile is the file of a text, with the name that messages have for it.
func parseFile(path string, b []byte) (*file, error) {
	m, err := ptx.Parse(string(b))
	if err != nil {
		return nil, advice.Failf("PTX is what clang -S, nvcc --ptx or Triton's asm[\"ptx\"] give for a kernel", "%s", placed(path, err))
	}
	if err := addLines(m, path, string(b)); err != nil {
		return nil, err
	}
	return &file{path: path, module: m, lines: strings.Split(string(b), "\n"), sources: map[string][]string{}}, nil
}

// addLines gives a module the source lines of a table behind its text, or in the file beside it that ends in .lines.
func addLines(m *ptx.Module, path, text string) error {
	at := strings.TrimSuffix(path, ".ptx") + ".lines"
	if _, err := os.Stat(at); err != nil {
		at = path
	} else {
		b, err := ReadFile(at, maxSource)
		if err != nil {
			return err
		}
		text = string(b)
	}
	if err := ptx.AddLines(m, text); err != nil {
		return advice.Failf("the table belongs to another version of the module: make both again, or remove it", "%s: %v", at, err)
	}
	return nil
}

// placed puts the file's name in front of an error of package ptx, which starts with line and column.
func placed(path string, err error) string {
	if place, ok := strings.CutPrefix(err.Error(), "ptx:"); ok {
		return path + ":" + place
	}
	return path + ": " + err.Error()
}

// load checks the module, as the assembler of a card would, and puts it on the device.
func (f *file) load(d *gpusim.Device) (*gpusim.Program, error) {
	p, err := d.Load(f.module)
	return p, f.refused(d, err)
}

// refused says what to do about a module, or a kernel of it, that does not run; nil for nil.
func (f *file) refused(d *gpusim.Device, err error) error {
	var bad gpusim.Rejected
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &bad):
		return advice.Failf(loadHint(f.module.Target, d.Card), "%s: %s", f.path, strings.TrimPrefix(err.Error(), "gpusim: "))
	case bad[0].Newer:
		return advice.Failf("compile for an older PTX version, as clang does with --cuda-feature=+ptx74 and Triton with the option ptx_version, or do without the instruction", "%s", placed(f.path, bad[0]))
	}
	return advice.Failf("as far as is known ptxas, NVIDIA's assembler, refuses this too: correct the line, or the .version and .target that the file states", "%s", placed(f.path, bad[0]))
}

// loadHint says what to do about a valid module that a card cannot run, or the simulator.
func loadHint(t ptx.Target, card gpusim.Card) string {
	capability := card.Compute[0]*10 + card.Compute[1]
	switch {
	case t.SM > capability && capability >= 80:
		return fmt.Sprintf("compile for sm_80, as clang does with --cuda-gpu-arch=sm_80, nvcc with -arch=sm_80 and Triton for GPUTarget(\"cuda\", 80, 32), or choose a card of compute capability %d.%d or above with --card", t.SM/10, t.SM%10)
	case t.Suffix == 'a' && t.SM < capability && t.SM == 90:
		return "choose a card of compute capability 9.0 with --card, such as h100-80, or compile for sm_90, as what ends in a runs nowhere else"
	case t.SM > 90 && capability >= 80:
		return "compile for sm_80, as clang does with --cuda-gpu-arch=sm_80, nvcc with -arch=sm_80 and Triton for GPUTarget(\"cuda\", 80, 32)"
	case t.SM > capability:
		return fmt.Sprintf("compile for sm_%d, or choose a card of compute capability %d.%d or above with --card", capability, t.SM/10, t.SM%10)
	}
	return "docs/simulator.md lists under Limits what is not simulated"
}

// kernels are those that can be launched.
func (f *file) kernels() (list []*ptx.Func) {
	for fn := range f.module.Funcs() {
		if fn.Entry && fn.Body != nil {
			list = append(list, fn)
		}
	}
	return list
}

// dynamic is whether a function, or one that it calls, names shared memory whose size a launch gives. Seen are those that
// were looked at.
func (f *file) dynamic(fn *ptx.Func, seen map[*ptx.Func]bool) bool {
	if fn == nil || seen[fn] {
		return false
	}
	seen[fn] = true
	for in := range fn.Insts() {
		for _, a := range in.Args {
			if addr, ok := a.(*ptx.Addr); ok {
				a = addr.Base
			}
			if s, ok := a.(*ptx.Sym); ok && s.Var != nil && s.Var.Space == ptx.Shared && s.Var.Size() == 0 {
				return true
			}
		}
		if c, ok := in.Call(); ok {
			if s, ok := c.Target.(*ptx.Sym); ok && f.dynamic(f.module.Callee(s.Name), seen) {
				return true
			}
		}
	}
	return false
}

// choose finds the kernel that is meant, by the name that it has in the file or in C++.
func (f *file) choose(name string, m *meta) (*ptx.Func, error) {
	list := f.kernels()
	if len(list) == 0 {
		return nil, advice.Failf("compile a function that is marked __global__", "%s has no kernel", f.path)
	}
	if name == "" && m != nil {
		name = m.Name
	}
	if name == "" && len(list) == 1 {
		return list[0], nil
	}
	meant := f.module.Named(name)
	switch {
	case name == "":
		return nil, advice.Failf("choose one with --kernel: "+names(list), "%s has %d kernels", f.path, len(list))
	case len(meant) == 1:
		return meant[0], nil
	case len(meant) > 1:
		return nil, advice.Failf("choose one with --kernel: "+names(meant), "%s has %d kernels of the name %s", f.path, len(meant), name)
	}
	return nil, advice.Failf("it has "+names(list), "%s has no kernel %q", f.path, name)
}

func names(list []*ptx.Func) string {
	words := make([]string, len(list))
	for i, fn := range list {
		words[i] = fn.Name
	}
	return strings.Join(words, ", ")
}

// line is the text of a line of the PTX file, counted from 1.
func (f *file) line(n int) string { return nth(f.lines, n) }

func nth(lines []string, n int) string {
	if n < 1 || n > len(lines) {
		return ""
	}
	return strings.TrimSpace(strings.TrimSuffix(lines[n-1], "\r"))
}

// sourceLine is the text at "file:line", looked for where the path says, beside the PTX file and in the folders above it;
// empty if it is not there.
func (f *file) sourceLine(place string) string {
	i := strings.LastIndexByte(place, ':')
	if i < 0 {
		return ""
	}
	n, err := strconv.Atoi(place[i+1:])
	if err != nil {
		return ""
	}
	name := place[:i]
	lines, ok := f.sources[name]
	if !ok {
		dir := filepath.Dir(f.path)
		for _, path := range []string{filepath.Join(dir, name), name, filepath.Join(dir, filepath.Base(name)), filepath.Join(dir, "..", name), filepath.Join(dir, "..", "..", name)} {
			if b, err := ReadFile(path, maxSource); err == nil {
				lines = strings.Split(string(b), "\n")
				break
			}
		}
		f.sources[name] = lines
	}
	return nth(lines, n)
}

// inlined are the "file:line" into which the source of a PTX line was inlined, the innermost first. A
// place of inlining has a .loc of its own, which tells the next.
func (f *file) inlined(kernel string, line int) []string {
	into := []string{}
	fn := f.module.Func(kernel)
	if fn == nil || fn.Body == nil {
		return into
	}
	var last *ptx.Loc
	at := map[ptx.Place]*ptx.Loc{}
	for _, s := range fn.Body.Stmts {
		l, ok := s.(*ptx.Loc)
		if !ok || l.Pos.Line > line {
			continue
		}
		if l.Line > 0 || last == nil {
			last = l
		}
		at[ptx.Place{File: l.File, Line: l.Line, Col: l.Col}] = l
	}
	for seen := map[*ptx.Loc]bool{}; last != nil && last.InlinedAt != nil && !seen[last]; last = at[*last.InlinedAt] {
		seen[last] = true
		into = append(into, fmt.Sprintf("%s:%d", f.module.FileName(last.InlinedAt.File), last.InlinedAt.Line))
	}
	return into
}

// meta is what Triton writes beside a kernel, as far as a launch needs it.
type meta struct {
	Name           string `json:"name"`
	Shared         int    `json:"shared"`
	NumWarps       int    `json:"num_warps"`
	NumCTAs        int    `json:"num_ctas"`
	GlobalScratch  *int64 `json:"global_scratch_size"`  // bytes for each block
	ProfileScratch *int64 `json:"profile_scratch_size"` // likewise

	Descriptors []descriptor `json:"tensordesc_meta"` // of the parameters that are tensor maps, in order
}

func readMeta(path string) (*meta, error) {
	if path == "" {
		return nil, nil
	}
	b, err := ReadFile(path, maxSource)
	if err != nil {
		return nil, err
	}
	return parseMeta(path, b)
}

func parseMeta(path string, b []byte) (*meta, error) {
	const hint = "--meta takes the JSON file that Triton writes beside the PTX in its cache"
	m := &meta{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, advice.Failf(hint, "%s is not Triton's metadata: %v", path, err)
	}
	switch {
	case m.NumWarps < 1 || m.NumWarps > 32 || m.Shared < 0:
		return nil, advice.Failf(hint, "%s is not Triton's metadata: num_warps is %d and shared %d", path, m.NumWarps, m.Shared)
	}
	for i, d := range m.Descriptors {
		if err := d.check(); err != nil {
			return nil, advice.Failf(hint, "%s: tensor descriptor %d: %v", path, i, err)
		}
	}
	return m, nil
}

// scratch appends the pointers to scratch memory that Triton adds to a kernel's parameters: null where it is not used.
func (m *meta) scratch(words []word, fn *ptx.Func, grid [3]int) ([]word, error) {
	if m == nil || m.GlobalScratch == nil || m.ProfileScratch == nil || len(words)+2 != len(fn.Params) {
		return words, nil
	}
	for _, size := range []int64{*m.GlobalScratch, *m.ProfileScratch} {
		w := word{text: "null", added: true, kind: null}
		if size > 0 {
			total := size
			for _, n := range grid {
				if total > maxBuffers/int64(n) {
					return nil, advice.Failf("use a smaller --grid", "scratch memory of %d bytes for each of %v blocks is more than the %d bytes that a run may use", size, grid, int64(maxBuffers))
				}
				total *= int64(n)
			}
			w = word{text: "Triton's scratch memory", added: true, kind: newBuffer, elem: elems["u8"], shape: []int{int(total)}, bytes: int(total)}
		}
		words = append(words, w)
	}
	return words, nil
}

// missed adds to the error of a kernel that lacks two arguments that it may be Triton's, whose metadata would add them.
func (m *meta) missed(err error, fn *ptx.Func, words []word) error {
	var e *advice.Error
	if m == nil && len(words)+2 == len(fn.Params) && errors.As(err, &e) {
		e.Hint = "if Triton made the file, give the JSON file beside it in its cache with --meta, which adds the last two; " + e.Hint
	}
	return err
}

// dimensions settles grid, block and dynamic shared memory.
func (j *job) dimensions(c Config, m *meta) (err error) {
	j.grid = [3]int{1, 1, 1}
	if c.Grid != "" {
		if j.grid, err = parseDims("--grid", c.Grid); err != nil {
			return err
		}
	}
	switch {
	case c.Block != "":
		j.block, err = parseDims("--block", c.Block)
	case j.kernel.Required != [3]int{}:
		j.block = j.kernel.Required
	case m != nil:
		j.block = [3]int{32 * m.NumWarps, 1, 1}
	default:
		err = advice.Failf("give --block X[,Y,Z]", "%s does not say how many threads a block has", j.kernel.Name)
	}
	if m != nil && m.NumCTAs > 1 { // a program is a cluster
		if j.grid[0] > math.MaxInt32/m.NumCTAs {
			return advice.Failf("use a smaller --grid", "a grid of %d programs of %d blocks each", j.grid[0], m.NumCTAs)
		}
		j.grid[0] *= m.NumCTAs
	}
	if j.shared = max(c.Shared, 0); c.Shared < 0 && m != nil {
		j.shared = m.Shared
	}
	return err
}

func parseDims(flag, s string) (d [3]int, err error) {
	d = [3]int{1, 1, 1}
	parts := strings.Split(s, ",")
	if len(parts) > 3 {
		return d, advice.Failf("give one to three numbers, as in "+flag+" 128,2", "%s %s has %d numbers", flag, s, len(parts))
	}
	for i, p := range parts {
		n, err := strconv.ParseInt(p, 10, 32)
		if err != nil || n < 1 {
			return d, advice.Failf("give one to three positive numbers, as in "+flag+" 128,2", "%s %s: %q is not a size", flag, s, p)
		}
		d[i] = int(n)
	}
	return d, nil
}

func dims(d [3]int) string { return fmt.Sprintf("%d×%d×%d", d[0], d[1], d[2]) }
