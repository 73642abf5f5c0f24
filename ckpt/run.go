package ckpt

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/durable"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// State is a training run at the end of a step. Save writes it; Load and Latest put values behind Model, Optimizer and
// Scaler, which the program makes before, and fill in the rest.
type State struct {
	Step   int             // steps done
	Loader data.Position   // where the loader goes on: its Config takes Epoch, Batch as Skip, and Step as Done
	Draws  uint64          // of the root env: env.Draws() and env.SetDraws
	Extra  json.RawMessage // what the program adds, such as its configuration; nil for nothing
	// Level is the set of instructions that computed a run on the CPU, as WARPLINE_CPU has it; "" of other devices and in older
	// checkpoints. A resumed run has the bytes of an uninterrupted one on the same level. Save writes that of the process.
	Level     string
	Model     any
	Optimizer optim.Optimizer   // nil: not part of the run
	Scaler    *optim.LossScaler // likewise

	// Optimizers are further ones of a run that has several, by names of small letters, digits, - and _.
	Optimizers map[string]optim.Optimizer
}

// optimizers are all of them; the name of Optimizer is empty.
func (s *State) optimizers() map[string]optim.Optimizer {
	all := maps.Clone(s.Optimizers)
	if s.Optimizer != nil {
		if all == nil {
			all = map[string]optim.Optimizer{}
		}
		all[""] = s.Optimizer
	}
	return all
}

// optimizerName is what an optimizer may be called: a part of a file's name on any system.
var optimizerName = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// optimizerPath is the file of the optimizer with that name.
func optimizerPath(name string) string {
	if name == "" {
		return optimizerFile
	}
	return "optimizer-" + name + ".safetensors"
}

// called names an optimizer in errors.
func called(name string) string {
	if name == "" {
		return "optimizer"
	}
	return fmt.Sprintf("optimizer %q", name)
}

// ModelFile is the name of the file of weights in a checkpoint, and by custom in a model's folder.
const ModelFile = "model.safetensors"

const (
	formatName    = "warpline-checkpoint"
	formatVersion = 1

	folderPrefix  = "checkpoint-"
	manifestFile  = "manifest.json"
	optimizerFile = "optimizer.safetensors"
	sumsFile      = "SHA256SUMS"
)

// manifest is the JSON of a checkpoint.
type manifest struct {
	Format    string                 `json:"format"`
	Version   int                    `json:"version"`
	Step      int                    `json:"step"`
	Loader    data.Position          `json:"loader"`
	Draws     uint64                 `json:"draws"`
	Level     string                 `json:"cpu_level,omitempty"`
	Optimizer *numbers               `json:"optimizer,omitempty"`
	Others    map[string]numbers     `json:"optimizers,omitempty"` // State.Optimizers
	Scaler    *optim.LossScalerState `json:"loss_scaler,omitempty"`
	Model     []signature            `json:"model"`
	Sizes     map[string]int         `json:"sizes,omitempty"` // bytes of the other files; older checkpoints have none
	Extra     json.RawMessage        `json:"extra,omitempty"`
}

// numbers are an optimizer's besides its tensors.
type numbers struct {
	LR       float64        `json:"lr"`
	Counters map[string]int `json:"counters"`
}

// signature is what a tensor of the model must be for a checkpoint to be its own.
type signature struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

func (s signature) String() string { return fmt.Sprintf("%s %s%v", s.Name, s.DType, s.Shape) }

func signatures(model any) []signature {
	var list []signature
	for name, t := range nn.State(model) {
		list = append(list, signature{name, t.DType().String(), slices.Clone(t.Shape())})
	}
	return list
}

// level is that of the CPU if it computes the model.
func level(model any) string {
	for _, t := range nn.State(model) {
		if t.Env().Device().Name() == "cpu" {
			return cpufeat.Active().String()
		}
	}
	return ""
}

// Save writes the run as dir/checkpoint-N for its step N, in place of one that is there, and returns the path. On an
// error nothing is left behind, and what was there stays.
func Save(dir string, s *State) (path string, err error) { return save(dir, s, createFile) }

// create opens a file of a checkpoint for writing; tests give one that fails.
type create func(path string) (io.WriteCloser, error)

func createFile(path string) (io.WriteCloser, error) { return os.Create(path) }

func save(dir string, s *State, c create) (path string, err error) {
	if s.Step < 0 {
		return "", fmt.Errorf("checkpoint of step %d; steps count from 0", s.Step)
	}
	if err := present(s.Model); err != nil {
		return "", err
	}
	for name, o := range s.Optimizers {
		if !optimizerName.MatchString(name) {
			return "", fmt.Errorf("an optimizer is named %q; give it a name of small letters, digits, - and _", name)
		}
		if o == nil {
			return "", fmt.Errorf("optimizer %q is nil", name)
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	path = filepath.Join(dir, folderPrefix+strconv.Itoa(s.Step))
	err = guarded(func() error {
		return durable.ReplaceDir(path, func(dir string) error { return s.fill(&writer{dir: dir, create: c, sizes: map[string]int{}}) })
	})
	return path, err
}

// fill writes the files of a checkpoint.
func (s *State) fill(w *writer) error {
	m := manifest{Format: formatName, Version: formatVersion, Step: s.Step, Loader: s.Loader, Draws: s.Draws, Level: level(s.Model), Model: signatures(s.Model), Extra: s.Extra}
	w.file(ModelFile, func(out io.Writer) error { return writeModel(out, s.Model) })
	if s.Scaler != nil {
		state := s.Scaler.State()
		m.Scaler = &state
	}
	all := s.optimizers()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		o := all[name]
		n := numbers{o.LR(), o.Counters()}
		if name == "" {
			m.Optimizer = &n
		} else {
			if m.Others == nil {
				m.Others = map[string]numbers{}
			}
			m.Others[name] = n
		}
		w.file(optimizerPath(name), func(out io.Writer) error {
			var list []safetensors.Tensor
			for name, t := range o.State() {
				list = append(list, entry(name, t, false))
			}
			return safetensors.Write(out, nil, list)
		})
	}
	m.Sizes = maps.Clone(w.sizes)
	w.file(manifestFile, func(out io.Writer) error {
		enc := json.NewEncoder(out)
		enc.SetIndent("", " ")
		return enc.Encode(m)
	})
	sums := slices.Clone(w.sums.Bytes())
	w.file(sumsFile, func(out io.Writer) error {
		_, err := out.Write(sums)
		return err
	})
	return w.err
}

// writer writes files into a folder and notes their checksums; after an error it does nothing.
type writer struct {
	dir    string
	create create
	sums   bytes.Buffer   // lines of sha256sum
	sizes  map[string]int // of the files so far
	err    error
}

func (w *writer) file(name string, write func(io.Writer) error) {
	if w.err != nil {
		return
	}
	f, err := w.create(filepath.Join(w.dir, name))
	if err != nil {
		w.err = err
		return
	}
	h, n := sha256.New(), length(0)
	err = write(io.MultiWriter(f, h, &n))
	if w.err = errors.Join(err, f.Close()); w.err == nil {
		fmt.Fprintf(&w.sums, "%x  %s\n", h.Sum(nil), name)
		w.sizes[name] = int(n)
	}
}

// length counts bytes.
type length int

func (n *length) Write(b []byte) (int, error) {
	*n += length(len(b))
	return len(b), nil
}

// Load reads the checkpoint in the folder path. A *[CorruptError] says that it is damaged, a *[MismatchError] that it is
// of another model, optimizer or version; nothing is changed then. What the system refuses, such as a permission, is its
// error as it is.
func Load(path string, s *State) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return err
	}
	c, err := open(path)
	if err != nil {
		return err
	}
	defer c.Close()
	return guarded(func() error { return c.restore(s) })
}

// Latest reads the newest checkpoint of a folder that is not damaged, and returns its path. Each damaged one that it
// passed over gives a warning. Without a checkpoint the error is [ErrNone]; when all are damaged, it is the newest's. A
// checkpoint that does not match ends the search: older ones would be of another run. So does one that the system does
// not let be read, which may be whole.
func Latest(dir string, s *State) (path string, warnings []error, err error) {
	paths, err := List(dir)
	if err != nil {
		return "", nil, err
	}
	if len(paths) == 0 {
		return "", nil, fmt.Errorf("%s: %w; is it the folder of a run?", dir, ErrNone)
	}
	for _, path := range paths {
		err := Load(path, s)
		var damage *CorruptError
		if err == nil {
			return path, warnings, nil
		}
		if !errors.As(err, &damage) {
			return "", warnings, err
		}
		warnings = append(warnings, err)
	}
	return "", warnings[1:], warnings[0]
}

// List gives the paths of a folder's checkpoints, damaged ones included, the newest first. A folder that does not exist
// has none.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []int
	for _, e := range entries {
		if n, ok := stepOf(e.Name()); ok {
			steps = append(steps, n)
		}
	}
	slices.Sort(steps)
	slices.Reverse(steps)
	paths := make([]string, len(steps))
	for i, n := range steps {
		paths[i] = filepath.Join(dir, folderPrefix+strconv.Itoa(n))
	}
	return paths, nil
}

// stepOf is N of the folder name checkpoint-N.
func stepOf(name string) (n int, ok bool) {
	digits, ok := strings.CutPrefix(name, folderPrefix)
	n, err := strconv.Atoi(digits)
	return n, ok && err == nil && n >= 0 && strconv.Itoa(n) == digits
}

// Prune removes all but the newest keep checkpoints of a folder, by their steps. Damaged ones count: who has gone on from one before them
// keeps so many more.
func Prune(dir string, keep int) error {
	paths, err := List(dir)
	if err != nil {
		return err
	}
	for _, path := range paths[min(max(keep, 0), len(paths)):] {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func (c *Checkpoint) open() error {
	sums, err := readSums(filepath.Join(c.path, sumsFile))
	if err != nil {
		return err
	}
	raw, err := c.checked(manifestFile, sums)
	if err != nil {
		return err
	}
	defer raw.Close()
	if err := json.Unmarshal(raw.Bytes(), &c.manifest); err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	if m := &c.manifest; m.Format != formatName || m.Version != formatVersion {
		return &MismatchError{c.path, fmt.Sprintf("format %q version %d; this program reads %q version %d", m.Format, m.Version, formatName, formatVersion)}
	}
	if err := c.manifest.plausible(); err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	if c.model, err = c.tensors(ModelFile, sums); err != nil {
		return err
	}
	for name := range c.manifest.optimizers() {
		f, err := c.tensors(optimizerPath(name), sums)
		if err != nil {
			return err
		}
		c.optim[name] = f
	}
	return nil
}

// optimizers are the numbers of all of them; the name of State.Optimizer's is empty.
func (m *manifest) optimizers() map[string]numbers {
	all := maps.Clone(m.Others)
	if m.Optimizer != nil {
		if all == nil {
			all = map[string]numbers{}
		}
		all[""] = *m.Optimizer
	}
	return all
}

// most bounds counts of steps, epochs and batches: no run comes near, and sums of two stay integers.
const most = 1 << 48

// plausible refuses counts and scales that no run has.
func (m *manifest) plausible() error {
	counts := map[string]int{"step": m.Step, "epoch": m.Loader.Epoch, "batch": m.Loader.Batch}
	for name := range m.Others {
		if !optimizerName.MatchString(name) {
			return fmt.Errorf("an optimizer is named %q", name)
		}
	}
	for of, o := range m.optimizers() {
		for name, n := range o.Counters {
			counts["counter "+strings.TrimSpace(of+" "+name)] = n
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n < 0 || n > most {
			return fmt.Errorf("%s is %d, which no run reaches", name, n)
		}
	}
	if m.Scaler != nil {
		return new(optim.LossScaler).Load(*m.Scaler)
	}
	return nil
}

// tensors opens a safetensors file and compares its checksum.
func (c *Checkpoint) tensors(name string, sums map[string]string) (*tensorFile, error) {
	data, err := c.checked(name, sums)
	if err != nil {
		return nil, err
	}
	parsed, err := safetensors.Parse(data.Bytes())
	if err != nil {
		data.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &tensorFile{parsed, filepath.Join(c.path, name), data}, nil
}

// checked maps a file and compares its checksum.
func (c *Checkpoint) checked(name string, sums map[string]string) (*hostmem.File, error) {
	want, ok := sums[name]
	if !ok {
		return nil, fmt.Errorf("%s has no line for %s", sumsFile, name)
	}
	file, err := hostmem.MapFile(filepath.Join(c.path, name))
	if err != nil {
		return nil, err
	}
	if sumOf(file.Bytes()) != want {
		n := len(file.Bytes())
		file.Close()
		if want := c.manifest.Sizes[name]; want > 0 && want != n {
			return nil, fmt.Errorf("%s has %d bytes of %d and does not match its checksum", name, n, want)
		}
		return nil, fmt.Errorf("%s (%d bytes) does not match its checksum", name, n)
	}
	return file, nil
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// maxSums bounds the list of checksums, which has a few lines.
const maxSums = 1 << 16

func readSums(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSums))
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(b)) {
		sum, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || len(sum) != 2*sha256.Size {
			return nil, fmt.Errorf("%s: %.80q is no checksum", sumsFile, line)
		}
		sums[name] = sum
	}
	return sums, nil
}

// restore fills s. What can be wrong is checked before anything is changed.
func (c *Checkpoint) restore(s *State) error {
	m := &c.manifest
	if err := c.fits(s); err != nil {
		return err
	}
	if err := c.restoreOptimizers(s.optimizers()); err != nil {
		return err
	}
	if err := loadModel(c.model, s.Model); err != nil {
		return err
	}
	if s.Scaler != nil {
		if err := s.Scaler.Load(*m.Scaler); err != nil {
			return err
		}
	}
	s.Step, s.Loader, s.Draws, s.Level, s.Extra = m.Step, m.Loader, m.Draws, m.Level, m.Extra
	return nil
}

// fits compares the checkpoint with the program's model and optimizer.
func (c *Checkpoint) fits(s *State) error {
	there, here := c.manifest.Model, signatures(s.Model)
	for i := range max(len(there), len(here)) {
		a, b := at(there, i), at(here, i)
		if a != b {
			return &MismatchError{c.path, fmt.Sprintf("the checkpoint is of another model: it has %s where the model has %s", a, b)}
		}
	}
	if (c.manifest.Optimizer == nil) != (s.Optimizer == nil) {
		return &MismatchError{c.path, "one of checkpoint and program has an optimizer, the other has none; Open reads parts of a checkpoint"}
	}
	if a, b := slices.Sorted(maps.Keys(c.manifest.Others)), slices.Sorted(maps.Keys(s.Optimizers)); !slices.Equal(a, b) {
		return &MismatchError{c.path, fmt.Sprintf("the checkpoint has the optimizers %q, the program %q", a, b)}
	}
	if (c.manifest.Scaler == nil) != (s.Scaler == nil) {
		return &MismatchError{c.path, "one of checkpoint and program has a loss scaler, the other has none"}
	}
	_, err := match(c.model, s.Model, stateOf(s.Model))
	return err
}

func at(list []signature, i int) string {
	if i < len(list) {
		return list[i].String()
	}
	return "nothing more"
}

// restoreOptimizers puts values behind all of them, or changes none.
func (c *Checkpoint) restoreOptimizers(all map[string]optim.Optimizer) error {
	var undo []func()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		o := all[name]
		tensors, counters, lr := maps.Collect(o.State()), o.Counters(), o.LR()
		if err := c.restoreOptimizer(name, o); err != nil {
			for _, f := range undo {
				f()
			}
			return err
		}
		undo = append(undo, func() {
			if err := o.Load(tensors, counters); err == nil {
				o.SetLR(lr)
			}
		})
	}
	return nil
}

func (c *Checkpoint) restoreOptimizer(name string, o optim.Optimizer) error {
	n, ok := c.manifest.optimizers()[name]
	if !ok {
		return &MismatchError{c.path, "the checkpoint has no " + called(name)}
	}
	host, err := tensor.Open("cpu")
	if err != nil {
		return err
	}
	e, turn := host.Scope()
	defer turn.End()
	tensors := map[string]*tensor.Tensor{}
	for i := range c.optim[name].Entries {
		in := &c.optim[name].Entries[i]
		t, err := readAs(e, in)
		if err != nil {
			return &MismatchError{c.path, fmt.Sprintf("%s: %v", called(name), err)}
		}
		tensors[in.Name] = t
	}
	if err := o.Load(tensors, n.Counters); err != nil {
		return &MismatchError{c.path, fmt.Sprintf("%s: %v", called(name), err)}
	}
	o.SetLR(n.LR)
	return nil
}
