package ckpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/warpline-ml/warpline/optim"
)

// Checkpoint is an open checkpoint whose checksums are right. Its parts are read one by one, in any order: a program that
// predicts takes Extra, which may describe the model, and the model, and needs no optimizer. It may be used by one
// goroutine at a time.
type Checkpoint struct {
	path     string
	manifest manifest
	model    *tensorFile
	optim    map[string]*tensorFile // by name; that of State.Optimizer is empty
	damaged  []error
}

// Open opens a checkpoint by its folder, or the newest one that is not damaged of the run in a folder, whatever that is
// called. The errors are those of [Load] and [Latest].
func Open(path string) (*Checkpoint, error) {
	if isFile(filepath.Join(path, sumsFile)) {
		return open(path)
	}
	paths, err := List(path)
	if _, ok := stepOf(filepath.Base(path)); ok && len(paths) == 0 { // a checkpoint that has lost its checksums
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		return open(path)
	}
	if err != nil {
		return nil, err
	}
	var damaged []error
	for _, p := range paths {
		c, err := open(p)
		var damage *CorruptError
		if err == nil {
			c.damaged = damaged
			return c, nil
		}
		if !errors.As(err, &damage) {
			return nil, err
		}
		damaged = append(damaged, err)
	}
	if len(damaged) > 0 {
		return nil, damaged[0]
	}
	return nil, fmt.Errorf("%s: %w; is it the folder of a run?", path, ErrNone)
}

func open(path string) (*Checkpoint, error) {
	c := &Checkpoint{path: path, optim: map[string]*tensorFile{}}
	if err := c.open(); err != nil {
		c.Close()
		var other *MismatchError
		if errors.As(err, &other) || ofSystem(err) {
			return nil, err
		}
		return nil, &CorruptError{path, err}
	}
	return c, nil
}

// ofSystem tells errors of reading that say nothing about the checkpoint, such as a missing permission or too many open
// files. A file that is missing, or is none, is damage.
func ofSystem(err error) bool {
	var code syscall.Errno
	return errors.As(err, &code) && !errors.Is(err, fs.ErrNotExist) && code != syscall.ENOTDIR && code != syscall.EISDIR
}

// Path is the checkpoint's folder.
func (c *Checkpoint) Path() string { return c.path }

// Step is the number of steps that were done.
func (c *Checkpoint) Step() int { return c.manifest.Step }

// Extra is what the program added, nil for nothing.
func (c *Checkpoint) Extra() json.RawMessage { return c.manifest.Extra }

// Damaged has an error for each newer checkpoint that Open passed over.
func (c *Checkpoint) Damaged() []error { return c.damaged }

// Model puts the weights behind a model's handles, as [LoadModel] does.
func (c *Checkpoint) Model(model any) error {
	if err := errors.Join(present(model), c.opened()); err != nil {
		return err
	}
	return guarded(func() error { return loadModel(c.model, model) })
}

// Optimizer puts values behind an optimizer: the one of State.Optimizers with that name, or State.Optimizer for an empty
// name. When it fails, the optimizer is unchanged.
func (c *Checkpoint) Optimizer(name string, o optim.Optimizer) error {
	if err := c.opened(); err != nil {
		return err
	}
	return guarded(func() error { return c.restoreOptimizer(name, o) })
}

// opened is the error of reading a part after Close.
func (c *Checkpoint) opened() error {
	if c.model == nil {
		return fmt.Errorf("%s: %w; read its parts before Close", c.path, fs.ErrClosed)
	}
	return nil
}

// Close lets go of the files. What was read stays; further parts cannot be.
func (c *Checkpoint) Close() error {
	var errs []error
	if c.model != nil {
		errs = append(errs, c.model.Close())
	}
	for _, f := range c.optim {
		errs = append(errs, f.Close())
	}
	c.model, c.optim = nil, nil
	return errors.Join(errs...)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// String is the checkpoint's folder and step.
func (c *Checkpoint) String() string { return fmt.Sprintf("%s, step %d", c.path, c.manifest.Step) }
