package simrun

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/gpusim/tensormap"
	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// argument is a word on the device.
type argument struct {
	word
	addr uint64 // of a buffer
}

// typeText is a parameter's type as PTX has it: ".u64", ".b8[64]".
func typeText(v *ptx.Var) string {
	s := "." + v.Type.String()
	if v.Vec > 0 {
		s = fmt.Sprintf(".v%d %s", v.Vec, s)
	}
	if v.Dims != nil {
		s += strings.ReplaceAll(fmt.Sprint(v.Dims), " ", "][")
	}
	return s
}

// wants says which words a parameter takes.
func wants(v *ptx.Var) string {
	size := v.Size()
	switch {
	case v.Dims != nil || v.Vec > 0:
		return fmt.Sprintf("%d bytes, as i32:5,f32:1.5 or hex:0500…", size)
	case v.Ptr != nil:
		return "a buffer or null"
	case v.Type.Kind() == ptx.KindFloat:
		return fmt.Sprintf("f%d:1.5", v.Type.Bits())
	case v.Type.Size() == 8:
		return "a buffer, null, i64:5 or u64:5"
	case v.Type.Kind() == ptx.KindBits && v.Type.Bits() == 32:
		return "i32:5, u32:5 or f32:1.5"
	case v.Type.Kind() == ptx.KindBits && v.Type.Bits() == 16:
		return "i16:5, u16:5, f16:1.5 or bf16:1.5"
	}
	return fmt.Sprintf("i%d:5 or u%d:5", v.Type.Bits(), v.Type.Bits())
}

// signature lists parameters with the words they take.
func signature(fn *ptx.Func) string {
	var parts []string
	for i, v := range fn.Params {
		parts = append(parts, fmt.Sprintf("%d %s: %s", i, typeText(v), wants(v)))
	}
	if parts == nil {
		return "it takes none"
	}
	return "it takes " + strings.Join(parts, "; ")
}

// match checks number, size and kind of the words against the parameters.
func match(fn *ptx.Func, words []word) error {
	if len(words) != len(fn.Params) {
		return advice.Failf(signature(fn), "%s has %d parameters, and is given %s", fn.Name, len(fn.Params), plural(len(words), "argument"))
	}
	for i, v := range fn.Params {
		w := &words[i]
		if why := mismatch(w, v); why != "" {
			return advice.Failf("parameter "+strconv.Itoa(i)+" takes "+wants(v), "argument %d, %q, %s, but parameter %s is %s of %d bytes",
				i, w.text, why, v.Name, typeText(v), v.Size())
		}
	}
	return nil
}

// mismatch says what keeps a word from being a parameter; empty if nothing does.
func mismatch(w *word, v *ptx.Var) string {
	array := v.Dims != nil || v.Vec > 0
	if w.box != nil {
		if v.Size() != tensormap.Size {
			return "is a tensor map of 128 bytes"
		}
		return ""
	}
	if w.kind != scalar {
		if array || v.Type.Size() != 8 || v.Type.Kind() == ptx.KindFloat {
			return "is an address of 8 bytes"
		}
		return ""
	}
	float := w.elem.kind == 'f'
	switch kind := v.Type.Kind(); {
	case int64(w.elem.size) != v.Size():
		return fmt.Sprintf("has %d bytes", w.elem.size)
	case array:
		return ""
	case float && (kind == ptx.KindInt || kind == ptx.KindUint):
		return "is a float"
	case !float && kind == ptx.KindFloat:
		return "is an integer"
	}
	return ""
}

// bind puts the words on the device and lays out the parameters.
func (j *job) bind(words []word) error {
	j.params = make([]byte, j.kernel.Params)
	for i, w := range words {
		a := argument{word: w}
		value := w.value
		if w.kind != scalar {
			if err := j.place(&a); err != nil {
				return refused(err)
			}
			value = binary.LittleEndian.AppendUint64(nil, a.addr)
		}
		if w.box != nil {
			m, err := w.box.encode(a.addr)
			if err != nil {
				return advice.Failf(mapHint, "argument %d, %q: %v", w.number, w.text, err)
			}
			value = m[:]
		}
		copy(j.params[j.kernel.Offsets[i]:], value)
		a.data = nil
		j.args = append(j.args, a)
	}
	return nil
}

// place allocates and fills a buffer; null stays 0.
func (j *job) place(a *argument) (err error) {
	if a.kind == null {
		return nil
	}
	tag := fmt.Sprintf("argument %d, %s", a.number, a.describe())
	if a.added {
		tag = a.text
	}
	if a.addr, err = j.dev.Alloc(a.bytes, tag); err != nil {
		return err
	}
	data := a.data
	if a.kind == newBuffer {
		if a.value == nil {
			return nil
		}
		data = bytes.Repeat(a.value, a.bytes/len(a.value))
	}
	return j.dev.Write(a.addr, data)
}

// out is an argument to show, and to write to a file if there is a path.
type out struct {
	arg, number int // among all, and among those of the command line
	path        string
}

func parseOuts(list []string, words []word) (outs []out, err error) {
	const hint = "give --out K to see a buffer, or K=c.npy to have it in a file, where K is its number, counted from 0"
	taken := map[string]bool{}
	var given []int
	for i, w := range words {
		if !w.added {
			given = append(given, i)
		}
	}
	for _, s := range list {
		k, path, file := strings.Cut(s, "=")
		if file && path == "" {
			return nil, advice.Failf(hint, "--out %s is not K=FILE", s)
		}
		n, err := strconv.Atoi(k)
		switch {
		case err != nil || n < 0:
			return nil, advice.Failf(hint, "--out %s: %q is not the number of an argument", s, k)
		case n >= len(given):
			return nil, advice.Failf(hint, "--out %s: there are %d arguments, 0 to %d", s, len(given), len(given)-1)
		case words[given[n]].kind == scalar || words[given[n]].kind == null:
			return nil, advice.Failf(hint, "--out %s: argument %d, %q, is not a buffer", s, n, words[given[n]].text)
		case file && taken[path]:
			return nil, advice.Failf("name another file", "--out %s: another argument goes to the same file", s)
		}
		if folder, err := os.Stat(filepath.Dir(path)); file && (err != nil || !folder.IsDir()) {
			return nil, advice.Failf("make it, or name another file", "--out %s: there is no folder %s", s, filepath.Dir(path))
		}
		taken[path] = true
		outs = append(outs, out{given[n], n, path})
	}
	return outs, nil
}

// writeOuts writes the buffers that were asked for to files, and a short view of each into the result.
func (j *job) writeOuts(r *Result) error {
	for _, o := range j.outs {
		a := &j.args[o.arg]
		data := make([]byte, a.bytes)
		if err := j.dev.Read(data, a.addr); err != nil {
			return refused(err)
		}
		if n := j.unwritten(a); n > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("argument %d: %d of %d elements were never written", o.number, n, len(data)/a.elem.size))
		}
		file := &npy.Array{DType: a.elem.numpy, Shape: a.shape, Data: data}
		if a.elem.half() {
			file.DType, file.Data = elems["f32"].numpy, widen(a.elem, data)
		}
		if err := o.write(file); err != nil {
			return err
		}
		r.Outs = append(r.Outs, Out{Arg: o.number, File: o.path, Type: a.elem.name, Shape: a.shape, First: first(elemOf(file.DType), file.Data)})
	}
	return nil
}

func (o *out) write(a *npy.Array) error {
	if o.path == "" {
		return nil
	}
	if err := durable.WriteFile(o.path, func(w io.Writer) error { return npy.Write(w, a) }); err != nil {
		return advice.Failf("check the folder and the room on the disk", "cannot write: %v", err)
	}
	return nil
}

// unwritten counts the elements of a buffer that nobody wrote, as far as the device keeps book.
func (j *job) unwritten(a *argument) (n int) {
	if j.options.Checks&gpusim.Initcheck == 0 || j.dev.Written(a.addr, a.bytes) {
		return 0
	}
	for at := 0; at < a.bytes; at += a.elem.size {
		if !j.dev.Written(a.addr+uint64(at), a.elem.size) {
			n++
		}
	}
	return n
}

// shown is how many elements of a written buffer a result shows.
const shown = 8

// first is the first elements as text.
func first(e elem, data []byte) (list []string) {
	for at := 0; at < len(data) && len(list) < shown; at += e.size {
		var b [8]byte
		copy(b[:], data[at:at+e.size])
		u := binary.LittleEndian.Uint64(b[:])
		switch {
		case e.kind == 'f' && e.size == 8:
			list = append(list, fmt.Sprint(math.Float64frombits(u)))
		case e.kind == 'f':
			list = append(list, fmt.Sprint(math.Float32frombits(uint32(u))))
		case e.kind == 'i':
			shift := 64 - 8*e.size
			list = append(list, fmt.Sprint(int64(u<<shift)>>shift))
		default:
			list = append(list, fmt.Sprint(u))
		}
	}
	return list
}
