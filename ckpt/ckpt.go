// Package ckpt saves models and training runs, and brings them back.
//
// [SaveModel] and [LoadModel] exchange weights with PyTorch: a safetensors file with the names and shapes of its state
// dicts. [Save], [Load] and [Latest] keep whole runs: a folder checkpoint-N for each saved step N, with
//
//	manifest.json           format version, step, loader position, counters, the model's signature
//	model.safetensors       as SaveModel writes it
//	optimizer.safetensors   the optimizer's tensors, if there is one; of further ones optimizer-NAME.safetensors
//	SHA256SUMS              of the files above, as sha256sum -c reads it
//
// Everything is written beside its place and renamed, so a name never stands for half a file, and reading compares
// checksums first. [Open] reads a checkpoint by parts. Values come back behind the handles that are there: an optimizer made before stays right.
package ckpt

import (
	"errors"
	"fmt"
	"iter"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// CorruptError says that a checkpoint is damaged or incomplete. [Latest] goes back to the one before.
type CorruptError struct {
	Path string
	Err  error
}

// Error names the file or folder and the damage.
func (e *CorruptError) Error() string { return fmt.Sprintf("%s is damaged: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// MismatchError says that a file is whole but of something else: another model, another version.
type MismatchError struct {
	Path string
	Text string
}

// Error names the file and the difference.
func (e *MismatchError) Error() string { return e.Path + ": " + e.Text }

// ErrNone is the error of [Latest] in a folder without checkpoints.
var ErrNone = errors.New("no checkpoint")

// slot is a tensor of a model under all its names, the first of which files use.
type slot struct {
	names []string
	t     *tensor.Tensor
}

func (s *slot) name() string { return s.names[0] }

// stateOf collects what a file of the model holds; a tied tensor is one slot.
func stateOf(model any) []*slot { return collect(nn.State(model)) }

func collect(seq iter.Seq2[string, *tensor.Tensor]) []*slot {
	var slots []*slot
	at := map[*tensor.Tensor]*slot{}
	for name, t := range seq {
		if s := at[t]; s != nil {
			s.names = append(s.names, name)
			continue
		}
		s := &slot{[]string{name}, t}
		at[t] = s
		slots = append(slots, s)
	}
	return slots
}

// guarded turns panics about tensors and memory into errors.
func guarded(f func() error) (err error) {
	env, err := tensor.Open("cpu")
	if err != nil {
		return err
	}
	// A random path of its own: saving must not move the program's.
	_, failed := env.Seed(0).Try(func(*tensor.Env) *tensor.Tensor {
		err = f()
		return nil
	})
	if failed != nil {
		return failed
	}
	return err
}
