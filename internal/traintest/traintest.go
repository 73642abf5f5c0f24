// Package traintest holds what tests of trainings share: configurations, small data, a watcher that keeps what it is told.
package traintest

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/cuda"
	"github.com/warpline-ml/warpline/internal/cuda/simcuda"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/tensor"
	"github.com/warpline-ml/warpline/train"
)

// Recorder keeps what a run tells, and may cancel it after a step.
type Recorder struct {
	Started train.Start
	Steps   []train.Step
	Scores  []train.Score
	Notes   []string
	After   int                // the step at which it cancels
	Cancel  context.CancelFunc // nil: never
}

// Start implements [train.Watcher].
func (r *Recorder) Start(s train.Start) { r.Started = s }

// Step implements [train.Watcher].
func (r *Recorder) Step(s train.Step) {
	if r.Steps = append(r.Steps, s); r.Cancel != nil && s.Step == r.After {
		r.Cancel()
	}
}

// Score implements [train.Watcher].
func (r *Recorder) Score(s train.Score) { r.Scores = append(r.Scores, s) }

// Scoring implements [train.Watcher].
func (r *Recorder) Scoring(_, _ int) {}

// Note implements [train.Watcher].
func (r *Recorder) Note(text string) { r.Notes = append(r.Notes, text) }

// Config is a task's defaults with changes, all of which count as given.
func Config(t *testing.T, task string, change map[string]any) train.Config {
	t.Helper()
	c, err := train.Defaults(task)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	c.Given = map[string]bool{}
	for name := range change {
		c.Given[name] = true
	}
	return c
}

// Run trains, and fails the test where that fails.
func Run(t *testing.T, c train.Config) (*train.Result, *Recorder) {
	t.Helper()
	r := &Recorder{}
	result, err := train.Run(t.Context(), c, r)
	if err != nil {
		t.Fatal(err)
	}
	return result, r
}

// Pictures writes an npz of n samples of c×side×side in which a class is a bright column.
func Pictures(t *testing.T, n, c, side, classes int) string {
	t.Helper()
	images := &npy.Array{DType: "|u1", Shape: []int{n, c, side, side}, Data: make([]byte, n*c*side*side)}
	labels := &npy.Array{DType: "|u1", Shape: []int{n}, Data: make([]byte, n)}
	for i := range n {
		labels.Data[i] = byte(i * 7 % classes)
		for k := range c * side * side {
			v := byte(i * 31 * (k + 3) % 97)
			if k%side == int(labels.Data[i]) {
				v += 150
			}
			images.Data[i*c*side*side+k] = v
		}
	}
	return Archive(t, images, labels)
}

// Archive writes an npz of images and their labels.
func Archive(t *testing.T, images, labels *npy.Array) string {
	t.Helper()
	var b bytes.Buffer
	if err := npy.WriteZip(&b, []npy.Member{{Name: "images", Array: images}, {Name: "labels", Array: labels}}, false); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "data.npz")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// IDs writes n tokens below 7.
func IDs(t *testing.T, n int) string { return Tokens(t, n, 7) }

// Tokens writes n tokens below vocab.
func Tokens(t *testing.T, n, vocab int) string {
	t.Helper()
	var raw []byte
	for i := range n {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(i*i%vocab))
	}
	path := filepath.Join(t.TempDir(), "ids.bin")
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Cleaned is a device without what earlier runs have left.
func Cleaned(t *testing.T, device string) *tensor.Device {
	t.Helper()
	env, err := tensor.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	env.Device().Collect()
	env.Device().ResetPeak()
	return env.Device()
}

// Merged is all changes in one, of which the last counts.
func Merged(list ...map[string]any) map[string]any {
	all := map[string]any{}
	for _, m := range list {
		maps.Copy(all, m)
	}
	return all
}

// Off is a kind of devices: the engine for GPUs on a simulated driver that executes nothing.
const Off = "off"

func init() {
	device.Register(Off, device.Engine{Cards: cards.Names(), Open: func(n device.Name) (device.Device, error) {
		s, err := simcuda.New(simcuda.Config{Card: n.Card, Off: true})
		if err != nil {
			return nil, err
		}
		return cuda.New(s.API(), 0, n.String(), cuda.Options{})
	}})
}
