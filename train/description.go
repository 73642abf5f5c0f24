package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/zoo"
)

// The files of a run folder.
const (
	configFile    = "config.json"
	tokenizerFile = "tokenizer.json"
	encoderFile   = "encoder.json"
	logFile       = "log.jsonl"
	curveFile     = "loss.svg"
)

// file is config.json.
type file struct {
	zoo.Arch
	Run *settings `json:"warpline,omitempty"`
}

// settings are the part of config.json that other programs do not know.
type settings struct {
	Version int             `json:"version"`
	Config  json.RawMessage `json:"config"`
	Text    string          `json:"text,omitempty"` // size and checksum of what a gpt learns from
}

const settingsVersion = 1

// runIn names a run's folder that may be meant by dir, if there is one: of a checkpoint the run, of runs the newest.
func runIn(dir string) string {
	if run := filepath.Dir(filepath.Clean(dir)); strings.HasPrefix(filepath.Base(dir), "checkpoint-") && dataset.IsFile(filepath.Join(run, configFile)) {
		return ", such as " + run
	}
	var found string
	var newest time.Time
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(filepath.Join(path, configFile)); err == nil && info.ModTime().After(newest) {
			found, newest = ", such as "+path, info.ModTime()
		}
	}
	return found
}

// readConfig reads config.json of a folder.
func readConfig(dir string) (*file, error) {
	path := filepath.Join(dir, configFile)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fail("give the folder of a run"+runIn(dir), "%s has no %s", dir, configFile)
	}
	if err != nil {
		return nil, explain(err, "give the folder of a run")
	}
	var f file
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fail("give the folder of a run or of a published model", "%s: %v", path, err)
	}
	if f.Run != nil && f.Run.Version != settingsVersion {
		return nil, fail("use the program that wrote it", "%s is of version %d, this program reads %d", path, f.Run.Version, settingsVersion)
	}
	if err := unsupported(raw); err != nil {
		return nil, fail("choose a model without it", "%s: %v", path, err)
	}
	if err := f.Check(); err != nil {
		return nil, fail("give a model that this program has: "+strings.Join(Tasks, ", "), "%s: %v", path, err)
	}
	return &f, nil
}

// unsupported refuses variants of GPT-2 that transformers knows and this program does not.
func unsupported(raw []byte) error {
	var v struct {
		Inner    *int  `json:"n_inner"`
		Width    int   `json:"n_embd"`
		Inverse  bool  `json:"scale_attn_by_inverse_layer_idx"`
		Unscaled *bool `json:"scale_attn_weights"`
		Tied     *bool `json:"tie_word_embeddings"`
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	switch {
	case v.Inner != nil && *v.Inner != 4*v.Width:
		return fmt.Errorf("n_inner is %d, not 4 × n_embd", *v.Inner)
	case v.Inverse:
		return errors.New("scale_attn_by_inverse_layer_idx is not supported")
	case v.Unscaled != nil && !*v.Unscaled:
		return errors.New("scale_attn_weights false is not supported")
	case v.Tied != nil && !*v.Tied:
		return errors.New("tie_word_embeddings false is not supported")
	}
	return nil
}

// found is a model in a file or a folder.
type found struct {
	zoo.Arch
	weights string // where they are
	file    *file  // config.json of the folder; nil: a bare file of weights
}

// readArch finds out what model a folder or a file of weights holds, and where the weights are. What a bare file does
// not tell is taken from like.
func readArch(path string, like zoo.Arch) (*found, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fail("give a safetensors file, or a folder with "+configFile+" and "+ckpt.ModelFile, "cannot read %s: %v", path, cause(err))
	}
	if !info.IsDir() {
		a, err := inspect(path, like)
		return &found{a, path, nil}, err
	}
	f, err := readConfig(path)
	if err != nil {
		return nil, err
	}
	if f.Writes() {
		w := f.Writing()
		w.Dropout = 0 // unless this run says otherwise
		f.Resize(w)
	}
	weights := filepath.Join(path, ckpt.ModelFile)
	return &found{f.Arch, weights, f}, agree(path, weights, f.Arch)
}

// cause is what the system says, without the call and the path.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// agree compares a folder's description with its weights, so that no model of a size that somebody made up is built. The
// folder of a run that was cut off has checkpoints and no such file.
func agree(dir, weights string, a zoo.Arch) error {
	if !dataset.IsFile(weights) {
		if saved(dir) {
			return nil
		}
		return fail("give a finished run, or go on with --resume", "%s has no %s", dir, ckpt.ModelFile)
	}
	b, err := inspect(weights, a)
	if err != nil {
		return err
	}
	if said, is := a.Sizes(), b.Sizes(); said != is {
		return fail("give a folder whose files belong together", "%s describes %s, and %s holds %s", filepath.Join(dir, configFile), said, ckpt.ModelFile, is)
	}
	return nil
}

// inspect reads the sizes of a model from the shapes in a safetensors file. What like does not say about a GPT is taken
// from the description beside the file, if there is one.
func inspect(path string, like zoo.Arch) (zoo.Arch, error) {
	found, err := ckpt.Shapes(path)
	if err != nil {
		return zoo.Arch{}, explain(err, "give a safetensors file")
	}
	s := zoo.Shapes{}
	for name, shape := range found {
		s[strings.TrimPrefix(strings.TrimPrefix(name, "module."), "transformer.")] = shape
	}
	if like.GPTConfig == nil && filepath.Base(path) == ckpt.ModelFile {
		if f, err := readConfig(filepath.Dir(path)); err == nil {
			like.GPTConfig = f.GPTConfig
		}
	}
	a, err := zoo.Recognise(s, &like)
	if err != nil {
		return zoo.Arch{}, fail("give weights of one of "+strings.Join(Tasks, ", "), "%s: %v", path, err)
	}
	return a, nil
}
