package ckpt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/safetensors"
)

// Transposer is a model whose published files hold some matrices transposed, as [in, out]: transformers keeps GPT-2's
// products so. Files are written and read accordingly.
type Transposer interface {
	// Transposed tells it of the tensor with the given path.
	Transposed(path string) bool
}

// Renamer is a model whose published files use other names than its paths.
type Renamer interface {
	// Path is the path of the tensor that files name so, or false for one that the model does without.
	Path(name string) (path string, ok bool)
}

func transposed(model any, s *slot) bool {
	m, ok := model.(Transposer)
	return ok && s.t.Rank() == 2 && m.Transposed(s.name())
}

// SaveModel writes a model's parameters and buffers to a safetensors file under PyTorch's names and in its layout. A
// tied tensor is written once. The file is complete or not there.
func SaveModel(path string, model any) error {
	if err := present(model); err != nil {
		return err
	}
	return guarded(func() error {
		return durable.WriteFile(path, func(w io.Writer) error { return writeModel(w, model) })
	})
}

// present refuses a model that is nil.
func present(model any) error {
	if v := reflect.ValueOf(model); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return errors.New("the model is nil; give one with parameters")
	}
	return nil
}

func writeModel(w io.Writer, model any) error {
	var list []safetensors.Tensor
	for _, s := range stateOf(model) {
		list = append(list, entry(s.name(), s.t, transposed(model, s)))
	}
	return safetensors.Write(w, map[string]string{"format": "pt"}, list)
}

// LoadModel reads a model's parameters and buffers from a safetensors file, by name. A folder stands for its
// model.safetensors, or else for its newest checkpoint. The file must have all of the model's tensors and no others, in
// the model's shapes; floating-point values are converted to the model's dtype. When the model does not
// have the names themselves, what published files add to them is understood:
//
//   - module. and _orig_mod. in front, of PyTorch's wrappers;
//   - the first part that all of the model's paths share (transformer.) left out;
//   - lm_head.weight for a tied wte.weight, which must be equal;
//   - GPT-2's masks (attn.bias, attn.masked_bias), which are left;
//   - in_proj_weight, in_proj_bias and out_proj of PyTorch's MultiheadAttention for c_attn and c_proj;
//   - BatchNorm's num_batches_tracked missing, which then stays as it is.
//
// A model may say more by the methods of [Renamer] and [Transposer]. When LoadModel fails, the model is unchanged unless
// memory ran out.
func LoadModel(path string, model any) error {
	return withModel(path, model, func(f *tensorFile) error { return loadModel(f, model) })
}

// Left is what was not loaded, and is as it was.
type Left struct {
	Missing    []string // tensors of the model that the file does not have
	Unexpected []string // names in the file that the model does not have
	Other      []string // tensors of another shape or type, each with the difference
}

// String is one line, or empty where nothing was left.
func (l Left) String() string {
	d := difference{l.Missing, l.Unexpected, l.Other}
	return d.text()
}

// LoadFitting is LoadModel for a file of a model that differs, such as one with another head: what fits in name, shape
// and type is loaded, and what was left is told. It is an error when nothing fits.
func LoadFitting(path string, model any) (left Left, err error) {
	err = withModel(path, model, func(f *tensorFile) error {
		slots := stateOf(model)
		found, d := pairs(f, model, slots)
		n := 0
		for i, s := range slots {
			if found[i] != nil && len(s.compare(found[i], transposed(model, s))) > 0 {
				found[i] = nil
			}
			if found[i] != nil {
				n++
			}
		}
		if n == 0 {
			return &MismatchError{f.path, "nothing of it fits the model: " + d.text()}
		}
		left = Left{d.missing, d.unexpected, d.other}
		return load(slots, found, model)
	})
	return left, err
}

// withModel opens the weights at a path for a model.
func withModel(path string, model any, use func(f *tensorFile) error) error {
	if err := present(model); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		weights := filepath.Join(path, ModelFile)
		if !isFile(weights) || isFile(filepath.Join(path, sumsFile)) {
			return withCheckpoint(path, use)
		}
		path = weights
	}
	f, err := openTensors(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return guarded(func() error { return use(f) })
}

// withCheckpoint opens the weights of a checkpoint, or of the newest one of a run: an older one is not what was meant.
func withCheckpoint(path string, use func(f *tensorFile) error) error {
	if !isFile(filepath.Join(path, sumsFile)) {
		list, err := List(path)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			return fmt.Errorf("%s has no %s and no checkpoint", path, ModelFile)
		}
		path = list[0]
	}
	c, err := open(path)
	if err != nil {
		return err
	}
	defer c.Close()
	return guarded(func() error { return use(c.model) })
}

// tensorFile is a mapped safetensors file.
type tensorFile struct {
	*safetensors.File
	path string
	data *hostmem.File
}

func openTensors(path string) (*tensorFile, error) {
	data, err := hostmem.MapFile(path)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Parse(data.Bytes())
	if err != nil {
		if pickled(data.Bytes()) {
			err = errors.New("a file of torch.save, and no safetensors; write it anew with safetensors.torch.save_file(state_dict, path)")
		}
		data.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &tensorFile{f, path, data}, nil
}

// pickled tells files of torch.save: archives of the zip format, before PyTorch 1.6 pickles.
func pickled(b []byte) bool {
	return bytes.HasPrefix(b, []byte("PK\x03\x04")) || bytes.HasPrefix(b, []byte("\x80\x02"))
}

// Shapes reads the shapes of the tensors in a safetensors file, by name.
func Shapes(path string) (map[string][]int, error) {
	f, err := openTensors(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	shapes := map[string][]int{}
	for _, e := range f.Entries {
		shapes[e.Name] = e.Shape
	}
	return shapes, nil
}

func (f *tensorFile) Close() error { return f.data.Close() }

func loadModel(f *tensorFile, model any) error {
	slots := stateOf(model)
	found, err := match(f, model, slots)
	if err != nil {
		return err
	}
	return load(slots, found, model)
}

// load puts the values of entries behind the slots' handles; one without an entry keeps its own.
func load(slots []*slot, found []*safetensors.Entry, model any) error {
	for i, s := range slots {
		if found[i] == nil {
			continue
		}
		if err := s.load(found[i], transposed(model, s)); err != nil {
			return err
		}
	}
	return nil
}

// load puts a file's values behind the slot's handle.
func (s *slot) load(in *safetensors.Entry, transposed bool) error {
	e, turn := s.t.Env().Scope()
	defer turn.End()
	v, err := read(e, in, s.t.DType(), s.t.Shape(), transposed)
	if err != nil {
		return err
	}
	s.t.Replace(v)
	return nil
}

// difference collects what a file has otherwise than a model.
type difference struct{ missing, unexpected, other []string }

// match finds each slot's entry, nil for those that keep their value, and checks that everything fits.
func match(f *tensorFile, model any, slots []*slot) ([]*safetensors.Entry, error) {
	found, d := pairs(f, model, slots)
	if text := d.text(); text != "" {
		return nil, &MismatchError{f.path, "does not fit the model: " + text}
	}
	return found, nil
}

// pairs finds each slot's entry, fitting or not, and all that does not fit.
func pairs(f *tensorFile, model any, slots []*slot) (found []*safetensors.Entry, d difference) {
	found = make([]*safetensors.Entry, len(slots))
	name := naming(model, slots)
	for i := range f.Entries {
		in := &f.Entries[i]
		at, known := name(in.Name)
		switch {
		case !known:
			d.unexpected = append(d.unexpected, in.Name)
		case at < 0:
		case found[at] != nil && !same(found[at], in):
			d.other = append(d.other, fmt.Sprintf("%s differs from %s, which the model ties", in.Name, found[at].Name))
		case found[at] == nil:
			found[at] = in
		}
	}
	for i, s := range slots {
		if in := found[i]; in != nil {
			d.other = append(d.other, s.compare(in, transposed(model, s))...)
		} else if !strings.HasSuffix(s.name(), "num_batches_tracked") {
			d.missing = append(d.missing, s.name())
		}
	}
	return found, d
}

func same(a, b *safetensors.Entry) bool {
	return a.DType == b.DType && slices.Equal(a.Shape, b.Shape) && bytes.Equal(a.Data(), b.Data())
}

// compare says how an entry does not fit the slot.
func (s *slot) compare(in *safetensors.Entry, transposed bool) []string {
	want := s.t.Shape()
	if transposed {
		want = []int{want[1], want[0]}
	}
	if !slices.Equal(in.Shape, want) {
		return []string{fmt.Sprintf("%s has shape %v, the model's %v", in.Name, in.Shape, want)}
	}
	if from, err := dtype.Parse(in.DType); err != nil || !converts(from, s.t.DType()) {
		return []string{fmt.Sprintf("%s is %s, the model's %s", in.Name, in.DType, s.t.DType())}
	}
	return nil
}

// text is one line, or empty without a difference.
func (d *difference) text() string {
	var parts []string
	if len(d.missing) > 0 {
		parts = append(parts, "missing "+some(d.missing))
	}
	if len(d.unexpected) > 0 {
		parts = append(parts, "unexpected "+some(d.unexpected))
	}
	if len(d.other) > 0 {
		parts = append(parts, some(d.other))
	}
	return strings.Join(parts, "; ")
}

// some lists the first names.
func some(list []string) string {
	const most = 5
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}

// naming finds the slot that a file's name means: its number, or -1 for a tensor that is left out, or not known.
func naming(model any, slots []*slot) func(name string) (at int, known bool) {
	at := map[string]int{}
	for i, s := range slots {
		for _, n := range s.names {
			at[n] = i
		}
	}
	root, wte := sharedRoot(slots), headOf(slots)
	own, renames := model.(Renamer)
	return func(name string) (int, bool) {
		if renames {
			path, ok := own.Path(name)
			if !ok {
				return -1, true
			}
			name = path
		}
		if i, ok := at[name]; ok {
			return i, true
		}
		name = strings.TrimPrefix(strings.TrimPrefix(name, "module."), "_orig_mod.")
		for _, path := range []string{name, root + name, attention.Replace(name), root + attention.Replace(name)} {
			if i, ok := at[path]; ok {
				return i, true
			}
		}
		if name == "lm_head.weight" && wte >= 0 {
			return wte, true
		}
		return -1, strings.HasSuffix(name, ".attn.bias") || strings.HasSuffix(name, ".attn.masked_bias")
	}
}

// attention gives the parts of PyTorch's MultiheadAttention the names of nn.Attention.
var attention = strings.NewReplacer("in_proj_weight", "c_attn.weight", "in_proj_bias", "c_attn.bias", "out_proj.", "c_proj.")

// sharedRoot is the first part of all paths, with its dot, or empty.
func sharedRoot(slots []*slot) string {
	if len(slots) == 0 {
		return ""
	}
	root, _, nested := strings.Cut(slots[0].name(), ".")
	for _, s := range slots {
		if !nested || !strings.HasPrefix(s.name(), root+".") {
			return ""
		}
	}
	return root + "."
}

// headOf is the token embedding that a tied lm_head.weight stands for, or -1.
func headOf(slots []*slot) int {
	return slices.IndexFunc(slots, func(s *slot) bool {
		return s.name() == "wte.weight" || strings.HasSuffix(s.name(), ".wte.weight")
	})
}
